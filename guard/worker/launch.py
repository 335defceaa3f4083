"""How the judge starts its zygote; light, so that it can happen before torch is imported."""

from __future__ import annotations

import os
import socket
import subprocess
import sys


def start_zygote() -> socket.socket:
    """Start the zygote process and return the judge's end of the socket to it.

    It gets an environment of three variables: candidates may read what it was started with.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "LANG": "C.UTF-8",
        # It must have one thread when it forks; runners set their own numbers.
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
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
