"""How the judge starts its zygote; light, so that it can happen before torch is imported."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

WAIT_POLICY = {"GOMP_SPINCOUNT": "1000"}
"""How OpenMP threads of candidates wait for each other: a few microseconds of spinning, then
sleep. By default they spin for milliseconds. When anything else takes a processor, the spinning
thread keeps the one that it waits for off the other, and a call takes a hundred times longer."""

KEEP_MEMORY = {
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "MALLOC_MMAP_THRESHOLD_": str(1 << 25),
}
"""Freed memory stays with the process (glibc; the second value is the largest that it takes).
Otherwise PyTorch's temporaries go back to the system and fault in again on every call, or not,
depending on where the heap happens to end: the same kernel then differs by a factor of ten from
process to process, and the reference would look slower than it is."""


def start_zygote() -> socket.socket:
    """Start the zygote process and return the judge's end of the socket to it.

    It gets a short environment: candidates may read what it was started with.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "LANG": "C.UTF-8",
        # It must have one thread when it forks; runners set their own numbers.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        # A set in a candidate's error text comes in the same order for every judge.
        "PYTHONHASHSEED": "0",
        **WAIT_POLICY,
        **KEEP_MEMORY,
    }
    with theirs:
        subprocess.Popen(
            [sys.executable, "-m", "kernelarc.guard.worker", "zygote", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=2,
        )
    return ours
