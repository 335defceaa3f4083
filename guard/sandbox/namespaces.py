"""Namespaces: what a process can see of other processes, networks and shared memory.

Root unshares them directly. Any other user first needs a user namespace, in which it maps nothing
but itself; hosts can forbid that.

Source: ``namespaces(7)``, ``user_namespaces(7)``, ``pid_namespaces(7)``.
"""

from __future__ import annotations

import os
from pathlib import Path

from kernelarc.guard.sandbox import kernel
from kernelarc.guard.sandbox.policy import WallName

_CLONE_NEWUSER = 0x10000000
_FLAGS = {
    WallName.PID_NAMESPACE: 0x20000000,
    WallName.MOUNT_NAMESPACE: 0x00020000,
    WallName.NET_NAMESPACE: 0x40000000,
    WallName.IPC_NAMESPACE: 0x08000000,
}


def enter_user_namespace() -> None:
    """Become the only user of a new user namespace, with capabilities in it alone.

    Raises:
        OSError: The host forbids user namespaces, or too many exist.
    """
    uid, gid = os.geteuid(), os.getegid()
    kernel.call("unshare", _CLONE_NEWUSER)
    proc = Path("/proc/self")
    (proc / "uid_map").write_text(f"{uid} {uid} 1", encoding="ascii")
    (proc / "setgroups").write_text("deny", encoding="ascii")
    (proc / "gid_map").write_text(f"{gid} {gid} 1", encoding="ascii")


def unshare(wall: WallName) -> None:
    """Leave one namespace for a new, empty one. Of process ids: only children are in it.

    Raises:
        OSError: The kernel refused.
    """
    kernel.call("unshare", _FLAGS[wall])


def end_children() -> None:
    """Kill all children, their orphaned children, and so on, until none is left.

    The process must be a subreaper or the first of its process namespace, so that orphans come
    to it. Returns when nothing below it is alive.
    """
    while True:
        for pid in _children():
            os.kill(pid, 9)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends.

    Raises:
        OSError: The kernel refused.
    """
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)


def _children() -> list[int]:
    text = Path("/proc/thread-self/children").read_text(encoding="ascii")
    return [int(pid) for pid in text.split()]
