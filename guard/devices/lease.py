"""The device lease: an OS lock, so that two servers on one host cannot time at once.

Verification takes it shared, timing exclusive. The kernel releases it when a process dies.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from kernelarc.guard.errors import DeviceBusy

POLL_S = 0.1


def lock_path(device_id: str) -> Path:
    """One lock file per device and host, whoever the user is."""
    return Path(tempfile.gettempdir()) / f"kernelarc-{device_id}.lock"


@contextlib.contextmanager
def lease(
    device_id: str, *, exclusive: bool, wait: Callable[[float], None], timeout_s: float
) -> Iterator[None]:
    """Hold the device.

    Args:
        device_id: Stable id of the device.
        exclusive: For timing; otherwise shared with other verifications.
        wait: Called between attempts with a time in seconds; may raise to give up.
        timeout_s: Longest time to wait.

    Raises:
        DeviceBusy: another process held the device for ``timeout_s``.
    """
    path = lock_path(device_id)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    try:
        with contextlib.suppress(PermissionError):
            os.fchmod(fd, 0o666)  # another user's server must be able to lock it too
        kind = fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH
        waited = 0.0
        while not _try(fd, kind):
            if waited >= timeout_s:
                raise DeviceBusy(
                    f"another process has held the device for {timeout_s:g} s; try again later."
                )
            wait(POLL_S)
            waited += POLL_S
        yield
    finally:
        os.close(fd)


def _try(fd: int, kind: int) -> bool:
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
