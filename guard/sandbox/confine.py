"""The walls that a process raises around itself, in the order that they need."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernelarc.guard.errors import SandboxUnavailable
from kernelarc.guard.sandbox import landlock, limits, privileges, seccomp
from kernelarc.guard.sandbox.filetree import DEVICES
from kernelarc.guard.sandbox.policy import SCRATCH, SandboxPolicy, WallName, Walls

SELF_RAISED: Walls = frozenset(
    {WallName.PRIVILEGES, WallName.LIMITS, WallName.LANDLOCK, WallName.SECCOMP}
)
"""The walls of ``confine``; the others need a fork."""

_HARMLESS_PROC = (
    *("cpuinfo", "meminfo", "stat", "filesystems", "sys/kernel/osrelease"),
    *("sys/vm/overcommit_memory", "sys/kernel/cap_last_cap"),
)
"""What libraries read in ``/proc`` about the machine, not about processes."""


@contextmanager
def raising(wall: WallName) -> Iterator[None]:
    """Turn a refusal of the kernel into an error that names the wall."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise SandboxUnavailable(
            f"the wall {wall.value!r} cannot be raised: {error}. 'kernelarc doctor' shows which "
            "walls stand on this host."
        ) from error


def confine(
    policy: SandboxPolicy,
    *,
    walls: Walls = SELF_RAISED,
    scratch: Path = SCRATCH,
    data_in_use_bytes: int | None = None,
) -> None:
    """Confine this process for good; call it right before untrusted code.

    The process must have one thread. Everything that it imports or opens from here on must lie
    in the readable folders. Environment and descriptors are the caller's to clean.

    Args:
        policy: The rights that remain.
        walls: Which walls to raise; those that need a fork are not raised here.
        scratch: The folder that stays writable.
        data_in_use_bytes: Private memory in use, when the caller knows; else it is looked up.

    Raises:
        SandboxUnavailable: A wall could not be raised; the process must not go on.
    """
    if WallName.LIMITS in walls:
        with raising(WallName.LIMITS):
            in_use = limits.data_in_use() if data_in_use_bytes is None else data_in_use_bytes
            limits.apply(policy, data_in_use_bytes=in_use)
    if walls & {WallName.PRIVILEGES, WallName.LANDLOCK, WallName.SECCOMP}:
        with raising(WallName.PRIVILEGES):
            # The other two walls need it from a process without capabilities.
            privileges.forbid_new_privileges()
    if WallName.PRIVILEGES in walls:
        with raising(WallName.PRIVILEGES):
            privileges.clear_capabilities()
    if WallName.LANDLOCK in walls:
        with raising(WallName.LANDLOCK):
            landlock.restrict(_file_rules(policy, scratch))
    if WallName.SECCOMP in walls:
        with raising(WallName.SECCOMP):
            seccomp.restrict(
                allow_exec=policy.allow_exec,
                own_process_ids=WallName.PID_NAMESPACE in walls,
                allow_fork=policy.allow_fork,
                fixed_cpus=policy.cpus is not None,
                counted_memory=policy.data_bytes is not None,
            )


def _file_rules(policy: SandboxPolicy, scratch: Path) -> Iterator[tuple[Path, int]]:
    yield from landlock.readable_rules(policy.readable, policy.hidden)
    yield scratch, landlock.writable(landlock.abi())
    for name in DEVICES:
        yield Path("/dev", name), landlock.READ_FILE | landlock.WRITE_FILE
    if _has_own_proc():
        # Nobody else is in it but the init of the sandbox, which is closed to it. Not to be
        # written: a process could withdraw from being the first to go when memory runs out.
        yield Path("/proc"), landlock.READ_FILE | landlock.READ_DIR
        return
    yield Path(os.path.realpath("/proc/self")), landlock.READ_FILE | landlock.READ_DIR
    for name in _HARMLESS_PROC:
        yield Path("/proc", name), landlock.READ_FILE


def _has_own_proc() -> bool:
    """Whether ``/proc`` shows only this sandbox: its second process, after the init."""
    second = 2
    return os.getpid() == second and os.readlink("/proc/self") == str(second)
