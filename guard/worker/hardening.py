"""Keep other processes of the same user out of a trusted worker's memory."""

from __future__ import annotations

import ctypes
import os
import signal

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4


def forbid_inspection() -> None:
    """Make this process unreadable by ``ptrace`` and ``/proc/PID/mem`` and end with its parent.

    Raises:
        OSError: the kernel refused.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    for option, value in ((PR_SET_DUMPABLE, 0), (PR_SET_PDEATHSIG, int(signal.SIGKILL))):
        if libc.prctl(option, value, 0, 0, 0) != 0:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))
