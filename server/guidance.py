"""What the history of a problem means for the agent that asks: plateaus, pivots, near misses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelarc.guard.schema import BenchmarkOutcome, EvaluationStatus, Performance, Problem
from kernelarc.memory.archive import Archive
from kernelarc.memory.rows import Attempt as StoredAttempt
from kernelarc.server.views import GuidanceView, NearestView, TriedView, rounded
from kernelarc.strategies import plateau
from kernelarc.strategies.catalogue import Catalogue
from kernelarc.strategies.plateau import Attempt, PlateauPolicy
from kernelarc.strategies.similarity import Fingerprint, fingerprint

UNSPECIFIED = "unspecified"
"""Strategy of a submission that names none; no playbook has this id."""


MAX_ATTEMPTS = 2000
"""The newest attempts of a problem that are looked at, so that a call stays fast."""


@dataclass(frozen=True)
class Standing:
    """The history of one problem on one device, as the plateau rule sees it."""

    attempts: tuple[Attempt, ...]
    applicable: tuple[str, ...]
    policy: PlateauPolicy

    def admit(self, agent: str, strategy: str, code: Fingerprint) -> None:
        """Refuses a submission that ignores a demanded pivot.

        Raises:
            PivotRequired: Names the reason and the strategies that are open.
        """
        plateau.admit(
            self.attempts,
            agent=agent,
            strategy=strategy,
            fingerprint=code,
            applicable=self.applicable,
            policy=self.policy,
        )

    def view(self, agent: str, solution_id: str) -> GuidanceView:
        """Guidance for ``agent`` after it handed in ``solution_id``."""
        state = plateau.assess(
            self.attempts, agent=agent, applicable=self.applicable, policy=self.policy
        )
        return GuidanceView(
            plateau=state.scope,
            must_pivot=state.must_pivot,
            advice=state.reason,
            pivot_to=list(state.options) if state.must_pivot else None,
            tried=[
                TriedView(
                    strategy=record.strategy,
                    attempts=record.attempts,
                    promotions=record.promotions,
                    best=record.best,
                )
                for record in state.tried
            ],
            nearest=self._nearest(solution_id),
            near_roofline=state.near_roofline or None,
        )

    def _nearest(self, solution_id: str) -> NearestView | None:
        """What was tried near this code by then: the most similar other solution."""
        own = [attempt for attempt in self.attempts if attempt.solution_id == solution_id]
        others = [attempt for attempt in self.attempts if attempt.solution_id != solution_id]
        found = plateau.nearest(others, own[0].fingerprint) if own else None
        if found is None:
            return None
        return NearestView(
            solution_id=found.solution_id,
            similarity=round(found.similarity, 2),
            outcome=found.outcome or ("PASSED" if found.passed else "not passed"),
        )


class History:
    """Reads standings from the archive; remembers fingerprints, which never change."""

    def __init__(self, archive: Archive, catalogue: Catalogue, policy: PlateauPolicy) -> None:
        self._archive = archive
        self._catalogue = catalogue
        self._policy = policy
        self._fingerprints: dict[str, Fingerprint] = {}

    def standing(self, problem: Problem, *, device: str, device_name: str) -> Standing:
        """The standing of ``problem`` now. Blocking: one query, and one per new solution."""
        stored = self._archive.reports.attempts(problem.name, limit=MAX_ATTEMPTS)
        leader = self._archive.leaders.leader(problem.name, device_name)
        share = None
        if leader is not None:
            result = self._archive.results.benchmark(leader.benchmark_id).result
            share = roofline_fraction(result.performance)
        leader_id = None if leader is None else leader.solution_id
        strategies = self._catalogue.applicable(category(problem), device)
        return Standing(
            # Nobody is faster than the leader, so only its share of the floor is looked at.
            attempts=tuple(
                self._attempt(row, share if row.solution_id == leader_id else None)
                for row in stored
            ),
            applicable=tuple(strategy.id for strategy in strategies),
            policy=self._policy,
        )

    def _attempt(self, row: StoredAttempt, share: float | None) -> Attempt:
        return Attempt(
            agent=row.agent,
            strategy=row.strategy,
            solution_id=row.solution_id,
            fingerprint=self._fingerprint(row.solution_id),
            passed=row.status is EvaluationStatus.PASSED,
            outcome=_outcome(row),
            roofline_fraction=share,
            sequence=int(row.submission_id.partition("_")[2]),
        )

    def _fingerprint(self, solution_id: str) -> Fingerprint:
        known = self._fingerprints.get(solution_id)
        if known is None:
            solution = self._archive.catalogue.solution(solution_id)
            known = fingerprint({source.path: source.content for source in solution.sources})
            self._fingerprints[solution_id] = known
        return known


def category(problem: Problem) -> str:
    """The problem's own word for what it computes."""
    return problem.contract.category or problem.definition.op_type or ""


def roofline_fraction(performance: Mapping[str, Performance]) -> float | None:
    """Geometric mean over the workloads of floor / latency; ``None`` where none was measured."""
    shares = [share for timing in performance.values() if (share := floor_share(timing))]
    return _geometric_mean(shares) if shares and len(shares) == len(performance) else None


def floor_share(timing: Performance) -> float | None:
    """Floor / latency of one workload, at most 1."""
    if timing.floor_us is None or timing.latency_us <= 0:
        return None
    return rounded(min(timing.floor_us / timing.latency_us, 1.0), 3)


def _outcome(row: StoredAttempt) -> BenchmarkOutcome | None:
    """A promotion counts once: for the first submission of the solution that took the lead."""
    if row.promoted:
        return BenchmarkOutcome.PROMOTED
    return BenchmarkOutcome.TIE if row.outcome is BenchmarkOutcome.PROMOTED else row.outcome


def _geometric_mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))
