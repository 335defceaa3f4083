"""Verdicts and benchmarks, and the transactions that finish a job with one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from sqlite_utils import Database

from kernelarc.guard.errors import BoardError, UnknownId
from kernelarc.guard.schema import BenchmarkOutcome, BenchmarkResult, Environment, Verdict
from kernelarc.memory import queries
from kernelarc.memory.catalogue import current_problem, full_id
from kernelarc.memory.connection import Store, insert
from kernelarc.memory.evidence import reverify_citing
from kernelarc.memory.ids import Prefix, number, short
from kernelarc.memory.instances import Instance
from kernelarc.memory.jobs import Origin, complete, job_origin, require_running
from kernelarc.memory.leaders import promote
from kernelarc.memory.rows import FinishedBenchmark, JobKind, StoredBenchmark, StoredVerdict
from kernelarc.memory.runs import append_event


class Results:
    """What the guard said. See ``Archive`` for the rules of use."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    def cached_verdict(
        self, problem: str, solution_id: str, *, guard_version: str, environment_key: str
    ) -> StoredVerdict | None:
        """The verdict of that guard in that environment on the problem's current version.

        Raises:
            UnknownProblem, UnknownId: Something named does not exist.
        """
        conditions = ["guard_version = :guard", "environment_key = :environment"]
        values = {"guard": guard_version, "environment": environment_key}
        return self._verdict(problem, solution_id, conditions, values)

    def latest_verdict(self, problem: str, solution_id: str) -> StoredVerdict | None:
        """The newest verdict on the problem's current version; raises as ``cached_verdict``."""
        return self._verdict(problem, solution_id, [], {})

    def latest_benchmark(
        self, problem: str, solution_id: str, device_name: str | None
    ) -> StoredBenchmark | None:
        """The newest benchmark on that device, or on any; raises as ``cached_verdict``."""
        conditions = ["solution_id = :solution", "problem_id = :problem"]
        conditions += [] if device_name is None else ["device_name = :device"]
        sql = queries.where(queries.BENCHMARK, conditions, "ORDER BY id DESC LIMIT 1")
        with self._store.read() as db:
            values = _subject(db, problem, solution_id) | {"device": device_name}
            row = next(db.query(sql, values), None)
        return None if row is None else _benchmark(row)

    def record_environment(self, environment: Environment) -> None:
        """Keep the facts behind an environment key; the first report of a key counts."""
        row = {
            "key": environment.key,
            "document": environment.model_dump_json(),
            "created_at": self._clock(),
        }
        with self._store.write() as db:
            db.table("environments").insert(row, ignore=True)

    def environment(self, key: str) -> Environment | None:
        """The facts behind an environment key; ``None`` when they were never reported."""
        with self._store.read() as db:
            row = next(db.query(queries.ENVIRONMENT, {"key": key}), None)
        return None if row is None else Environment.model_validate_json(row["document"])

    def verdict(self, verdict_id: str) -> StoredVerdict:
        """One verdict; ``UnknownId`` if there is none of that id."""
        with self._store.read() as db:
            return _load_verdict(db, number(Prefix.VERDICT, verdict_id))

    def benchmark(self, benchmark_id: str) -> StoredBenchmark:
        """One benchmark; ``UnknownId`` if there is none of that id."""
        with self._store.read() as db:
            return _load_benchmark(db, number(Prefix.BENCHMARK, benchmark_id))

    def finish_verify(self, instance: Instance, job_id: str, verdict: Verdict) -> StoredVerdict:
        """Store a verdict and end its job, in one transaction.

        A verdict equal to the newest stored of the same guard and environment is not stored
        twice: the guard is deterministic, so the stored one is this one.

        Raises:
            JobCancelled: The job was withdrawn; nothing was stored.
            BoardError: ``instance`` does not run that job, or the job asked something else.
        """
        now = self._clock()
        with self._store.write() as db:
            job = require_running(db, instance, job_id)
            origin = job_origin(db, job)
            _require_answer(origin, JobKind.VERIFY, verdict)
            row_id = _store_verdict(db, verdict, origin.problem_id, now)
            reverify_citing(db, verdict.solution_id)
            complete(db, job, row_id, now, repeatable=False)
            payload = {
                "verdict": short(Prefix.VERDICT, row_id),
                "problem": verdict.problem,
                "solution": verdict.solution_id,
                "status": str(verdict.status),
            }
            append_event(db, origin.run_id, origin.agent_id, "verdict", payload, now)
            return _load_verdict(db, row_id)

    def finish_benchmark(
        self,
        instance: Instance,
        job_id: str,
        result: BenchmarkResult,
        *,
        device_name: str,
        expected_leader: str | None,
    ) -> FinishedBenchmark:
        """Store a benchmark, promote if it says so, and end its job, in one transaction.

        Args:
            instance: The process that runs the job.
            job_id: The job.
            result: What the guard measured.
            device_name: ``Environment.device_name`` of where it was measured.
            expected_leader: Leader when the session began; ``None`` if there was none. When
                another has been promoted since, nobody is promoted and ``leader_moved`` is set.

        Raises:
            JobCancelled: The job was withdrawn; nothing was stored.
            BoardError: ``instance`` does not run that job, or the job asked something else.
            NotVerified: ``PROMOTED``, but this guard has no passed verdict on the solution.
        """
        now = self._clock()
        with self._store.write() as db:
            job = require_running(db, instance, job_id)
            origin = job_origin(db, job)
            _require_answer(origin, JobKind.BENCHMARK, result)
            row_id = _store_benchmark(db, result, origin.problem_id, device_name, now)
            promotion, moved = None, False
            if result.outcome is BenchmarkOutcome.PROMOTED:
                promotion = promote(db, row_id, expected_leader, now)
                moved = promotion is None
            reverify_citing(db, result.solution_id)
            undecided = moved or result.outcome is BenchmarkOutcome.INCONCLUSIVE
            complete(db, job, row_id, now, repeatable=undecided)
            payload = {
                "benchmark": short(Prefix.BENCHMARK, row_id),
                "problem": result.problem,
                "solution": result.solution_id,
                "outcome": str(result.outcome),
                "leader_moved": moved,
            }
            append_event(db, origin.run_id, origin.agent_id, "benchmark", payload, now)
            return FinishedBenchmark(_load_benchmark(db, row_id), promotion, moved)

    def _verdict(
        self, problem: str, solution_id: str, conditions: list[str], values: dict[str, str]
    ) -> StoredVerdict | None:
        subject = ["solution_id = :solution", "problem_id = :problem"]
        sql = queries.where(queries.VERDICT, subject + conditions, "ORDER BY id DESC LIMIT 1")
        with self._store.read() as db:
            row = next(db.query(sql, _subject(db, problem, solution_id) | values), None)
        return None if row is None else _as_verdict(row)


