"""The history of attempts at one problem, and what can be read off it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from kernelarc.guard.schema.status import BenchmarkOutcome
from kernelarc.strategies.similarity import Fingerprint, similarity


@dataclass(frozen=True)
class Attempt:
    """One submission of one agent to one problem, with what came of it so far."""

    agent: str
    strategy: str
    solution_id: str
    fingerprint: Fingerprint
    passed: bool
    """Whether the verdict passed; false while there is none."""
    outcome: BenchmarkOutcome | None
    """``None`` while it was not timed."""
    roofline_fraction: float | None
    """Physical floor / measured latency, in [0, 1]; ``None``: not measured."""
    sequence: int
    """Grows with time; unique within a problem."""

    @property
    def promoted(self) -> bool:
        """Whether this attempt became the leader."""
        return self.outcome is BenchmarkOutcome.PROMOTED


@dataclass(frozen=True)
class Nearest:
    """The earlier attempt that is most like a new one."""

    solution_id: str
    agent: str
    strategy: str
    similarity: float
    passed: bool
    outcome: BenchmarkOutcome | None


@dataclass(frozen=True)
class Diversity:
    """How wide the search went."""

    attempts: int
    distinct: int
    """Different programs among them, formatting aside."""
    strategies: tuple[str, ...]
    mean_similarity: float | None
    """Over all pairs of different programs, in [0, 1]; ``None`` with fewer than two."""


def nearest(attempts: Sequence[Attempt], fingerprint: Fingerprint) -> Nearest | None:
    """What was already tried near this code: the most similar attempt, the latest of equals."""
    scored = (
        (similarity(attempt.fingerprint, fingerprint), attempt.sequence, attempt)
        for attempt in attempts
    )
    best = max(scored, key=lambda entry: entry[:2], default=None)
    if best is None:
        return None
    alike, _, attempt = best
    return Nearest(
        solution_id=attempt.solution_id,
        agent=attempt.agent,
        strategy=attempt.strategy,
        similarity=alike,
        passed=attempt.passed,
        outcome=attempt.outcome,
    )


def diversity(attempts: Sequence[Attempt]) -> Diversity:
    """How wide ``attempts`` searched. Quadratic in the different programs: 300 take about 0.5 s."""
    programs = {attempt.fingerprint.exact: attempt.fingerprint for attempt in attempts}
    pairs = [similarity(a, b) for a, b in combinations(programs.values(), 2)]
    return Diversity(
        attempts=len(attempts),
        distinct=len(programs),
        strategies=tuple(sorted({attempt.strategy for attempt in attempts})),
        mean_similarity=sum(pairs) / len(pairs) if pairs else None,
    )
