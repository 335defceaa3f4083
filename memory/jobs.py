"""The durable queue: what the guard is to do, in which order, and what became of it."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from sqlite_utils import Database

from kernelarc.guard.errors import BoardError, JobCancelled, UnknownId
from kernelarc.memory import queries
from kernelarc.memory.catalogue import current_problem, full_id
from kernelarc.memory.connection import Store, insert
from kernelarc.memory.ids import Prefix, number, optional_short, short
from kernelarc.memory.instances import Instance, is_alive
from kernelarc.memory.rows import Enqueued, Job, JobKind, JobState, Requeued
from kernelarc.memory.runs import append_event, run_of

MAX_INTERRUPTIONS = 3
"""After so many deaths of the server while it ran, a job is given up."""

INTERRUPTED = f"interrupted {MAX_INTERRUPTIONS} times; the candidate may take the guard down"
"""Error of a job that was given up."""

_RESULT_PREFIX = {JobKind.VERIFY: Prefix.VERDICT, JobKind.BENCHMARK: Prefix.BENCHMARK}


class Waiting(NamedTuple):
    """A queued job as the order of service sees it."""

    job: int
    agent: int
    last_turn: int
    """When its agent was last served on this device, counted in claims; 0 for never."""


def service_order(waiting: Iterable[Waiting]) -> list[int]:
    """The order in which queued jobs will be claimed if nothing is added.

    The agent that was served longest ago is next, with its oldest job; among agents never
    served, the one whose job is oldest. So an agent that fills the queue delays nobody else by
    more than one job a round, and nobody starves.
    """
    queues: dict[int, deque[int]] = defaultdict(deque)
    last_turns: dict[int, int] = {}
    for entry in sorted(waiting, key=lambda entry: entry.job):
        queues[entry.agent].append(entry.job)
        last_turns[entry.agent] = entry.last_turn
    # Agents in this order take turns: whoever was served goes to the end of the line.
    line = deque(sorted(queues, key=lambda agent: (last_turns[agent], queues[agent][0])))
    order = []
    while line:
        agent = line.popleft()
        order.append(queues[agent].popleft())
        if queues[agent]:
            line.append(agent)
    return order


class Origin(NamedTuple):
    """Who asked for a job, and what it is about; row numbers."""

    agent_id: int
    run_id: int | None
    problem_id: int
    kind: JobKind
    problem: str
    solution_id: str


class JobQueue:
    """Jobs for the guard, shared by all processes on one archive.

    A job runs at most once at a time: a claim is one transaction, and a running job returns to
    the queue only when its instance gives it back or is dead. See ``Archive`` for the rules of
    use.
    """

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    def enqueue(
        self,
        kind: JobKind,
        problem: str,
        solution_id: str,
        *,
        agent: str,
        device: str,
        guard_key: str,
        params: Mapping[str, Any] | None = None,
        force: bool = False,
    ) -> Enqueued:
        """Ask for a job, once.

        An equal job (kind, problem version, solution, device, guard key, params; whoever asked)
        that is unfinished, done with a decision, or given up for its interruptions, is returned
        instead of a second one. Jobs that failed otherwise, were cancelled or decided nothing do
        not stand in the way of another.

        Args:
            kind: What to do.
            problem: Name of a registered problem.
            solution_id: Id, or unique prefix, of a stored solution.
            agent: Agent id.
            device: Which worker may claim it, for example ``cpu`` or ``cuda:0``.
            guard_key: Guard version and environment key as the caller joins them: a result
                counts only for this guard in this environment.
            params: JSON values that change what the job does.
            force: Ask anew although a finished one exists. An unfinished one is still returned.

        Raises:
            UnknownProblem, UnknownId: Something named does not exist.
        """
        text = json.dumps(params or {}, sort_keys=True)
        with self._store.write() as db:
            content = {
                "kind": str(kind),
                "problem_id": current_problem(db, problem)["id"],
                "solution_id": full_id(db, solution_id),
                "device": device,
                "guard_key": guard_key,
                "params": text,
            }
            agent_id = number(Prefix.AGENT, agent)
            run_id = run_of(db, agent_id)
            wanted = content | {
                "problem": content["problem_id"],
                "solution": content["solution_id"],
                "force": force,
                "max_interruptions": MAX_INTERRUPTIONS,
            }
            equal = db.execute(queries.EQUAL_JOB, wanted).fetchone()
            if equal:
                return Enqueued(load_job(db, equal[0]), created=False)
            now = self._clock()
            row = content | {"agent_id": agent_id, "state": "queued", "created_at": now}
            job = load_job(db, insert(db, "jobs", row))
            append_event(db, run_id, agent_id, "job", _payload(job), now)
            return Enqueued(job, created=True)

    def job(self, job_id: str) -> Job:
        """One job; ``UnknownId`` if there is none of that id."""
        with self._store.read() as db:
            return load_job(db, number(Prefix.JOB, job_id))

    def unfinished(self, *, agent: str | None = None) -> list[Job]:
        """All queued and running jobs, or those that an agent asked for; oldest first."""
        conditions = [queries.IS_UNFINISHED]
        if agent is not None:
            conditions.append("j.agent_id = :agent")
        owner = None if agent is None else number(Prefix.AGENT, agent)
        sql = queries.where(queries.JOB, conditions, "ORDER BY j.id")
        with self._store.read() as db:
            return [_job(row) for row in db.query(sql, {"agent": owner})]

    def position(self, job_id: str) -> int | None:
        """How many queued jobs will be claimed before this one if nothing is added.

        0 for the next one; ``None`` when it is not queued (any more).
        """
        row_id = number(Prefix.JOB, job_id)
        with self._store.read() as db:
            job = load_job(db, row_id)
            if job.state is not JobState.QUEUED:
                return None
            return _order(db, job.device).index(row_id)

    def claim(self, instance: Instance, device: str) -> Job | None:
        """Take the next job for a device (see ``service_order``); ``None`` if there is none."""
        with self._store.write() as db:
            order = _order(db, device)
            if not order:
                return None
            now = self._clock()
            claimed = {"id": order[0], "instance": instance.row_id, "device": device, "now": now}
            db.execute(queries.CLAIM, claimed)
            return _announced(db, order[0], now)

    def fail(self, instance: Instance, job_id: str, error: str) -> Job:
        """End a running job without a result; ``error`` is shown to agents.

        Raises:
            JobCancelled: It was withdrawn meanwhile.
            BoardError: This instance is not running it.
        """
        now = self._clock()
        with self._store.write() as db:
            row_id = require_running(db, instance, job_id)
            _settle(db, row_id, JobState.FAILED, now, error=error)
            return _announced(db, row_id, now)

    def release(self, instance: Instance, job_id: str) -> Job:
        """Give a running job back to the queue, where it keeps its place by age.

        For when nothing was decided and it is not the candidate's fault: the device is busy, or
        the server shuts down. Counts as no interruption. Raises as ``fail``.
        """
        with self._store.write() as db:
            row_id = require_running(db, instance, job_id)
            db.execute(queries.REQUEUE, {"id": row_id, "interrupted": 0})
            return _announced(db, row_id, self._clock())

    def cancel(self, job_id: str) -> Job:
        """Withdraw a job; a finished one stays as it is.

        The worker of a running one learns of it from ``job`` or, at the latest, when it wants to
        store the result: that raises ``JobCancelled`` and stores nothing.
        """
        row_id = number(Prefix.JOB, job_id)
        with self._store.write() as db:
            job = load_job(db, row_id)
            if job.state.final:
                return job
            now = self._clock()
            _settle(db, row_id, JobState.CANCELLED, now)
            return _announced(db, row_id, now)

    def requeue_orphans(self) -> Requeued:
        """Put running jobs of dead instances back into the queue, each interruption once.

        A job whose third interruption this was fails with ``INTERRUPTED`` instead. Call it when
        a server starts and from time to time: any process may do it for any other.
        """
        requeued: list[str] = []
        failed: list[str] = []
        with self._store.write() as db:
            now = self._clock()
            running = [row[0] for row in db.execute(queries.RUNNING_INSTANCES)]
            dead = [row_id for row_id in running if not is_alive(self._store.path, row_id)]
            for row_id in dead:
                for row in list(db.query(queries.RUNNING_OF, {"instance": row_id})):
                    db.execute(queries.REQUEUE, {"id": row["id"], "interrupted": 1})
                    hopeless = row["interruptions"] + 1 >= MAX_INTERRUPTIONS
                    if hopeless:
                        _settle(db, row["id"], JobState.FAILED, now, error=INTERRUPTED)
                    (failed if hopeless else requeued).append(short(Prefix.JOB, row["id"]))
                    _announced(db, row["id"], now)
        return Requeued(tuple(requeued), tuple(failed))


def require_running(db: Database, instance: Instance, job_id: str) -> int:
    """Row number of a job that ``instance`` is running, inside an open transaction.

    Raises:
        JobCancelled: It was withdrawn.
        BoardError: Another instance runs it, or nobody does.
        UnknownId: There is no such job.
    """
    row_id = number(Prefix.JOB, job_id)
    job = load_job(db, row_id)
    if job.state is JobState.CANCELLED:
        raise JobCancelled(f"job {job_id} was cancelled.")
    row = db.execute(queries.OWNER, {"id": row_id}).fetchone()
    if row[0] != instance.row_id:
        raise BoardError(f"job {job_id} is {job.state} and not run by instance {instance.id}.")
    return row_id


def job_origin(db: Database, row_id: int) -> Origin:
    """Who asked for an existing job and for what, inside an open transaction."""
    return Origin(*db.execute(queries.JOB_ORIGIN, {"id": row_id}).fetchone())


def complete(db: Database, row_id: int, result_id: int, now: float, *, repeatable: bool) -> Job:
    """End a running job with a result, inside an open transaction.

    Args:
        db: The transaction's connection.
        row_id: As ``require_running`` returned it.
        result_id: Row of ``verdicts`` or ``benchmarks``, by the job's kind.
        now: Seconds since the epoch.
        repeatable: Nothing was decided: an equal job may be asked for again.
    """
    _settle(db, row_id, JobState.DONE, now, result=result_id, repeatable=repeatable)
    return _announced(db, row_id, now)


def load_job(db: Database, row_id: int) -> Job:
    """A job inside an open transaction; ``UnknownId`` if there is none of that number."""
    row = next(db.query(queries.where(queries.JOB, ["j.id = :id"]), {"id": row_id}), None)
    if row is None:
        raise UnknownId("job", short(Prefix.JOB, row_id))
    return _job(row)


def _settle(
    db: Database,
    row_id: int,
    state: JobState,
    now: float,
    *,
    result: int | None = None,
    error: str | None = None,
    repeatable: bool = False,
) -> None:
    settled = {
        "id": row_id,
        "state": str(state),
        "result": result,
        "error": error,
        "repeatable": repeatable,
        "now": now,
    }
    db.execute(queries.SETTLE, settled)


def _announced(db: Database, row_id: int, now: float) -> Job:
    """The job as it is now, after an event that says so."""
    job = load_job(db, row_id)
    agent_id = number(Prefix.AGENT, job.agent)
    append_event(db, run_of(db, agent_id), agent_id, "job", _payload(job), now)
    return job


def _payload(job: Job) -> dict[str, Any]:
    payload = {"job": job.id, "kind": str(job.kind), "state": str(job.state)}
    return payload | {"problem": job.problem, "solution": job.solution_id}


def _order(db: Database, device: str) -> list[int]:
    return service_order(Waiting(*row) for row in db.execute(queries.QUEUE, {"device": device}))


def _job(row: dict[str, Any]) -> Job:
    kind = JobKind(row["kind"])
    return Job(
        id=short(Prefix.JOB, row["id"]),
        kind=kind,
        state=JobState(row["state"]),
        problem=row["problem"],
        solution_id=row["solution_id"],
        agent=short(Prefix.AGENT, row["agent_id"]),
        device=row["device"],
        guard_key=row["guard_key"],
        params=json.loads(row["params"]),
        result_id=optional_short(_RESULT_PREFIX[kind], row["result_id"]),
        error=row["error"],
        interruptions=row["interruptions"],
        created_at=row["created_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
    )
