"""Attempt histories: for the plateau rule, for guidance and for the report of a run."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from sqlite_utils import Database

from kernelarc.guard.schema import BenchmarkOutcome, EvaluationStatus
from kernelarc.memory import queries
from kernelarc.memory.board import as_insight
from kernelarc.memory.catalogue import current_problem
from kernelarc.memory.connection import Store
from kernelarc.memory.ids import Prefix, number, optional_number, optional_short, short
from kernelarc.memory.leaders import as_promotion
from kernelarc.memory.rows import Attempt, RunReport, StrategyDigest
from kernelarc.memory.runs import agents_of, load_run

_BEST_FIRST = (
    BenchmarkOutcome.PROMOTED,
    BenchmarkOutcome.TIE,
    BenchmarkOutcome.BACKUP,
    BenchmarkOutcome.INCONCLUSIVE,
    BenchmarkOutcome.REJECTED,
)
"""A tie is nearer to the leader than a backup."""


class Reports:
    """Read-only views over everything. See ``Archive`` for the rules of use."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def attempts(
        self,
        problem: str,
        *,
        agent: str | None = None,
        run: str | None = None,
        after: str | None = None,
        limit: int | None = None,
    ) -> list[Attempt]:
        """Submissions on the problem's current version, oldest first.

        Args:
            problem: Name of a registered problem.
            agent: Only this agent's, agent id.
            run: Only this run's, run id.
            after: Only those after this submission id: to go on where an earlier call ended.
                What the guard says may change later than that; read those again that had no
                status or no outcome.
            limit: At most so many, the newest of them.

        Raises:
            UnknownProblem: It was never registered.
        """
        conditions = ["s.problem_id = :problem", "s.id > :after"]
        conditions += [] if agent is None else ["s.agent_id = :agent"]
        conditions += [] if run is None else ["s.run_id = :run"]
        values = {
            "agent": optional_number(Prefix.AGENT, agent),
            "run": optional_number(Prefix.RUN, run),
            "after": optional_number(Prefix.SUBMISSION, after) or 0,
            "limit": -1 if limit is None else limit,
        }
        sql = queries.where(queries.ATTEMPT, conditions, "ORDER BY s.id DESC LIMIT :limit")
        with self._store.read() as db:
            values["problem"] = current_problem(db, problem)["id"]
            return [_attempt(row) for row in db.query(sql, values)][::-1]

    def by_strategy(self, problem: str) -> list[StrategyDigest]:
        """What became of each strategy on a problem: most attempts first.

        Strategies that only appear on the board are listed with no attempts.

        Raises:
            UnknownProblem: It was never registered.
        """
        grouped: dict[str, list[Attempt]] = defaultdict(list)
        for attempt in self.attempts(problem):
            grouped[attempt.strategy].append(attempt)
        with self._store.read() as db:
            version = {"problem": current_problem(db, problem)["id"]}
            insights = {row[0]: row[1] for row in db.execute(queries.INSIGHTS_BY_STRATEGY, version)}
        digests = [
            _digest(strategy, grouped.get(strategy, []), insights.get(strategy, 0))
            for strategy in sorted(grouped.keys() | insights.keys())
        ]
        return sorted(digests, key=lambda digest: -digest.attempts)

    def run_report(self, run: str) -> RunReport:
        """Everything that the report of a run plots; ``UnknownId`` if there is no such run."""
        row_id = number(Prefix.RUN, run)
        with self._store.read() as db:
            record = load_run(db, row_id)
            attempts = [_attempt(row) for row in _of_run(db, queries.ATTEMPT, "s", row_id)]
            promotions = [as_promotion(row) for row in _of_run(db, queries.PROMOTION, "s", row_id)]
            insights = [as_insight(row) for row in _of_run(db, queries.INSIGHT, "i", row_id)]
            agents = agents_of(db, row_id)
        return RunReport(
            run=record,
            agents=tuple(agents),
            attempts=tuple(attempts),
            promotions=tuple(sorted(promotions, key=lambda p: number(Prefix.PROMOTION, p.id))),
            insights=tuple(insights),
            rejects=rejects_by_status(attempts),
        )


def rejects_by_status(attempts: Sequence[Attempt]) -> dict[str, int]:
    """Attempts that the guard rejected, at verification or while timing; most frequent first."""
    statuses = (
        attempt.benchmark_status if attempt.status is EvaluationStatus.PASSED else attempt.status
        for attempt in attempts
    )
    rejected = Counter(
        str(status)
        for status in statuses
        if status is not None and status is not EvaluationStatus.PASSED
    )
    return dict(rejected.most_common())


def _of_run(db: Database, select: str, table: str, run_id: int) -> list[dict[str, Any]]:
    sql = queries.where(select, [f"{table}.run_id = :run"], f"ORDER BY {table}.id")
    return list(db.query(sql, {"run": run_id}))


def _digest(strategy: str, attempts: Sequence[Attempt], insights: int) -> StrategyDigest:
    outcomes = [a.outcome for a in attempts if a.outcome is not None]
    speedups = [a.speedup for a in attempts if a.speedup is not None]
    latencies = [a.latency_us for a in attempts if a.latency_us is not None]
    return StrategyDigest(
        strategy=strategy,
        attempts=len(attempts),
        passed=sum(a.status is EvaluationStatus.PASSED for a in attempts),
        promoted=sum(a.promoted for a in attempts),
        best_outcome=min(outcomes, key=_BEST_FIRST.index, default=None),
        best_speedup=max(speedups, default=None),
        best_latency_us=min(latencies, default=None),
        insights=insights,
    )


def _attempt(row: dict[str, Any]) -> Attempt:
    statuses = {
        name: row[name] and EvaluationStatus(row[name]) for name in ("status", "benchmark_status")
    }
    return Attempt(
        submission_id=short(Prefix.SUBMISSION, row["id"]),
        run=optional_short(Prefix.RUN, row["run_id"]),
        agent=short(Prefix.AGENT, row["agent_id"]),
        agent_name=row["agent_name"],
        problem=row["problem"],
        solution_id=row["solution_id"],
        language=row["language"],
        strategy=row["strategy"],
        note=row["note"],
        source_digests=tuple(json.loads(row["source_digests"])),
        status=statuses["status"],
        outcome=row["outcome"] and BenchmarkOutcome(row["outcome"]),
        benchmark_status=statuses["benchmark_status"],
        promoted=bool(row["promoted"]),
        leader_id=row["leader_id"],
        speedup=row["speedup"],
        latency_us=row["latency_us"],
        created_at=row["created_at"],
    )
