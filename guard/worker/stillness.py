"""Whether a process that was sent SIGSTOP has stopped with all its threads."""

from __future__ import annotations

import os
from pathlib import Path

_STILL = ("T", "Z", "X")
"""Stopped, or ended and not yet waited for; see ``proc_pid_stat(5)``."""


def all_still(pid: int) -> bool:
    """Whether no thread of a process can run: all are stopped, or have ended.

    A stop begins when one thread leaves the kernel and finds the signal; only then are the others
    told. Until that happens, which a thread can put off for a second by populating gigabytes, they
    all run on.
    """
    tasks = Path(f"/proc/{pid}/task")
    try:
        names = os.listdir(tasks)
        # A thread that still ran at the first look may have started another since.
        return all(_state(tasks / name) in _STILL for name in names) and os.listdir(tasks) == names
    except (FileNotFoundError, ProcessLookupError):
        return not tasks.exists()


def _state(task: Path) -> str:
    text = (task / "stat").read_text("utf-8", errors="replace")
    return text[text.rindex(")") + 2]
