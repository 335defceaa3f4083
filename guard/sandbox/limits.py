"""Resource limits: what a confined process can use up."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from kernelarc.guard.sandbox.policy import SandboxPolicy

_DATA_FIELD = 5


def data_in_use() -> int:
    """Private memory that this process has mapped, bytes: what RLIMIT_DATA counts.

    Raises:
        OSError: ``/proc`` is not readable.
    """
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[_DATA_FIELD])
    return pages * os.sysconf("SC_PAGE_SIZE")


def prefer_as_memory_victim() -> None:
    """When memory runs out, let the kernel end this process and its children first.

    Raises:
        OSError: ``/proc`` is not writable.
    """
    Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def apply(policy: SandboxPolicy, *, data_in_use_bytes: int) -> None:
    """Set the limits of this process and its children; they can only be lowered from here.

    The address space (RLIMIT_AS) is left alone: CUDA reserves hundreds of gigabytes of it.

    Args:
        policy: The limits.
        data_in_use_bytes: Private memory that the process has already.

    Raises:
        OSError: The kernel refused.
        ValueError: A limit is above the one that this process has itself.
    """
    values = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NPROC: policy.processes,
        resource.RLIMIT_NOFILE: policy.open_files,
        resource.RLIMIT_FSIZE: policy.file_bytes,
        resource.RLIMIT_CPU: policy.cpu_s,
        resource.RLIMIT_MSGQUEUE: 0,
        # Where the host grants ranks, a candidate would be disturbed less than the leader.
        resource.RLIMIT_RTPRIO: 0,
        resource.RLIMIT_NICE: 0,
    }
    if policy.data_bytes is not None:
        values[resource.RLIMIT_DATA] = policy.data_bytes + data_in_use_bytes
    if policy.cpus is not None:
        os.sched_setaffinity(0, policy.cpus)
    for kind, wanted in values.items():
        value = _within_own_limit(kind, wanted)
        resource.setrlimit(kind, (value, value))
        if resource.getrlimit(kind) != (value, value):
            raise OSError(f"resource limit {kind} is not in force after it was set")


def _within_own_limit(kind: int, wanted: int) -> int:
    """A stricter limit of the host stays in force."""
    _, hard = resource.getrlimit(kind)
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
