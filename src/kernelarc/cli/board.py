"""``kernelarc board`` and ``kernelarc leader``: what the archive knows."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelarc.cli.output import console, harmless, print_json, reported
from kernelarc.cli.settings import DatabaseOption, HomeOption, JsonOption, opened_archive

if TYPE_CHECKING:
    from kernelarc.memory.archive import Archive
    from kernelarc.memory.rows import Promotion


UNSPECIFIED = "unspecified"
"""Strategy of those who name none."""


def board(
    problem: Annotated[str, typer.Argument(help="Problem whose board to read.")],
    query: Annotated[str | None, typer.Option(help="Words to search for.")] = None,
    strategy: Annotated[str | None, typer.Option(help="Only this strategy's insights.")] = None,
    verified: Annotated[bool, typer.Option("--verified", help="Only verified insights.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=200, help="At most so many.")] = 20,
    database: DatabaseOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read the board of a problem: what agents concluded, verified insights first."""
    from kernelarc.clients.text import safe
    from kernelarc.guard import problems
    from kernelarc.strategies import catalogue

    with reported(as_json=as_json), opened_archive(database, home, create=False) as archive:
        archive.catalogue.register_problem(problems.get(problem))
        if strategy not in (None, UNSPECIFIED):
            catalogue.load().get(strategy)
        page = archive.board.read(
            problem,
            query=query,
            strategy=strategy,
            verified_only=verified,
            limit=limit,
        )
        if as_json:
            print_json([asdict(i) for i in page.insights])
            return
        if not page.insights:
            console().print("no insights yet.")
        for i in page.insights:
            mark = "verified" if i.verified else "unverified"
            head = f"{i.id} {i.kind.value} ({mark}) {i.agent_name}, {i.strategy}"
            # Agents are untrusted authors: no control characters, no markup.
            console().print(safe(head, "bold" if i.verified else ""))
            console().print(safe(i.text))


def leader(
    problem: Annotated[
        str | None, typer.Argument(help="A problem; without one: one line per problem.")
    ] = None,
    source: Annotated[bool, typer.Option("--source", help="Print the leader's source.")] = False,
    history: Annotated[bool, typer.Option("--history", help="All promotions.")] = False,
    database: DatabaseOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show who leads, by how much, and with what code."""
    from kernelarc.guard import problems
    from kernelarc.guard.errors import RequestError

    with reported(as_json=as_json), opened_archive(database, home, create=False) as archive:
        if problem is None:
            if source or history:
                raise RequestError(
                    "--source and --history need a problem: `kernelarc leader rmsnorm --source`."
                )
            _overview(archive, as_json)
            return
        archive.catalogue.register_problem(problems.get(problem))
        # On any device: only the guard knows the name of this one, and it is not started here.
        promotions = archive.leaders.history(problem, None)
        if as_json:
            print_json(_document(archive, problem, promotions, source, history))
            return
        _show(archive, problem, promotions, source, history)


def _overview(archive: Archive, as_json: bool) -> None:
    from rich.table import Table

    rows: list[tuple[str, dict[str, Any] | None]] = []
    for row in archive.catalogue.problems():
        promotions = archive.leaders.history(row.name, None)
        rows.append((row.name, _brief(promotions)))
    if as_json:
        print_json([{"problem": name, "leader": lead} for name, lead in rows])
        return
    table = Table("problem", "leader", "over reference", "strategy", "device")
    for name, lead in rows:
        if lead is None:
            table.add_row(name, "(the reference)", "", "", "")
            continue
        gain = lead["speedup_over_reference"]
        table.add_row(
            name,
            lead["solution_id"][:12],
            f"{gain:.2f}x" if gain else "",
            lead["strategy"] or "",
            lead["device_name"],
        )
    console().print(table)


def _brief(promotions: list[Promotion]) -> dict[str, Any] | None:
    return asdict(promotions[-1]) if promotions else None


def _document(
    archive: Archive, problem: str, promotions: list[Promotion], source: bool, history: bool
) -> dict[str, Any]:
    data: dict[str, Any] = {"problem": problem, "leader": _brief(promotions)}
    if source and promotions:
        solution = archive.catalogue.solution(promotions[-1].solution_id)
        data["sources"] = {s.path: s.content for s in solution.sources}
    if history:
        data["history"] = [asdict(p) for p in promotions]
    return data


def _show(
    archive: Archive, problem: str, promotions: list[Promotion], source: bool, history: bool
) -> None:
    from rich.text import Text

    out = console()
    if not promotions:
        out.print(f"{problem}: nobody has beaten the reference yet.")
        return
    for promotion in promotions if history else promotions[-1:]:
        gain = promotion.speedup_over_reference
        text = f"{promotion.solution_id[:12]} {promotion.strategy or ''} on {promotion.device_name}"
        if gain:
            text += f", {gain:.2f}x the reference"
        if promotion.speedup:
            text += f", {promotion.speedup:.2f}x the leader before"
        out.print(Text(text))
    if source:
        for file in archive.catalogue.solution(promotions[-1].solution_id).sources:
            out.print(Text(f"\n// {file.path}", "dim"))
            # As it is into a file; what a terminal would obey is left out there.
            typer.echo(harmless(file.content) if sys.stdout.isatty() else file.content)
