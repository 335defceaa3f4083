"""Who leads, who led, and where a solution came from."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from sqlite_utils import Database

from kernelarc.guard.errors import NotVerified, RequestError, UnknownId
from kernelarc.guard.schema import BenchmarkOutcome, EvaluationStatus
from kernelarc.memory import queries
from kernelarc.memory.catalogue import current_problem, full_id
from kernelarc.memory.connection import Store, insert
from kernelarc.memory.ids import Prefix, number, optional_short, short
from kernelarc.memory.rows import Backup, LineageStep, Promotion
from kernelarc.memory.runs import append_event

MAX_LINEAGE_DEPTH = 64


class Leaders:
    """Leaders by (problem, device name). See ``Archive`` for the rules of use.

    The leader is a query, never a flag: the solution of the latest promotion on the problem's
    current version.
    """

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    def promote(
        self,
        problem: str,
        device_name: str,
        solution_id: str,
        benchmark_id: str,
        expected_leader: str | None,
    ) -> Promotion | None:
        """Make a solution the leader if the leader is still the expected one.

        ``Results.finish_benchmark`` does this by itself; call it only to try again by hand.

        Args:
            problem: Name of a registered problem.
            device_name: Model, as ``Environment.device_name`` has it.
            solution_id: Id, or unique prefix, of the new leader.
            benchmark_id: The benchmark that ended ``PROMOTED``; each promotes at most once.
            expected_leader: Id of the leader that it was measured against; ``None`` if there
                was none.

        Returns:
            The promotion, or ``None`` when somebody else leads by now: nothing was written.

        Raises:
            UnknownProblem, UnknownId: Something named does not exist.
            NotVerified: No passed verdict of that benchmark's guard on the solution.
            RequestError: The benchmark does not promote that solution there.
        """
        row_id = number(Prefix.BENCHMARK, benchmark_id)
        with self._store.write() as db:
            version = current_problem(db, problem)["id"]
            solution = full_id(db, solution_id)
            row = next(db.query(queries.PROMOTABLE, {"benchmark": row_id}), None)
            if row is None:
                raise UnknownId("benchmark", benchmark_id)
            about = (row["problem_id"], row["device_name"], row["solution_id"])
            if about != (version, device_name, solution):
                raise RequestError(
                    f"benchmark {benchmark_id} is not of solution {solution[:8]} on "
                    f"{device_name!r} for the current version of {problem!r}."
                )
            return promote(db, row_id, expected_leader, self._clock())

    def leader(self, problem: str, device_name: str) -> Promotion | None:
        """The latest promotion; ``None`` while the reference leads.

        Raises:
            UnknownProblem: It was never registered.
        """
        found = self._promotions(problem, device_name, "ORDER BY m.id DESC LIMIT 1")
        return found[0] if found else None

    def history(self, problem: str, device_name: str | None) -> list[Promotion]:
        """All promotions on a device, or on any, oldest first; raises as ``leader``."""
        return self._promotions(problem, device_name, "ORDER BY m.id")

    def backups(self, problem: str, device_name: str, *, limit: int = 5) -> list[Backup]:
        """Verified and benchmarked solutions that do not lead, fastest first.

        A solution counts with its newest benchmark that decided anything. Solutions were timed
        against different leaders; they are ordered by ``Backup.gain``, which chains the ratios
        that were measured within sessions, not by latencies of different sessions.

        Raises:
            UnknownProblem: It was never registered.
        """
        with self._store.read() as db:
            where = {"problem": current_problem(db, problem)["id"], "device": device_name}
            leader = db.execute(queries.LEADER, where).fetchone()
            gains: dict[str, float] = {}
            for row in db.query(queries.GAINS, where):
                gains[row["solution_id"]] = gains.get(row["leader_id"], 1.0) * row["speedup"]
            rows = list(db.query(queries.BACKUPS, where | {"leader": leader and leader[0]}))
        backups = [_backup(row, gains.get(row["leader_id"], 1.0)) for row in rows]
        backups.sort(key=lambda backup: (-(backup.gain or 0.0), backup.created_at))
        return backups[:limit]

    def lineage(self, problem: str, solution_id: str) -> list[LineageStep]:
        """A solution and what it was derived from, nearest first, at most 64 generations.

        Parents are what agents declared when they submitted.

        Raises:
            UnknownProblem, UnknownId: Something named does not exist.
        """
        with self._store.read() as db:
            subject = {
                "problem": current_problem(db, problem)["id"],
                "solution": full_id(db, solution_id),
                "deepest": MAX_LINEAGE_DEPTH,
            }
            rows = list(db.query(queries.LINEAGE, subject))
        return [
            LineageStep(
                solution_id=row["solution_id"],
                depth=row["depth"],
                parents=tuple(json.loads(row["parents"])),
                agent=optional_short(Prefix.AGENT, row["agent_id"]),
                strategy=row["strategy"],
                status=row["status"] and EvaluationStatus(row["status"]),
                outcome=row["outcome"] and BenchmarkOutcome(row["outcome"]),
                created_at=row["created_at"],
            )
            for row in rows
        ]

    def _promotions(self, problem: str, device_name: str | None, order: str) -> list[Promotion]:
        conditions = ["m.problem_id = :problem"]
        conditions += [] if device_name is None else ["m.device_name = :device"]
        sql = queries.where(queries.PROMOTION, conditions, order)
        with self._store.read() as db:
            version = current_problem(db, problem)["id"]
            rows = db.query(sql, {"problem": version, "device": device_name})
            return [as_promotion(row) for row in rows]


def promote(
    db: Database, benchmark_id: int, expected_leader: str | None, now: float
) -> Promotion | None:
    """Compare-and-set of the leader inside a transaction that holds the write lock.

    Returns:
        The promotion, or ``None`` when the expected leader does not lead.

    Raises:
        NotVerified: No passed verdict of the benchmark's guard on its solution.
        RequestError: The benchmark did not end ``PROMOTED``, or has promoted already.
    """
    row = next(db.query(queries.PROMOTABLE, {"benchmark": benchmark_id}))
    if row["outcome"] != BenchmarkOutcome.PROMOTED or row["used"]:
        raise RequestError(
            f"benchmark {short(Prefix.BENCHMARK, benchmark_id)} ended {row['outcome']}"
            f"{' and has promoted already' if row['used'] else ''}; time the solution again."
        )
    if not row["verified"]:
        raise NotVerified(
            f"solution {row['solution_id'][:8]} has no passed verdict of this guard; call "
            "compile_and_verify first."
        )
    place = {"problem": row["problem_id"], "device": row["device_name"]}
    leader = db.execute(queries.LEADER, place).fetchone()
    previous = leader[0] if leader else None
    if previous != expected_leader:
        return None
    added = {
        "problem_id": row["problem_id"],
        "device_name": row["device_name"],
        "solution_id": row["solution_id"],
        "previous_id": previous,
        "benchmark_id": benchmark_id,
        "created_at": now,
    }
    promotion_id = insert(db, "promotions", added)
    sql = queries.where(queries.PROMOTION, ["m.id = :id"])
    stored = next(db.query(sql, {"id": promotion_id}))
    payload = {
        "promotion": short(Prefix.PROMOTION, stored["id"]),
        "problem": stored["problem"],
        "device_name": stored["device_name"],
        "solution": stored["solution_id"],
        "previous": stored["previous_id"],
        "speedup": stored["speedup"],
    }
    append_event(db, stored["run_id"], stored["agent_id"], "promotion", payload, now)
    return as_promotion(stored)


def as_promotion(row: dict[str, Any]) -> Promotion:
    """The row of ``queries.PROMOTION`` as it is shown."""
    return Promotion(
        id=short(Prefix.PROMOTION, row["id"]),
        problem=row["problem"],
        device_name=row["device_name"],
        solution_id=row["solution_id"],
        previous_id=row["previous_id"],
        benchmark_id=short(Prefix.BENCHMARK, row["benchmark_id"]),
        agent=optional_short(Prefix.AGENT, row["agent_id"]),
        run=optional_short(Prefix.RUN, row["run_id"]),
        strategy=row["strategy"],
        speedup=row["speedup"],
        speedup_over_reference=row["speedup_over_reference"],
        latency_us=row["latency_us"],
        created_at=row["created_at"],
    )


def _backup(row: dict[str, Any], leader_gain: float) -> Backup:
    speedup = row["speedup"]
    return Backup(
        solution_id=row["solution_id"],
        benchmark_id=short(Prefix.BENCHMARK, row["benchmark_id"]),
        outcome=BenchmarkOutcome(row["outcome"]),
        speedup=speedup,
        gain=None if speedup is None else leader_gain * speedup,
        latency_us=row["latency_us"],
        language=row["language"],
        strategy=row["strategy"],
        created_at=row["created_at"],
    )
