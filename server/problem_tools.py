"""Tools that say what can be optimised and who leads."""

from __future__ import annotations

from typing import Annotated

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import Field

from kernelarc.guard.schema import Environment, Problem, cpp_signature, python_signature
from kernelarc.guard.schema.solution import MAX_SOURCE_BYTES, MAX_SOURCES
from kernelarc.memory.board import MAX_TEXT_CHARS
from kernelarc.memory.rows import Promotion
from kernelarc.server import contract_text
from kernelarc.server.blocking import off_loop
from kernelarc.server.candidate_tools import MAX_WAIT_S
from kernelarc.server.guidance import category
from kernelarc.server.services import Services
from kernelarc.server.submission import languages
from kernelarc.server.views import (
    BackupView,
    LeaderLine,
    LeaderView,
    LimitsView,
    NamedLine,
    ProblemLine,
    ProblemList,
    ProblemView,
    PromotionView,
    WorkloadView,
    reply,
    rounded,
)

FIRST_LOOK_S = 8.0
"""Longest that ``list_problems`` waits for a judge that is just starting."""
FLOOR_WAIT_S = 20.0
"""Longest that ``get_problem`` waits for the floors to be measured; they are left out then."""
HISTORY_SHOWN = 20
"""Promotions that ``get_leader`` shows, latest first."""

ToolContext = Context[Services]
ProblemName = Annotated[str, Field(description="Name from list_problems")]


async def list_problems(ctx: ToolContext) -> Annotated[CallToolResult, ProblemList]:
    """List the problems that can be optimised here, each with its leader's speed-up.

    Use it first. Takes a second. Then call get_problem for one of them.
    """
    services = ctx.request_context.lifespan_context
    environment = await services.device.environment_within(FIRST_LOOK_S)
    lines = [await _line(services, name, environment) for name in services.problems.names()]
    return reply(
        ProblemList(
            problems=[line for line in lines if line is not None],
            device=environment.device_name if environment else None,
            next="Call get_problem(problem=...) for one of them.",
        )
    )


async def get_problem(
    problem: ProblemName, ctx: ToolContext
) -> Annotated[CallToolResult, ProblemView]:
    """Everything needed to write a candidate for one problem.

    Use it before the first candidate. Returns the exact signatures, reference source, tolerance,
    ranked workloads with their physical floors on this device, leader, strategies, languages and
    limits. Takes a second; some more when the judge is just starting.
    """
    services = ctx.request_context.lifespan_context
    task = await services.problem(problem)
    environment = await services.device.environment()
    leader = await _leader(services, task.name, environment)
    device = services.settings.device
    strategies = services.catalogue.applicable(category(task), device)
    return reply(
        ProblemView(
            problem=task.name,
            title=task.contract.title or task.name,
            summary=task.contract.summary or task.definition.description,
            category=category(task),
            axes=contract_text.axes(task),
            inputs=contract_text.tensors(task.definition.inputs),
            outputs=contract_text.tensors(task.definition.outputs),
            tolerance=contract_text.tolerances(task, device),
            precision=contract_text.precision(task),
            cpp_signature=cpp_signature(task),
            python_signature=python_signature(task),
            reference=task.definition.reference,
            workloads=await _workloads(services, task, leader),
            leader=None if leader is None else await _leader_line(services, leader),
            strategies=[NamedLine(id=s.id, summary=s.summary) for s in strategies],
            languages=[
                NamedLine(id=language, summary=summary)
                for language, summary in languages(device).items()
            ],
            limits=LimitsView(
                source_bytes=MAX_SOURCE_BYTES,
                files=MAX_SOURCES,
                wait_s=int(MAX_WAIT_S),
                insight_chars=MAX_TEXT_CHARS,
            ),
            device=environment.device_name,
            isolation=(await services.device.isolation()).level,
            next=f'Call read_board(problem="{task.name}") and get_leader, then write a candidate.',
        )
    )


