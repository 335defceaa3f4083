"""Giving up rights: user, groups, capabilities, and the way to new ones.

Source: ``capabilities(7)``, ``prctl(2)``, ``capset(2)``.
"""

from __future__ import annotations

import os
import struct

from kernelarc.guard.sandbox import kernel

CAP_SETGID, CAP_SETUID, CAP_SYS_ADMIN = 6, 7, 21
_CAP_SETPCAP = 8
_CAPABILITY_VERSION_3 = 0x20080522
_HIGHEST_CAPABILITY = 63
_CLEAR_ALL_AMBIENT = 4


def has_capability(capability: int) -> bool:
    """Whether this process may use a capability in its user namespace."""
    return bool(effective_capabilities() >> capability & 1)


def effective_capabilities() -> int:
    """The effective capabilities of this process, as a bit set.

    Raises:
        OSError: ``/proc`` is not readable.
    """
    with open("/proc/thread-self/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith("CapEff:"))
    return int(line.split()[1], 16)


def become(uid: int) -> None:
    """Change to an unprivileged user and group of that number, without other groups.

    Raises:
        OSError: The kernel refused.
    """
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def bound_capabilities() -> None:
    """Make every capability unreachable, even through a privileged program.

    Raises:
        OSError: The kernel refused.
    """
    if not has_capability(_CAP_SETPCAP):
        return  # no_new_privs alone already closes that way.
    for capability in range(_HIGHEST_CAPABILITY + 1):
        try:
            kernel.prctl(kernel.PR_CAPBSET_DROP, capability)
        except OSError:
            if capability <= CAP_SYS_ADMIN:
                raise
            return  # Past the last capability of this kernel.


def clear_capabilities() -> None:
    """Drop every capability that the process holds.

    Raises:
        OSError: The kernel refused.
    """
    kernel.prctl(kernel.PR_CAP_AMBIENT, _CLEAR_ALL_AMBIENT)
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    nothing = bytes(2 * 3 * 4)
    kernel.call("capset", header, nothing)


def forbid_new_privileges() -> None:
    """Make set-user-id programs and file capabilities ineffective for good.

    Raises:
        OSError: The kernel refused, or did not do it.
    """
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    if kernel.prctl(kernel.PR_GET_NO_NEW_PRIVS) != 1:
        raise OSError("no_new_privs is not in force after it was set")


def set_dumpable(*, dumpable: bool) -> None:
    """Whether processes of the same user may look into this one through ``/proc``.

    Raises:
        OSError: The kernel refused.
    """
    kernel.prctl(kernel.PR_SET_DUMPABLE, int(dumpable))
