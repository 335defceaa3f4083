"""How much of the candidates' processors others used while something was timed.

The kernel's count of their busy time less what the runners used: the judge is pinned to other
processors. Time stolen by the hypervisor counts as others' use: it is the same to a measurement.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
MAX_SHARE = 0.25
"""Share of the candidates' processors beyond which a comparison is not trusted."""
_IDLE_FIELDS = (3, 4)
"""idle and iowait in a cpu line of ``/proc/stat``; fields 8 and 9 repeat time of guests."""


class Contention:
    """Measures from its creation on; add the processor time of runners when they end."""

    def __init__(self, processors: Sequence[int]) -> None:
        self._processors = processors
        self._start = monotonic()
        self._busy = busy_s(processors)
        self._runners = 0.0

    def add(self, runner_cpu_s: float) -> None:
        """Count a runner's processor time as ours."""
        self._runners += runner_cpu_s

    def share(self) -> float:
        """Others' share of the processors since the start, 0 to 1."""
        elapsed = max(monotonic() - self._start, 1e-3)
        others = busy_s(self._processors) - self._busy - self._runners
        return min(1.0, max(0.0, others / (elapsed * len(self._processors))))


def busy_s(processors: Sequence[int]) -> float:
    """Busy time of some processors since boot, seconds, steal included."""
    wanted = {f"cpu{number}" for number in processors}
    total = 0
    for line in Path("/proc/stat").read_text("ascii").splitlines():
        name, *fields = line.split()
        if name in wanted:
            total += sum(int(f) for i, f in enumerate(fields[:8]) if i not in _IDLE_FIELDS)
    return total / TICKS_PER_S


def process_cpu_s(pid: int) -> float:
    """Processor time of a process with all its threads, seconds; 0 when it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    fields = text[text.rindex(")") + 2 :].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S
