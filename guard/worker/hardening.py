"""What trusted workers do to themselves first."""

from __future__ import annotations

import ctypes
import os
import signal

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4


def end_with_parent() -> None:
    """Die when the parent dies, also if it dies during this call.

    Raises:
        OSError: the kernel refused.
    """
    parent = os.getppid()
    _prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:
        os._exit(1)


def forbid_inspection() -> None:
    """Make this process unreadable for ``ptrace`` and ``/proc/PID/mem`` of the same user.

    Raises:
        OSError: the kernel refused.
    """
    _prctl(PR_SET_DUMPABLE, 0)


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
