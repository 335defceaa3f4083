"""``kernelarc problems``: what can be optimised, and whether a problem is fit to be used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelarc.cli.output import REJECTED, console, print_json, progress_line, reported
from kernelarc.cli.settings import (
    DeviceOption,
    HomeOption,
    IsolationOption,
    JsonOption,
    checked_device,
    checked_isolation,
    home_folder,
)

if TYPE_CHECKING:
    from kernelarc.guard.pipeline import GuardSettings
    from kernelarc.guard.schema import AdmissionReport, Problem

HONEST = "honest"
"""Name of the one check that must not be refused: the reference in its declared precision."""

app = typer.Typer(help="List, show and check problems.", no_args_is_help=True)


@app.command("list", epilog="Example: `kernelarc problems list`")
def list_problems(as_json: JsonOption = False) -> None:
    """List the built-in problems."""
    from rich.table import Table

    from kernelarc.guard import problems

    with reported(as_json=as_json):
        rows = [_row(problems.get(name)) for name in problems.names()]
        if as_json:
            print_json(rows)
            return
        table = Table("problem", "title", "category", "cpu", "gpu")
        for row in rows:
            table.add_row(
                row["name"],
                row["title"],
                row["category"],
                str(row["cpu_workloads"]),
                str(row["gpu_workloads"]),
            )
        console().print(table)


def _row(problem: Problem) -> dict[str, Any]:
    return {
        "name": problem.name,
        "title": problem.contract.title,
        "category": problem.contract.category,
        "cpu_workloads": len(problem.ranked("cpu")),
        "gpu_workloads": len(problem.ranked("gpu")),
    }


@app.command("show", epilog="Example: `kernelarc problems show rmsnorm`")
def show(
    problem: Annotated[str, typer.Argument(help="Built-in problem or a folder.")],
    as_json: JsonOption = False,
) -> None:
    """Show a problem: contract, signatures to implement, reference, workloads."""
    from rich.syntax import Syntax
    from rich.text import Text

    from kernelarc.cli.evaluate import find_problem
    from kernelarc.guard.schema import axes_text, cpp_signature, python_signature

    with reported(as_json=as_json):
        loaded = find_problem(problem)
        if as_json:
            data = loaded.model_dump(mode="json", exclude={"folder"})
            signatures = {"cpp": cpp_signature(loaded), "python": python_signature(loaded)}
            print_json({"name": loaded.name, **data, "signatures": signatures})
            return
        out = console()
        out.print(Text(f"{loaded.name}: {loaded.contract.title}", "bold"))
        out.print(Text(loaded.contract.summary))
        out.print(Text("\nC++", "bold"))
        out.print(Syntax(cpp_signature(loaded), "cpp"))
        out.print(Text("Python", "bold"))
        out.print(Syntax(python_signature(loaded), "python"))
        out.print(Text("Reference", "bold"))
        out.print(Syntax(loaded.definition.reference, "python"))
        out.print(Text("Workloads", "bold"))
        for workload in loaded.workloads:
            tags = loaded.contract.devices.get(workload.uuid, ["cpu", "gpu"])
            out.print(Text(f"  {'/'.join(tags):8} {axes_text(loaded.axes(workload))}"))
        for warning in loaded.warnings:
            out.print(Text(f"warning: {warning}", "yellow"))


@app.command("check", epilog="Example: `kernelarc problems check` (all of them)")
def check(
    names: Annotated[
        list[str] | None, typer.Argument(help="Built-in problems or folders; none: all built-in.")
    ] = None,
    device: DeviceOption = "cpu",
    isolation: IsolationOption = "reduced",
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check that each problem's tolerance refuses wrong answers and takes right ones.

    Zeros, ones, the mean, a copy of an input, lower precision and dropped terms must all fail;
    the reference in its declared precision must pass.
    """
    import anyio

    from kernelarc.cli.evaluate import find_problem
    from kernelarc.guard import problems
    from kernelarc.guard.errors import RequestError
    from kernelarc.guard.pipeline import GuardSettings

    with reported(as_json=as_json):
        if repeated := sorted({n for n in names or [] if (names or []).count(n) > 1}):
            raise RequestError(f"name each problem once; repeated: {', '.join(repeated)}.")
        chosen = [find_problem(name) for name in names or problems.names()]
        settings = GuardSettings(
            home=home_folder(home),
            device=checked_device(device),
            isolation=checked_isolation(isolation),
        )
        judged = [p for p in chosen if p.ranked(settings.device)]
        reports = anyio.run(_admit, settings, judged, not as_json)
        if as_json:
            print_json([r.model_dump(mode="json") for r in reports])
        else:
            skipped = [p.name for p in chosen if p not in judged]
            _show(reports, skipped, settings.device)
        if not all(r.admitted for r in reports):
            raise typer.Exit(REJECTED)


async def _admit(
    settings: GuardSettings, chosen: list[Problem], progress: bool
) -> list[AdmissionReport]:
    from kernelarc.guard.pipeline import open_guard

    reports = []
    with progress_line("starting the guard") as update:
        async with open_guard(settings) as guard:
            for problem in chosen:
                if progress:
                    update(f"checking {problem.name}")
                reports.append(await guard.admit(problem))
    return reports


def _show(reports: list[AdmissionReport], skipped: list[str], device: str) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table("problem", "admitted", "wrong answers refused", "first that was not")
    for report in reports:
        wrong = [c for c in report.checks if c.name != HONEST]
        refused = sum(c.refused for c in wrong)
        leak = next(
            (f"{c.name}: {c.detail}" for c in report.checks if c.refused == (c.name == HONEST)), ""
        )
        table.add_row(
            report.problem,
            Text("yes", "green") if report.admitted else Text("no", "bold red"),
            f"{refused} of {len(wrong)}",
            Text(leak),
        )
    console().print(table)
    if skipped:
        console().print(Text(f"no {device} workloads, not checked: {', '.join(skipped)}", "dim"))