def _subject(db: Database, problem: str, solution_id: str) -> dict[str, Any]:
    return {
        "problem": current_problem(db, problem)["id"],
        "solution": full_id(db, solution_id),
    }


def _require_answer(origin: Origin, kind: JobKind, record: Verdict | BenchmarkResult) -> None:
    """A result may only end the job that asked for it."""
    asked = (origin.kind, origin.problem, origin.solution_id)
    if asked != (kind, record.problem, record.solution_id):
        raise BoardError(
            f"the job asked to {origin.kind} {origin.solution_id[:8]} for {origin.problem!r}; a "
            f"{kind} result on {record.solution_id[:8]} for {record.problem!r} cannot end it."
        )


def _store_verdict(db: Database, verdict: Verdict, problem_id: int, now: float) -> int:
    body = verdict.model_dump_json()
    row = {
        "problem_id": problem_id,
        "solution_id": verdict.solution_id,
        "guard_version": verdict.guard_version,
        "environment_key": verdict.environment_key,
    }
    newest = db.execute(queries.NEWEST_VERDICT, row).fetchone()
    if newest and newest[1] == body:
        return int(newest[0])
    row |= {"status": str(verdict.status), "body": body, "created_at": now}
    return insert(db, "verdicts", row)


def _store_benchmark(
    db: Database, result: BenchmarkResult, problem_id: int, device_name: str, now: float
) -> int:
    over_reference = result.speedup_over_reference
    row = {
        "problem_id": problem_id,
        "solution_id": result.solution_id,
        "leader_id": result.leader_id,
        "device_name": device_name,
        "guard_version": result.guard_version,
        "environment_key": result.environment_key,
        "outcome": str(result.outcome),
        "status": str(result.status),
        "speedup": None if result.speedup is None else result.speedup.median,
        "speedup_over_reference": None if over_reference is None else over_reference.median,
        "latency_us": typical_latency_us(result),
        "body": result.model_dump_json(),
        "created_at": now,
    }
    return insert(db, "benchmarks", row)


def typical_latency_us(result: BenchmarkResult) -> float | None:
    """Geometric mean over the workloads of their median latencies, microseconds.

    The geometric mean, because workloads of one problem differ by orders of magnitude and the
    arithmetic one would show the largest only. ``None`` when nothing was timed.
    """
    latencies = [performance.latency_us for performance in result.performance.values()]
    if not latencies or min(latencies) <= 0:
        return None
    return math.exp(math.fsum(map(math.log, latencies)) / len(latencies))


def _load_verdict(db: Database, row_id: int) -> StoredVerdict:
    row = next(db.query(queries.where(queries.VERDICT, ["id = :id"]), {"id": row_id}), None)
    if row is None:
        raise UnknownId("verdict", short(Prefix.VERDICT, row_id))
    return _as_verdict(row)


def _as_verdict(row: dict[str, Any]) -> StoredVerdict:
    return StoredVerdict(
        id=short(Prefix.VERDICT, row["id"]),
        verdict=Verdict.model_validate_json(row["body"]),
        created_at=row["created_at"],
    )


def _load_benchmark(db: Database, row_id: int) -> StoredBenchmark:
    row = next(db.query(queries.where(queries.BENCHMARK, ["id = :id"]), {"id": row_id}), None)
    if row is None:
        raise UnknownId("benchmark", short(Prefix.BENCHMARK, row_id))
    return _benchmark(row)


def _benchmark(row: dict[str, Any]) -> StoredBenchmark:
    return StoredBenchmark(
        id=short(Prefix.BENCHMARK, row["id"]),
        device_name=row["device_name"],
        result=BenchmarkResult.model_validate_json(row["body"]),
        created_at=row["created_at"],
    )
