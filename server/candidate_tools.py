"""Tools that have a candidate judged, and those that wait for a job."""

from __future__ import annotations

import time
from typing import Annotated

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import Field

from kernelarc.guard.errors import NotPermitted, NotVerified
from kernelarc.guard.schema import Environment, Problem, Solution
from kernelarc.guard.version import GUARD_VERSION
from kernelarc.memory.rows import Agent, Job, JobKind, JobState, StoredVerdict
from kernelarc.server.blocking import off_loop
from kernelarc.server.errors import failed_job
from kernelarc.server.guidance import UNSPECIFIED, Standing
from kernelarc.server.outcomes import benchmark_view, unfinished_view, verdict_view
from kernelarc.server.services import Services
from kernelarc.server.submission import make_solution
from kernelarc.server.views import CancelView, GuidanceView, JobView, reply
from kernelarc.strategies.similarity import fingerprint

MAX_WAIT_S = 45.0
"""No call blocks longer: the strictest client gives up after 60 s."""

ToolContext = Context[Services]
Result = Annotated[CallToolResult, JobView]
WaitS = Annotated[float, Field(description="Longest wait, seconds; capped at 45", ge=0)]
Force = Annotated[bool, Field(description="Judge again although a result is stored")]
SolutionId = Annotated[str, Field(description="Id, or 8 or more leading digits", max_length=64)]


async def compile_and_verify(
    problem: Annotated[str, Field(description="Name from list_problems")],
    language: Annotated[str, Field(description="One that get_problem lists, e.g. cpp")],
    ctx: ToolContext,
    source: Annotated[str | None, Field(description="Text of a one-file candidate")] = None,
    files: Annotated[
        dict[str, str] | None, Field(description="Or path to text; main.* has run()")
    ] = None,
    strategy: Annotated[str, Field(description="Strategy id you follow")] = UNSPECIFIED,
    parents: Annotated[
        list[str] | None, Field(description="Solution ids it was derived from")
    ] = None,
    note: Annotated[str, Field(description="What you changed and why", max_length=2000)] = "",
    cflags: Annotated[list[str] | None, Field(description="Extra g++ flags for cpp")] = None,
    force: Force = False,
    wait_s: WaitS = MAX_WAIT_S,
) -> Result:
    """Compile a candidate and check it against the reference on ranked and hidden shapes.

    Use it for every new version of your code. Takes 2 to 30 s; known code answers at once.
    Returns the verdict, what failed and where, the solution_id, and guidance.
    """
    services = ctx.request_context.lifespan_context
    agent = await services.caller()
    task = await services.problem(problem)
    named = services.strategy(strategy, task)
    solution = make_solution(
        task,
        device=services.settings.device,
        language=language,
        source=source,
        files=files,
        cflags=cflags or (),
    )
    environment = await services.device.environment()
    identity = await off_loop(services.archive.catalogue.add_solution, solution)
    known = None if force else await _cached_verdict(services, task.name, identity, environment)
    if known is None and not await _is_repeated_call(services, agent, identity):
        standing = await services.standing(task)
        await off_loop(_admit, standing, agent, named, solution)
    await off_loop(
        services.archive.catalogue.submit,
        task.name,
        identity,
        agent=agent.id,
        strategy=named,
        parents=parents or (),
        note=note,
    )
    if known is not None:
        guidance = await _guidance(services, task, agent, identity)
        return reply(verdict_view(known, cached=True, guidance=guidance))
    return await _enqueue(ctx, JobKind.VERIFY, task, identity, agent, environment, force, wait_s)


async def benchmark(
    solution_id: SolutionId, ctx: ToolContext, force: Force = False, wait_s: WaitS = MAX_WAIT_S
) -> Result:
    """Time a verified solution against the leader, alternating; make it the leader if faster.

    Use it after compile_and_verify said PASSED. Takes 5 to 60 s and the device to itself.
    Returns PROMOTED, BACKUP, TIE, INCONCLUSIVE or REJECTED with the measured speed-up.
    """
    services = ctx.request_context.lifespan_context
    agent = await services.caller()
    row = await off_loop(services.archive.catalogue.solution_row, solution_id)
    task = await services.problem(row.problem)
    environment = await services.device.environment()
    verdict = await _cached_verdict(services, task.name, row.id, environment)
    if verdict is None or not verdict.verdict.passed:
        status = "not been verified" if verdict is None else f"failed: {verdict.verdict.status}"
        raise NotVerified(f"solution {row.id} has {status} (guard {GUARD_VERSION}, this device).")
    leader = await off_loop(services.archive.leaders.leader, task.name, environment.device_name)
    if leader is not None and leader.solution_id == row.id and not force:
        stored = await off_loop(services.archive.results.benchmark, leader.benchmark_id)
        guidance = await _guidance(services, task, agent, row.id)
        return reply(benchmark_view(stored, task, promoted=True, cached=True, guidance=guidance))
    return await _enqueue(ctx, JobKind.BENCHMARK, task, row.id, agent, environment, force, wait_s)


