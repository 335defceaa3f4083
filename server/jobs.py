"""The worker of this server's device: takes jobs from the archive's queue, has them judged.

The queue is durable and may be shared by several server processes. A job belongs to one process
at a time; calls wait for jobs of other processes by reading the queue again. A waiting call that
is cancelled, or whose client is gone, changes nothing about its job.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio

from kernelarc.guard.errors import (
    BoardError,
    DeviceBusy,
    GuardUnavailable,
    JobCancelled,
    RequestError,
)
from kernelarc.guard.schema import BenchmarkOutcome
from kernelarc.memory.archive import Archive
from kernelarc.memory.instances import Instance
from kernelarc.memory.rows import Job, JobKind, JobState
from kernelarc.server.blocking import off_loop
from kernelarc.server.device import DeviceFacts
from kernelarc.server.errors import explain
from kernelarc.server.ports import Guard, ProblemSet, Progress

log = logging.getLogger(__name__)

MAX_ROUNDS = 3
"""How often a benchmark is timed anew because the leader changed meanwhile."""
HEARTBEAT_S = 5.0
"""Between two progress messages of a waiting call."""
POLL_S = 2.0
"""How soon jobs and results of other processes on the same database are noticed."""

Heartbeat = Callable[[float, str], Awaitable[None]]
"""Seconds waited so far, strictly growing, and where the job stands."""


@dataclass
class _Running:
    job: Job
    scope: anyio.CancelScope
    phase: str = "starting"


class JobRunner:
    """Runs the jobs of one device, one after the other, and lets calls wait for them."""

    def __init__(
        self,
        archive: Archive,
        instance: Instance,
        guard: Guard,
        facts: DeviceFacts,
        problems: ProblemSet,
        device: str,
    ) -> None:
        self._archive = archive
        self._instance = instance
        self._guard = guard
        self._facts = facts
        self._problems = problems
        self._device = device
        self._running: _Running | None = None
        self._news = anyio.Event()
        """Set, and replaced, whenever a job was added or changed in this process."""

    async def run(self) -> None:
        """Works until cancelled. A job that is running then goes back to the queue."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._housekeeping)
            while True:
                news = self._news
                job = await self._claim()
                if job is None or not await self._run(job):
                    with anyio.move_on_after(POLL_S):
                        await news.wait()

    def announce(self) -> None:
        """Wakes the worker and everybody who waits: a job was added or changed."""
        news, self._news = self._news, anyio.Event()
        news.set()

    async def cancel(self, job_id: str) -> Job:
        """Withdraws a job; one that runs in this process is killed at once."""
        job = await off_loop(self._archive.jobs.cancel, job_id)
        if self._running is not None and self._running.job.id == job.id:
            self._running.scope.cancel()
        self.announce()
        return job

    def phase(self, job: Job) -> str:
        """Where an unfinished job stands, in a word or two."""
        if self._running is not None and self._running.job.id == job.id:
            return self._running.phase
        return str(job.state)

    async def wait(self, job_id: str, wait_s: float, beat: Heartbeat) -> Job:
        """The job, as soon as it is finished, or as it stands after ``wait_s``.

        Args:
            job_id: Which job.
            wait_s: Longest wait, seconds.
            beat: Awaited every ``HEARTBEAT_S`` seconds.

        Raises:
            UnknownId: There is no such job.
        """
        began = last_beat = anyio.current_time()
        while True:
            news = self._news
            job = await off_loop(self._archive.jobs.job, job_id)
            now = anyio.current_time()
            if job.state.final or now - began >= wait_s:
                return job
            if now - last_beat >= HEARTBEAT_S:
                last_beat = now
                await beat(now - began, f"{job.kind}: {self.phase(job)}")
            with anyio.move_on_after(min(POLL_S, began + wait_s - now)):
                await news.wait()

    async def _claim(self) -> Job | None:
        try:
            return await off_loop(self._archive.jobs.claim, self._instance, self._device)
        except BoardError:
            log.exception("no job could be claimed")
            return None

    async def _run(self, job: Job) -> bool:
        """Has one job judged and stores what came of it; whether the worker may go on at once."""
        running = _Running(job, anyio.CancelScope())
        self._running = running
        settled = False
        try:
            with running.scope:
                settled = await self._settle(running)
        finally:
            self._running = None
            if not settled and not running.scope.cancel_called:
                with anyio.CancelScope(shield=True):  # also when the server is being stopped
                    await self._release(job)
            self.announce()
        return settled or running.scope.cancel_called

    async def _settle(self, running: _Running) -> bool:
        """Whether the job has ended; if not, it is still this process's and undecided."""
        job = running.job
        try:
            await self._judge(running)
        except JobCancelled:
            return True  # withdrawn through another process while it ran
        except DeviceBusy:
            return False
        except (GuardUnavailable, RequestError) as error:
            await self._fail(job, explain(error))
        except BoardError:
            log.exception("job %s: its result could not be stored", job.id)
            return False
        except Exception:
            # The outermost frame of the worker: a defect of ours ends one job, not the server.
            log.exception("job %s: unexpected error", job.id)
            await self._fail(job, "internal error of the server, see its log; nothing was judged.")
        return True

    async def _judge(self, running: _Running) -> None:
        job = running.job
        if job.kind is JobKind.BENCHMARK:
            await self._benchmark(running)
            return
        problem = self._problems.get(job.problem)
        solution = await off_loop(self._archive.catalogue.solution, job.solution_id)
        verdict = await self._guard.verify(problem, solution, _into(running))
        await off_loop(self._archive.results.finish_verify, self._instance, job.id, verdict)

    async def _benchmark(self, running: _Running) -> None:
        """Times against the leader; again, when another candidate took the lead meanwhile."""
        job = running.job
        problem = self._problems.get(job.problem)
        device_name = (await self._facts.environment()).device_name
        solution = await off_loop(self._archive.catalogue.solution, job.solution_id)
        for last_round in (*[False] * (MAX_ROUNDS - 1), True):
            leader_id = await self._leader_id(job.problem, device_name)
            leader = (
                None
                if leader_id is None
                else await off_loop(self._archive.catalogue.solution, leader_id)
            )
            result = await self._guard.benchmark(problem, solution, leader, _into(running))
            promoted = result.outcome is BenchmarkOutcome.PROMOTED
            moved = promoted and leader_id != await self._leader_id(job.problem, device_name)
            if last_round or not moved:
                break
            running.phase = "leader changed, timing again"
        await off_loop(
            self._archive.results.finish_benchmark,
            self._instance,
            job.id,
            result,
            device_name=device_name,
            expected_leader=leader_id,
        )

    async def _leader_id(self, problem: str, device_name: str) -> str | None:
        leader = await off_loop(self._archive.leaders.leader, problem, device_name)
        return None if leader is None else leader.solution_id

    async def _fail(self, job: Job, text: str) -> None:
        with contextlib.suppress(JobCancelled):  # then it has ended already
            await off_loop(self._archive.jobs.fail, self._instance, job.id, text)

    async def _release(self, job: Job) -> None:
        try:
            await off_loop(self._archive.jobs.release, self._instance, job.id)
        except JobCancelled:
            return
        except BoardError:
            # It stays marked as running here; another process takes it up when this one ends.
            log.exception("job %s could not be given back to the queue", job.id)

    async def _housekeeping(self) -> None:
        """Takes up jobs of dead processes, and stops a job that another process withdrew."""
        while True:
            try:
                await self._requeue_orphans()
                await self._notice_withdrawal()
            except BoardError:
                log.exception("housekeeping is put off")
            await anyio.sleep(POLL_S)

    async def _requeue_orphans(self) -> None:
        orphans = await off_loop(self._archive.jobs.requeue_orphans)
        if orphans.requeued or orphans.failed:
            log.warning("orphaned jobs: requeued %s, failed %s", orphans.requeued, orphans.failed)
            self.announce()

    async def _notice_withdrawal(self) -> None:
        running = self._running
        if running is None:
            return
        job = await off_loop(self._archive.jobs.job, running.job.id)
        if job.state is JobState.CANCELLED:
            running.scope.cancel()


def _into(running: _Running) -> Progress:
    """A progress callback that keeps the latest phase of ``running``."""

    def progress(phase: str, done: int, total: int) -> None:
        running.phase = f"{phase} {done}/{total}" if total else phase

    return progress
