"""How much of the host's processors others used while something was timed.

The kernel's totals of busy time less what the judge and its runners used. Time stolen by the
hypervisor counts as others' use: it is the same to a measurement.
"""

from __future__ import annotations

import os
from pathlib import Path
from time import monotonic

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
MAX_SHARE = 0.20
"""Share of all processors beyond which a comparison is not trusted."""
_IDLE_FIELDS = (3, 4)
"""idle and iowait in the cpu line of ``/proc/stat``; fields 8 and 9 repeat time of guests."""


class Contention:
    """Measures from its creation on; add the processor time of runners when they end."""

    def __init__(self) -> None:
        self._start = monotonic()
        self._busy = busy_s()
        self._own = sum(os.times()[:2])
        self._runners = 0.0

    def add(self, runner_cpu_s: float) -> None:
        """Count a runner's processor time as ours."""
        self._runners += runner_cpu_s

    def share(self) -> float:
        """Others' share of all processors since the start, 0 to 1."""
        elapsed = max(monotonic() - self._start, 1e-3)
        own = sum(os.times()[:2]) - self._own + self._runners
        others = busy_s() - self._busy - own
        return min(1.0, max(0.0, others / (elapsed * (os.cpu_count() or 1))))


def busy_s() -> float:
    """Processor time of the whole host since boot, seconds, steal included."""
    fields = Path("/proc/stat").read_text("ascii").splitlines()[0].split()[1:9]
    return sum(int(f) for i, f in enumerate(fields) if i not in _IDLE_FIELDS) / TICKS_PER_S


def process_cpu_s(pid: int) -> float:
    """Processor time of a process with all its threads, seconds; 0 when it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    fields = text[text.rindex(")") + 2 :].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S