async def get_leader(
    problem: ProblemName,
    ctx: ToolContext,
    source: Annotated[bool, Field(description="Include its source")] = True,
    backups: Annotated[int, Field(description="How many backups to list", ge=0, le=20)] = 3,
    history: Annotated[bool, Field(description="Include earlier leaders")] = False,
) -> Annotated[CallToolResult, LeaderView]:
    """The fastest correct solution on this device: its source, numbers, parents and backups.

    Use it to learn what has to be beaten, or to take a different base after a plateau. Takes a
    second. Without a leader the reference is the one to beat.
    """
    services = ctx.request_context.lifespan_context
    task = await services.problem(problem)
    environment = await services.device.environment()
    leaders = services.archive.leaders
    promotions = await off_loop(leaders.history, task.name, environment.device_name)
    leader = promotions[-1] if promotions else None
    spare = await off_loop(leaders.backups, task.name, environment.device_name, limit=backups)
    view = LeaderView(
        problem=task.name,
        device=environment.device_name,
        backups=[
            BackupView(
                solution_id=backup.solution_id,
                outcome=backup.outcome,
                language=backup.language,
                strategy=backup.strategy,
                speedup_over_its_leader=rounded(backup.speedup),
                latency_us=rounded(backup.latency_us),
            )
            for backup in spare
        ]
        or None,
        history=[await _past(services, past) for past in promotions[: -HISTORY_SHOWN - 1 : -1]]
        if history and promotions
        else None,
        next="Read a backup's source at kernelarc://solutions/{id}; then compile_and_verify."
        if leader is not None or spare
        else "Nobody leads yet: the reference is the one to beat (get_problem has its source). "
        "compile_and_verify a first candidate.",
    )
    if leader is None:
        return reply(view)
    return reply(view.model_copy(update=await _leader_details(services, leader, source)))


async def _leader_details(services: Services, leader: Promotion, source: bool) -> dict[str, object]:
    archive = services.archive
    solution = await off_loop(archive.catalogue.solution, leader.solution_id)
    lineage = await off_loop(archive.leaders.lineage, leader.problem, leader.solution_id)
    return {
        "leader": await _leader_line(services, leader),
        "language": str(solution.language),
        "files": {file.path: file.content for file in solution.sources} if source else None,
        "parents": list(lineage[0].parents) or None if lineage else None,
    }


async def _line(
    services: Services, name: str, environment: Environment | None
) -> ProblemLine | None:
    """One line of the list; ``None`` for a problem without a workload for this device."""
    task = await services.problem(name)
    if not task.ranked(services.settings.device):
        return None
    leader = None if environment is None else await _leader(services, name, environment)
    attempts = await off_loop(services.archive.reports.attempts, name)
    return ProblemLine(
        problem=name,
        title=task.contract.title or name,
        category=category(task),
        attempts=len(attempts),
        leader=None if leader is None else await _leader_line(services, leader),
    )


async def _leader(services: Services, problem: str, environment: Environment) -> Promotion | None:
    return await off_loop(services.archive.leaders.leader, problem, environment.device_name)


async def _leader_line(services: Services, leader: Promotion) -> LeaderLine:
    return LeaderLine(
        solution_id=leader.solution_id,
        strategy=leader.strategy,
        agent=await _agent_name(services, leader.agent),
        latency_us=rounded(leader.latency_us),
        speedup_over_reference=rounded(leader.speedup_over_reference),
    )


async def _past(services: Services, promotion: Promotion) -> PromotionView:
    return PromotionView(
        solution_id=promotion.solution_id,
        strategy=promotion.strategy,
        agent=await _agent_name(services, promotion.agent),
        speedup=rounded(promotion.speedup),
        speedup_over_reference=rounded(promotion.speedup_over_reference),
    )


async def _agent_name(services: Services, agent: str | None) -> str | None:
    return None if agent is None else (await off_loop(services.archive.runs.agent, agent)).name


async def _workloads(
    services: Services, task: Problem, leader: Promotion | None
) -> list[WorkloadView]:
    floors = await services.device.floors_within(task, FLOOR_WAIT_S)
    timings = {}
    if leader is not None:
        stored = await off_loop(services.archive.results.benchmark, leader.benchmark_id)
        timings = stored.result.performance
    views = []
    for workload in task.ranked(services.settings.device):
        floor = floors.get(workload.uuid)
        timing = timings.get(workload.uuid)
        views.append(
            WorkloadView(
                workload=workload.uuid,
                axes=task.axes(workload),
                floor_us=rounded(floor.floor_us) if floor else None,
                bound=floor.bound if floor else None,
                bytes=task.moved_bytes(workload),
                flops=task.flops(workload),
                leader_us=rounded(timing.latency_us) if timing else None,
            )
        )
    return views
