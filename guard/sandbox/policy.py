"""What a confined process may do, and the names of the walls that hold it to that."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

SCRATCH = Path("/tmp/kernelarc-scratch")  # noqa: S108 - a private mount, not a shared folder
"""The only writable place, when the mount namespace stands. Code that runs inside takes the
folder from ``TMPDIR``, which is right in both cases."""

CANDIDATE_UID = 64_077
"""User and group id of confined processes when the guard runs as root. Below 65536, so that
containers map it; in a range that distributions leave to the administrator."""


class WallName(StrEnum):
    """Each stands alone: the kernel may forbid one of them and the others still go up."""

    UID = "uid"
    """Another user than the judge."""
    PRIVILEGES = "privileges"
    """No capability, none to be gained."""
    PID_NAMESPACE = "pid_namespace"
    MOUNT_NAMESPACE = "mount_namespace"
    NET_NAMESPACE = "net_namespace"
    IPC_NAMESPACE = "ipc_namespace"
    LIMITS = "limits"
    """Resource limits, and first choice of the kernel when memory runs out."""
    LANDLOCK = "landlock"
    SECCOMP = "seccomp"


Walls = frozenset[WallName]

ALL_WALLS: Walls = frozenset(WallName)
NAMESPACES: Walls = frozenset(
    {
        WallName.PID_NAMESPACE,
        WallName.MOUNT_NAMESPACE,
        WallName.NET_NAMESPACE,
        WallName.IPC_NAMESPACE,
    }
)


@dataclass(frozen=True)
class SandboxPolicy:
    """The rights of one confined process; everything that is not listed is refused.

    ``processes`` counts processes and threads. Below root it counts those of this sandbox; for
    root it counts those of ``uid`` on the whole host, so give each sandbox its own.
    """

    readable: tuple[Path, ...]
    """Files and folders that may be read and executed; those that do not exist are skipped."""
    hidden: tuple[Path, ...] = ()
    """Below a readable folder, yet unreadable; their names may remain visible."""
    allow_exec: bool = False
    """Whether programs may be started (compiler), or none at all (runner)."""
    allow_fork: bool = True
    """Whether other processes may be started, and not only threads. The judge freezes a runner
    by stopping its one process: a second one would keep running."""
    scratch_bytes: int = 512 << 20
    """Size of the private scratch file system."""
    data_bytes: int | None = 4 << 30
    """Private memory beyond what the process has already; shared memory is refused then, as no
    limit counts it. ``None``: both without limit. Address space is never limited, because CUDA
    reserves far more than it uses."""
    processes: int = 64 + 4 * (os.cpu_count() or 1)
    open_files: int = 256
    file_bytes: int = 512 << 20
    """Largest file that may be written."""
    cpu_s: int = 600
    """Processor time per process, seconds."""
    cpus: tuple[int, ...] | None = None
    """Processors that it may run on; it cannot change that. ``None``: those of its parent."""
    uid: int = CANDIDATE_UID
    environment: Mapping[str, str] = field(default_factory=dict)
    """All environment variables, except those that name the scratch folder, which are added."""


class Confined(NamedTuple):
    """A running sandbox, as its trusted parent sees it. Both are the parent's to close."""

    pidfd: int
    """Of the supervisor: a SIGKILL to it ends everything in the sandbox."""
    status_fd: int
    """Pipe: 4 bytes, little-endian, the wait status of the confined process, once nothing of
    the sandbox is alive any more; then the end. The end alone: the supervisor was killed."""


def scratch_environment(scratch: Path) -> dict[str, str]:
    """The variables that make programs, libraries and compilers write into ``scratch``."""
    folder = str(scratch)
    cache = str(scratch / "cache")
    return {
        "HOME": folder,
        "TMPDIR": folder,
        "XDG_CACHE_HOME": cache,
        "PYTHONPYCACHEPREFIX": cache,
        "TRITON_HOME": folder,
        "TRITON_CACHE_DIR": str(scratch / "cache" / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(scratch / "cache" / "inductor"),
        "TORCH_EXTENSIONS_DIR": str(scratch / "cache" / "extensions"),
        "CUDA_CACHE_PATH": str(scratch / "cache" / "cuda"),
    }


def python_paths() -> tuple[Path, ...]:
    """What a forked interpreter may still have to read: its libraries and the system's."""
    return (
        Path(sys.prefix),
        Path(sys.base_prefix),
        *(Path(p) for p in ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")),
        # The sizes of caches and the number of processors, for thread pools.
        Path("/sys/devices/system/cpu"),
        Path("/sys/devices/system/node"),
    )


def compiler_paths() -> tuple[Path, ...]:
    """What g++ needs: programs, headers and libraries of the system."""
    return tuple(
        Path(p) for p in ("/usr", "/bin", "/lib", "/lib64", "/etc/alternatives", "/etc/ld.so.cache")
    )
