"""``kernelarc report``: the page of a run, from the archive."""

from __future__ import annotations

import contextlib
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelarc._version import __version__
from kernelarc.cli.output import console, print_json, reported
from kernelarc.cli.settings import (
    DatabaseOption,
    HomeOption,
    JsonOption,
    opened_archive,
    writing_refused,
)

if TYPE_CHECKING:
    from kernelarc.clients.report import ProblemFacts, ReportData
    from kernelarc.guard.schema import Problem
    from kernelarc.memory.archive import Archive
    from kernelarc.memory.rows import Attempt, Promotion, Run, RunReport


def report(
    run_id: Annotated[
        str | None, typer.Argument(metavar="RUN", help="Id of a run; default: the latest.")
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Where to write the page.")] = Path(
        "kernelarc-report.html"
    ),
    database: DatabaseOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the report of a run: one HTML file with plots, which needs no network."""
    from kernelarc.clients.report import summarise
    from kernelarc.guard.errors import RequestError

    with reported(as_json=as_json), opened_archive(database, home, create=False) as archive:
        if run_id is None:
            runs = archive.runs.runs()
            if not runs:
                raise RequestError("there is no run yet; start one with `kernelarc run PROBLEM`.")
            run_id = runs[0].id
        run = known_run(archive, run_id)
        path, data = write_report(archive, run_id, output)
        if as_json:
            print_json(outcome_document(data, run.state.value, run.reason, path))
        else:
            console().print(summarise(data))
            console().print(f"report: {path}", soft_wrap=True)


def known_run(archive: Archive, run_id: str) -> Run:
    """A run by its id.

    Raises:
        UnknownId: there is none; the text lists the newest ones.
    """
    from kernelarc.guard.errors import UnknownId

    try:
        return archive.runs.run(run_id)
    except UnknownId:
        newest = [found.id for found in archive.runs.runs()[:5]]
        hint = f"Newest runs: {', '.join(newest)}." if newest else "There is no run yet."
        raise UnknownId("run", run_id, f"{hint} `kernelarc run PROBLEM` starts one.") from None


def write_report(
    archive: Archive, run_id: str, path: Path, *, option: str = "--output"
) -> tuple[Path, ReportData]:
    """Write the page of a run atomically; returns its absolute path and what it shows.

    Raises:
        RequestError: it cannot be written there; ``option`` chooses another place.
    """
    from kernelarc.clients.report import build_report

    data = report_data(archive, run_id)
    target = path.expanduser().absolute()
    page = build_report(data)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(page, "utf-8")
        temporary.replace(target)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise writing_refused(target, error, option) from None
    return target, data


def outcome_document(data: ReportData, state: str, reason: str, path: Path) -> dict[str, Any]:
    """A run as one JSON object."""
    return {
        "run": data.run.run_id,
        "state": state,
        "reason": reason,
        "report": str(path),
        "problems": [_problem_document(problem) for problem in data.problems],
    }


def _problem_document(problem: ProblemFacts) -> dict[str, Any]:
    leader = problem.leader
    speedup = leader and leader.over_reference
    return {
        "problem": problem.name,
        "attempts": len(problem.attempts),
        "promotions": len(problem.promotions),
        "rejected": problem.rejects,
        "roofline_share": problem.roofline_share,
        "leader": leader
        and {
            "solution_id": leader.solution_id,
            "agent": leader.agent,
            "strategy": leader.strategy,
            "speedup_over_reference": speedup and speedup.model_dump(),
        },
    }


def report_data(archive: Archive, run_id: str) -> ReportData:
    """Collect a run from the archive."""
    from kernelarc.clients.report import AgentFacts, ReportData, RunFacts

    found = archive.reports.run_report(run_id)
    problems = tuple(_problem(archive, found, name) for name in found.run.spec["problems"])
    cap = found.run.spec.get("board", {}).get("cap")
    verdicts = [
        stored.verdict
        for attempt in found.attempts
        if (stored := archive.results.latest_verdict(attempt.problem, attempt.solution_id))
    ]
    order = {"none": 0, "reduced": 1, "full": 2}
    reasons = _end_reasons(archive, run_id)
    return ReportData(
        run=RunFacts(
            run_id=run_id,
            state=found.run.state.value,
            reason=found.run.reason,
            started=_moment(found.run.started_at),
            ended=_moment(found.run.ended_at) if found.run.ended_at else None,
            device=found.run.spec["device"],
            version=__version__,
            board="shared, unlimited" if cap is None else f"at most {cap} insights per read",
        ),
        agents=tuple(
            AgentFacts(
                name=agent.name,
                kind=agent.kind,
                strategy=next(
                    (a.strategy for a in found.attempts if a.agent == agent.id),
                    agent.strategy or "",
                ),
                state=agent.state.value,
                reason=reasons.get(agent.id, ""),
            )
            for agent in found.agents
        ),
        problems=problems,
        environment=archive.results.environment(verdicts[-1].environment_key) if verdicts else None,
        isolation=min((v.isolation for v in verdicts), key=lambda i: order[i.level], default=None),
    )


def _end_reasons(archive: Archive, run_id: str) -> dict[str, str]:
    """Why each agent ended, by agent id; the last sitting counts."""
    reasons: dict[str, str] = {}
    after = 0
    while events := archive.runs.events(run_id, after=after):
        for event in events:
            if event.kind == "agent_ended" and event.agent is not None:
                reasons[event.agent] = str(event.payload.get("reason", ""))
        after = events[-1].id
    return reasons


def _problem(archive: Archive, found: RunReport, name: str) -> ProblemFacts:
    from kernelarc.clients.report import InsightFacts, ProblemFacts
    from kernelarc.guard import problems

    problem = problems.get(name)
    attempts = [a for a in found.attempts if a.problem == name]
    promotions = [p for p in found.promotions if p.problem == name]
    numbers: dict[str, int] = {}
    for number, attempt in enumerate(attempts, start=1):
        numbers.setdefault(attempt.solution_id, number)
    names = {agent.id: agent.name for agent in found.agents}
    return ProblemFacts(
        name=name,
        title=problem.contract.title,
        workloads=_workloads(archive, problem, promotions, found.run.spec["device"]),
        attempts=tuple(_attempt(archive, a, i) for i, a in enumerate(attempts, start=1)),
        promotions=tuple(_promotion(archive, p, numbers, names) for p in promotions),
        insights=tuple(
            InsightFacts(
                time=_moment(i.created_at),
                agent=i.agent_name,
                kind=i.kind.value,
                strategy=i.strategy,
                text=i.text,
                verified=i.verified,
            )
            for i in found.insights
            if i.problem == name
        ),
    )


def _attempt(archive: Archive, attempt: Attempt, sequence: int) -> Any:  # noqa: ANN401
    from kernelarc.clients.report import AttemptFacts, Speedup

    benchmark = archive.results.latest_benchmark(attempt.problem, attempt.solution_id, None)
    verdict = archive.results.latest_verdict(attempt.problem, attempt.solution_id)
    result = benchmark.result if benchmark else None
    status = attempt.status
    if result is not None and result.status.value != "PASSED":
        status = result.status
    return AttemptFacts(
        sequence=sequence,
        time=_moment(attempt.created_at),
        agent=attempt.agent_name,
        strategy=attempt.strategy,
        solution_id=attempt.solution_id,
        status=status,
        outcome=attempt.outcome,
        message=result.reason if result else (verdict.verdict.message if verdict else ""),
        speedup=Speedup.of(result.speedup) if result and result.speedup else None,
        latency_us=attempt.latency_us,
    )


def _promotion(
    archive: Archive, promotion: Promotion, numbers: dict[str, int], names: dict[str, str]
) -> Any:  # noqa: ANN401
    from kernelarc.clients.report import PromotionFacts, Speedup

    result = archive.results.benchmark(promotion.benchmark_id).result
    over = result.speedup_over_reference
    return PromotionFacts(
        attempt=numbers[promotion.solution_id],
        time=_moment(promotion.created_at),
        agent=names.get(promotion.agent or "", promotion.agent or ""),
        strategy=promotion.strategy or "",
        solution_id=promotion.solution_id,
        over_reference=Speedup.of(over) if over else None,
        over_previous=Speedup.of(result.speedup) if result.speedup else None,
    )


def _workloads(
    archive: Archive, problem: Problem, promotions: list[Promotion], device: str
) -> tuple[Any, ...]:
    """Latencies of the last leader and of the reference, from its own session."""
    from kernelarc.clients.report import WorkloadFacts
    from kernelarc.guard.schema import axes_text

    if not promotions:
        return ()
    last = archive.results.benchmark(promotions[-1].benchmark_id).result
    facts = []
    for workload in problem.ranked(device):
        measured = last.performance.get(workload.uuid)
        facts.append(
            WorkloadFacts(
                label=axes_text(workload.axes),
                reference_us=measured.reference_latency_us if measured else None,
                leader_us=measured.latency_us if measured else None,
                floor_us=measured.floor_us if measured else None,
                bound=measured.bound if measured else None,
            )
        )
    return tuple(facts)


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
