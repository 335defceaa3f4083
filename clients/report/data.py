"""The facts of a run that its report shows. Filled by the composition root from the archive.

Only what was measured is in here; ``None`` means "not measured" and is left out of the page.
Texts may be agents' words: the report shows them as data.
"""

from __future__ import annotations

import math
from collections import Counter
from datetime import datetime
from typing import Self

from pydantic import AwareDatetime, BaseModel, ConfigDict

from kernelarc.guard.schema.results import Environment, Interval, Isolation
from kernelarc.guard.schema.status import BenchmarkOutcome, EvaluationStatus


class Facts(BaseModel):
    """Base: frozen, unknown keys refused, docstrings are descriptions."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Speedup(Facts):
    """A ratio of times, above 1 is faster: a median, and its interval where there is one."""

    median: float
    low: float | None = None
    high: float | None = None
    coverage: float | None = None
    """Probability that the interval holds the true median."""

    @classmethod
    def of(cls, interval: Interval) -> Self:
        """From a guard's record."""
        return cls(
            median=interval.median,
            low=interval.low,
            high=interval.high,
            coverage=interval.coverage,
        )


class RunFacts(Facts):
    """The run as a whole."""

    run_id: str
    state: str
    reason: str = ""
    started: AwareDatetime
    ended: AwareDatetime | None = None
    device: str
    version: str
    """Of KernelArc."""
    board: str = "shared, unlimited"
    """How much agents saw of each other's insights, in words."""

    def minutes(self, moment: datetime) -> float:
        """Minutes from the start of the run."""
        return (moment - self.started).total_seconds() / 60


class AgentFacts(Facts):
    """One agent and how it ended."""

    name: str
    kind: str
    strategy: str = ""
    """The one that it began with."""
    state: str
    reason: str = ""


class AttemptFacts(Facts):
    """One submission and what the guard said about it."""

    sequence: int
    """1, 2, ... within the problem and the run."""
    time: AwareDatetime
    agent: str
    strategy: str
    solution_id: str
    status: EvaluationStatus | None = None
    """Of the verdict; absent when it was never given."""
    outcome: BenchmarkOutcome | None = None
    """Of the benchmark; absent when it was not timed."""
    message: str = ""
    """The guard's reason."""
    speedup: Speedup | None = None
    """Over the leader of its session."""
    latency_us: float | None = None
    """Geometric mean over the ranked workloads, judge's clock."""

    @property
    def result(self) -> str:
        """Outcome, else status, else ``UNFINISHED``."""
        if self.outcome is not None and self.outcome is not BenchmarkOutcome.REJECTED:
            return self.outcome.value
        return "UNFINISHED" if self.status is None else self.status.value

    @property
    def rejected(self) -> bool:
        """Whether the guard refused it, at verification or while it was timed."""
        failed = self.status not in (None, EvaluationStatus.PASSED)
        return failed or self.outcome is BenchmarkOutcome.REJECTED


class PromotionFacts(Facts):
    """One change of leader."""

    attempt: int
    """Its ``sequence``."""
    time: AwareDatetime
    agent: str
    strategy: str
    solution_id: str
    over_reference: Speedup | None = None
    over_previous: Speedup | None = None


class InsightFacts(Facts):
    """One post on the board."""

    time: AwareDatetime
    agent: str
    kind: str
    """``success``, ``failure``, ``hypothesis`` or ``question``."""
    strategy: str = ""
    text: str
    verified: bool
    """Whether a record of the guard supports it."""


class WorkloadFacts(Facts):
    """Latencies of one ranked workload, microseconds, judge's clock, medians."""

    label: str
    """Its axes in words."""
    reference_us: float | None = None
    leader_us: float | None = None
    floor_us: float | None = None
    """Physical floor on this device."""
    bound: str | None = None
    """``memory`` or ``compute``."""


class ProblemFacts(Facts):
    """One problem of the run."""

    name: str
    title: str
    workloads: tuple[WorkloadFacts, ...] = ()
    attempts: tuple[AttemptFacts, ...] = ()
    promotions: tuple[PromotionFacts, ...] = ()
    """In order; the last one is the leader."""
    insights: tuple[InsightFacts, ...] = ()

    @property
    def leader(self) -> PromotionFacts | None:
        """The leader that this run made; ``None`` when it made none."""
        return self.promotions[-1] if self.promotions else None

    @property
    def rejects(self) -> dict[str, int]:
        """Rejected attempts by status, most frequent first."""
        counts = Counter(attempt.result for attempt in self.attempts if attempt.rejected)
        return dict(counts.most_common())

    @property
    def floor_speedup(self) -> float | None:
        """Reference time over physical floor, geometric mean; ``None`` unless all were measured."""
        return _mean_ratio([(w.reference_us, w.floor_us) for w in self.workloads])

    @property
    def roofline_share(self) -> float | None:
        """Physical floor over leader time, geometric mean; ``None`` unless all were measured."""
        return _mean_ratio([(w.floor_us, w.leader_us) for w in self.workloads])


class ReportData(Facts):
    """Everything a report shows."""

    run: RunFacts
    agents: tuple[AgentFacts, ...] = ()
    problems: tuple[ProblemFacts, ...] = ()
    environment: Environment | None = None
    isolation: Isolation | None = None
    """The weakest under which a result of the run was made."""


def _mean_ratio(pairs: list[tuple[float | None, float | None]]) -> float | None:
    ratios = [above / below for above, below in pairs if above and below]
    if not ratios or len(ratios) < len(pairs):
        return None
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
