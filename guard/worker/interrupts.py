"""Waiting in the judge: for a descriptor, a deadline, or the caller's change of mind.

A reader thread takes requests from the server's pipe. It never touches a job: it only marks it as
cancelled and makes ``wait`` return, so that a cancelled job unwinds in the judge's one thread.
"""

from __future__ import annotations

import os
import select
import threading
from time import monotonic

from kernelarc.guard.errors import JobCancelled


class TotalTimeout(Exception):
    """The job as a whole used up its time."""


class Interrupts:
    """Cancellation and the total deadline of the job in progress."""

    def __init__(self) -> None:
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._lock = threading.Lock()  # guards _current and _cancelled between the two threads
        self._current: str | None = None
        self._cancelled: set[str] = set()
        self._deadline = float("inf")

    def begin(self, job: str, total_timeout_s: float) -> None:
        """Start a job: from here ``check`` watches it."""
        with self._lock:
            self._current = job
        self._deadline = monotonic() + total_timeout_s

    def end(self) -> None:
        """The job is over."""
        with self._lock:
            if self._current is not None:
                self._cancelled.discard(self._current)
            self._current = None
        self._deadline = float("inf")

    def cancel(self, job: str) -> None:
        """Mark a job as cancelled; called from the reader thread."""
        with self._lock:
            self._cancelled.add(job)
        os.eventfd_write(self._wake, 1)

    def check(self) -> None:
        """Raise if the job was cancelled or ran out of time.

        Raises:
            JobCancelled: the caller withdrew it.
            TotalTimeout: its time is up.
        """
        with self._lock:
            cancelled = self._current in self._cancelled
        if cancelled:
            raise JobCancelled("the job was cancelled.")
        if monotonic() > self._deadline:
            raise TotalTimeout

    def wait(self, fds: list[int], timeout_s: float) -> list[int]:
        """Wait until one of ``fds`` is readable; empty after ``timeout_s``.

        Raises:
            JobCancelled: the caller withdrew the job meanwhile.
            TotalTimeout: the job's time is up.
        """
        end = monotonic() + timeout_s
        while True:
            self.check()
            left = min(end, self._deadline) - monotonic()
            poller = select.poll()
            for fd in [*fds, self._wake]:
                poller.register(fd, select.POLLIN | select.POLLHUP)
            ready = [fd for fd, _ in poller.poll(max(0.0, left) * 1000)]
            if self._wake in ready:
                ready.remove(self._wake)
                os.eventfd_read(self._wake)
            if ready or monotonic() >= end:
                return ready
