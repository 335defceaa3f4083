"""``kernelarc eval``: judge one solution, without a server and without leaving a trace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelarc.cli.output import (
    OK,
    REJECTED,
    UNAVAILABLE,
    console,
    print_json,
    progress_line,
    reported,
)
from kernelarc.cli.settings import (
    DatabaseOption,
    DeviceOption,
    HomeOption,
    IsolationOption,
    JsonOption,
    checked_device,
    checked_isolation,
    existing_database,
    home_folder,
    opened_archive,
)

if TYPE_CHECKING:
    from kernelarc.guard.schema import BenchmarkResult, Problem, Solution, Verdict


def evaluate(
    problem: Annotated[
        str, typer.Argument(help="Name of a built-in problem, or a folder with definition.json.")
    ],
    solution: Annotated[
        Path, typer.Argument(help="A solution.json, or a source file (.cpp, .py).")
    ],
    language: Annotated[
        str | None, typer.Option(help="Language of a bare source file, when its name misleads.")
    ] = None,
    benchmark: Annotated[
        bool, typer.Option("--benchmark/--no-benchmark", help="Time it when it is right.")
    ] = True,
    against: Annotated[
        str,
        typer.Option(help="Whom to time it against: reference, or leader (from the database)."),
    ] = "reference",
    device: DeviceOption = "cpu",
    isolation: IsolationOption = "reduced",
    compile_timeout: Annotated[
        float, typer.Option(min=1, max=3600, help="Seconds for compiling.")
    ] = 60.0,
    call_timeout: Annotated[
        float, typer.Option(min=0.1, max=3600, help="Seconds for each call.")
    ] = 10.0,
    total_timeout: Annotated[
        float, typer.Option(min=1, max=86400, help="Seconds for each stage.")
    ] = 300.0,
    database: DatabaseOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Judge a solution: compile, verify, and time it against the reference.

    Nothing is stored and nobody is promoted: this is a private trial. Agents and MCP clients use
    the server's `compile_and_verify` and `benchmark` instead.
    """
    import anyio

    from kernelarc.guard.errors import RequestError
    from kernelarc.guard.pipeline import GuardSettings

    with reported(as_json=as_json):
        if against not in ("reference", "leader"):
            raise RequestError(f"--against {against!r} is unknown; it takes reference or leader.")
        loaded = find_problem(problem)
        candidate = _load(solution, loaded, language)
        settings = GuardSettings(
            home=home_folder(home),
            device=checked_device(device),
            isolation=checked_isolation(isolation),
            compile_timeout_s=compile_timeout,
            call_timeout_s=call_timeout,
            total_timeout_s=total_timeout,
        )
        file = existing_database(database, home) if against == "leader" else None
        verdict, result = anyio.run(
            _judge, settings, loaded, candidate, benchmark, file, not as_json
        )
        if as_json:
            print_json(document(verdict, result))
        else:
            _show(loaded, verdict, result)
        raise typer.Exit(_exit_code(verdict, result))


def find_problem(name: str) -> Problem:
    """A built-in problem by name, or one from a folder.

    Raises:
        UnknownProblem: neither; the text lists the names.
        MalformedProblem: the folder's files cannot be understood.
    """
    from kernelarc.guard import problems
    from kernelarc.guard.errors import MalformedProblem
    from kernelarc.guard.schema import load_problem

    path = Path(name)
    if not name or name in problems.names() or not path.exists():
        return problems.get(name)
    try:
        return load_problem(path)
    except MalformedProblem as error:
        raise MalformedProblem(
            f"{str(error).rstrip('.')}. A problem is a name from `kernelarc problems list`, or a "
            "folder with definition.json and workload.jsonl."
        ) from None


def _load(path: Path, problem: Problem, language: str | None) -> Solution:
    from kernelarc.guard.errors import MalformedSolution
    from kernelarc.guard.schema import load_solution

    if not path.exists():
        raise MalformedSolution(
            f"there is no file {str(path)!r}; give a solution.json, its folder, or a source file "
            "(.cpp, .py)."
        )
    try:
        return load_solution(path, problem, language)
    except MalformedSolution as error:
        text = str(error)
        if not text.startswith(path.name):
            text = f"{path.name}: {text}"
        raise MalformedSolution(
            f"{text.rstrip('.')}. `kernelarc problems show {problem.name}` prints the function to "
            "write."
        ) from None