async def get_result(
    job_id: Annotated[str, Field(description="From an earlier result, e.g. j_12")],
    ctx: ToolContext,
    wait_s: WaitS = MAX_WAIT_S,
) -> Result:
    """Wait for a job and return its result, as the call that started it would have.

    Use it when a result said state "queued" or "running". Safe to repeat.
    """
    services = ctx.request_context.lifespan_context
    job = await off_loop(services.archive.jobs.job, job_id)
    return await _wait(ctx, job, await services.caller(), wait_s, cached=False)


async def cancel_job(
    job_id: Annotated[str, Field(description="A job that you started")], ctx: ToolContext
) -> Annotated[CallToolResult, CancelView]:
    """Withdraw a job of yours that is queued or running; a finished one stays as it is.

    Use it when you no longer want the answer. Takes no time.
    """
    services = ctx.request_context.lifespan_context
    agent = await services.caller()
    job = await off_loop(services.archive.jobs.job, job_id)
    if job.agent != agent.id:
        raise NotPermitted(f"job {job_id} was started by another agent; you can cancel only yours.")
    job = await services.jobs.cancel(job.id)
    ended = job.state is not JobState.CANCELLED
    return reply(
        CancelView(
            state=job.state,
            job_id=job.id,
            next=f'It had ended before; get_result(job_id="{job.id}") has its result.'
            if ended
            else "Nothing was stored; submit again to have it judged.",
        )
    )


def _admit(standing: Standing, agent: Agent, strategy: str, solution: Solution) -> None:
    files = {source.path: source.content for source in solution.sources}
    standing.admit(agent.id, strategy, fingerprint(files))


async def _is_repeated_call(services: Services, agent: Agent, identity: str) -> bool:
    """Whether this agent has the same code waiting for its verdict: a lost call, sent again."""
    waiting = await off_loop(services.archive.jobs.unfinished, agent=agent.id)
    return any(job.kind is JobKind.VERIFY and job.solution_id == identity for job in waiting)


async def _cached_verdict(
    services: Services, problem: str, identity: str, environment: Environment
) -> StoredVerdict | None:
    return await off_loop(
        services.archive.results.cached_verdict,
        problem,
        identity,
        guard_version=GUARD_VERSION,
        environment_key=environment.key,
    )


async def _guidance(
    services: Services, problem: Problem, agent: Agent, identity: str
) -> GuidanceView:
    standing = await services.standing(problem)
    return await off_loop(standing.view, agent.id, identity)


async def _enqueue(
    ctx: ToolContext,
    kind: JobKind,
    problem: Problem,
    identity: str,
    agent: Agent,
    environment: Environment,
    force: bool,
    wait_s: float,
) -> CallToolResult:
    services = ctx.request_context.lifespan_context
    enqueued = await off_loop(
        services.archive.jobs.enqueue,
        kind,
        problem.name,
        identity,
        agent=agent.id,
        device=services.settings.device,
        guard_key=f"{GUARD_VERSION}:{environment.key}",
        force=force,
    )
    services.jobs.announce()
    known = enqueued.job.state is JobState.DONE
    return await _wait(ctx, enqueued.job, agent, wait_s, cached=known)


async def _wait(
    ctx: ToolContext, job: Job, agent: Agent, wait_s: float, *, cached: bool
) -> CallToolResult:
    """The job's result, or where it stands after ``wait_s``."""

    async def beat(elapsed_s: float, message: str) -> None:
        await ctx.report_progress(elapsed_s, None, message)

    services = ctx.request_context.lifespan_context
    job = await services.jobs.wait(job.id, min(wait_s, MAX_WAIT_S), beat)
    if job.state is JobState.FAILED:
        raise failed_job(job.id, job.error or "")
    if job.state is not JobState.DONE:
        position = await off_loop(services.archive.jobs.position, job.id)
        elapsed_s = time.time() - job.created_at
        phase = services.jobs.phase(job)
        return reply(unfinished_view(job, phase=phase, position=position, elapsed_s=elapsed_s))
    return reply(await _result(services, job, agent, cached=cached))


async def _result(services: Services, job: Job, agent: Agent, *, cached: bool) -> JobView:
    assert job.result_id is not None, "a finished job has a result"
    problem = services.problems.get(job.problem)
    guidance = await _guidance(services, problem, agent, job.solution_id)
    if job.kind is JobKind.VERIFY:
        verdict = await off_loop(services.archive.results.verdict, job.result_id)
        return verdict_view(verdict, job_id=job.id, cached=cached, guidance=guidance)
    stored = await off_loop(services.archive.results.benchmark, job.result_id)
    history = await off_loop(services.archive.leaders.history, job.problem, stored.device_name)
    promoted = any(promotion.benchmark_id == stored.id for promotion in history)
    return benchmark_view(
        stored, problem, promoted=promoted, job_id=job.id, cached=cached, guidance=guidance
    )
