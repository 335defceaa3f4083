"""The short form of a report, for the terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kernelarc.clients.report.data import ProblemFacts, ReportData, Speedup
from kernelarc.clients.text import safe, speedup_text


def summarise(data: ReportData) -> RenderableType:
    """What a run achieved: a table of its problems, then rejected attempts and failed agents."""
    ended = f"{data.run.state}: {data.run.reason}" if data.run.reason else data.run.state
    parts: list[RenderableType] = [
        Text.assemble("Run ", safe(data.run.run_id, "bold"), " ", safe(ended)),
        _problems(data),
    ]
    parts += [line for problem in data.problems if (line := _rejects(problem)) is not None]
    parts += [
        safe(f"agent {agent.name} failed: {agent.reason}", "red")
        for agent in data.agents
        if agent.state == "failed"
    ]
    return Group(*parts)


def _problems(data: ReportData) -> Table:
    table = Table()
    table.add_column("Problem", no_wrap=True)
    table.add_column("Leader", no_wrap=True)
    table.add_column("By")
    for heading in ("Over reference", "Of roofline", "Attempts"):
        table.add_column(heading, justify="right", no_wrap=heading == "Over reference")
    for problem in data.problems:
        leader = problem.leader
        share = problem.roofline_share
        table.add_row(
            safe(problem.name),
            Text("none", "dim") if leader is None else safe(leader.solution_id[:8], "green"),
            safe("" if leader is None else f"{leader.strategy} · {leader.agent}"),
            Text("–" if leader is None else _speedup(leader.over_reference)),
            Text("–" if leader is None or share is None else f"{share:.0%}"),
            Text(f"{len(problem.attempts)}, {len(problem.promotions)} promoted"),
        )
    return table


def _rejects(problem: ProblemFacts) -> Text | None:
    if not problem.rejects:
        return None
    counts = ", ".join(f"{count} {status}" for status, count in problem.rejects.items())
    return safe(f"{problem.name}: rejected {counts}")


def _speedup(speedup: Speedup | None) -> str:
    return "–" if speedup is None else speedup_text(speedup.median, speedup.low, speedup.high)