async def _judge(
    settings: Any,  # noqa: ANN401 - GuardSettings, imported late
    problem: Problem,
    solution: Solution,
    benchmark: bool,
    database: Path | None,
    progress: bool,
) -> tuple[Verdict, BenchmarkResult | None]:
    from kernelarc.guard.pipeline import open_guard

    with progress_line("starting the guard") as update:

        def show(phase: str, done: int, total: int) -> None:
            if progress:
                update(f"{phase} {done + 1}/{total}" if total else phase)

        async with open_guard(settings) as guard:
            await guard.warm_up()
            verdict = await guard.verify(problem, solution, show)
            if not (benchmark and verdict.passed):
                return verdict, None
            leader = None
            if database is not None:
                environment = await guard.environment()
                leader = _leader(database, problem, environment.device_name)
            return verdict, await guard.benchmark(problem, solution, leader, show)


def _leader(database: Path, problem: Problem, device_name: str) -> Solution | None:
    with opened_archive(database, None) as archive:
        archive.catalogue.register_problem(problem)
        leader = archive.leaders.leader(problem.name, device_name)
        return archive.catalogue.solution(leader.solution_id) if leader else None


def document(verdict: Verdict, result: BenchmarkResult | None) -> dict[str, Any]:
    """The one JSON object that ``--json`` prints."""
    data = verdict.model_dump(mode="json")
    status = data.pop("status")
    if result is not None and result.status.value != "PASSED":
        status = result.status.value
    return {
        "status": status,
        "verdict": verdict.status.value,
        **data,
        "benchmark": result.model_dump(mode="json") if result else None,
    }


def _exit_code(verdict: Verdict, result: BenchmarkResult | None) -> int:
    from kernelarc.guard.schema import BenchmarkOutcome, EvaluationStatus

    if verdict.status is EvaluationStatus.INVALID_REFERENCE:
        return UNAVAILABLE
    rejected = result is not None and result.outcome is BenchmarkOutcome.REJECTED
    return OK if verdict.passed and not rejected else REJECTED


def _show(problem: Problem, verdict: Verdict, result: BenchmarkResult | None) -> None:
    from rich.table import Table
    from rich.text import Text

    from kernelarc.guard.schema import axes_text

    out = console()
    style = "bold green" if verdict.passed else "bold red"
    out.print(Text(verdict.status.value, style), Text(f"solution {verdict.solution_id}"))
    out.print(Text(verdict.message))
    table = Table("workload", "status", "max abs error", "max rel error")
    for item in verdict.evaluations:
        errors = item.correctness
        table.add_row(
            axes_text(item.axes) if item.axes else "hidden shape",
            item.status.value,
            f"{errors.max_absolute_error:g}" if errors and errors.max_absolute_error else "",
            f"{errors.max_relative_error:g}" if errors and errors.max_relative_error else "",
        )
    if verdict.evaluations:
        out.print(table)
    if result is not None:
        out.print(Text(result.outcome.value, "bold"), Text(result.reason))
        _show_timings(problem, result)
    out.print(Text(f"isolation: {verdict.isolation.level}", "dim"))


def _show_timings(problem: Problem, result: BenchmarkResult) -> None:
    from rich.table import Table

    from kernelarc.guard.schema import axes_text, reference_id

    if not result.performance:
        return
    opponent = "reference" if result.leader_id == reference_id(problem) else "leader"
    axes = {workload.uuid: problem.axes(workload) for workload in problem.workloads}
    table = Table("workload", "us", f"{opponent} us", f"time / {opponent}", "floor us", "bound")
    for uuid, p in result.performance.items():
        table.add_row(
            axes_text(axes[uuid]),
            f"{p.latency_us:.1f}",
            f"{p.leader_latency_us:.1f}",
            f"{p.ratio:.3f}",
            f"{p.floor_us:.1f}" if p.floor_us else "",
            p.bound or "",
        )
    console().print(table)
