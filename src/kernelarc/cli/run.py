"""``kernelarc run`` and ``kernelarc resume``: a team of agents works on problems."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelarc.cli.output import REJECTED, console, print_json, reported
from kernelarc.cli.settings import (
    DatabaseOption,
    DeviceOption,
    HomeOption,
    IsolationOption,
    JsonOption,
    checked_device,
    checked_isolation,
    home_folder,
    opened_archive,
)

if TYPE_CHECKING:
    from kernelarc.clients.agents.base import Agent, Toolbox
    from kernelarc.clients.orchestrator import RunOutcome
    from kernelarc.clients.report import ReportData
    from kernelarc.clients.run_record import AgentState
    from kernelarc.clients.run_spec import AgentSpec, RunSpec
    from kernelarc.memory.archive import Archive


def run(
    names: Annotated[list[str], typer.Argument(metavar="PROBLEM...", help="Built-in problems.")],
    agents: Annotated[int, typer.Option(min=1, max=64, help="Size of the team.")] = 4,
    attempts: Annotated[
        int, typer.Option(min=1, help="Submissions of each agent to each of its problems.")
    ] = 12,
    minutes: Annotated[
        float, typer.Option(min=0.1, max=10080, help="Time for the whole run.")
    ] = 10.0,
    strategies: Annotated[
        str | None,
        typer.Option(help="Comma-separated strategy ids to start with; default: automatic."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the agents' choices.")] = 0,
    board_cap: Annotated[
        int | None, typer.Option(min=0, help="Insights that an agent may see; default: all.")
    ] = None,
    agent_patience: Annotated[
        int | None, typer.Option(min=1, help="Attempts without promotion until a pivot.")
    ] = None,
    device: DeviceOption = "cpu",
    isolation: IsolationOption = "reduced",
    report: Annotated[
        Path | None, typer.Option(help="Where to write the report; default: the run's folder.")
    ] = None,
    database: DatabaseOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a team of agents on one or more problems, and write a report.

    Ctrl-C stops it; `kernelarc resume` goes on. Exit code 1: no solution was promoted.
    """
    with reported(as_json=as_json):
        spec = _spec(
            names, agents, strategies, attempts, minutes, seed, device, board_cap, agent_patience
        )
        level = checked_isolation(isolation)
        folder = home_folder(home)
        with opened_archive(database, home) as archive:
            run_id = archive.runs.start_run(spec.model_dump(mode="json")).id
            _sitting(archive, run_id, spec, folder, level, report, as_json)


def resume(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="Id of a run, such as r_1.")],
    isolation: IsolationOption = "reduced",
    report: Annotated[
        Path | None, typer.Option(help="Where to write the report; default: the run's folder.")
    ] = None,
    database: DatabaseOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Go on with a run that was interrupted or killed; nothing is repeated.

    Of a run that has finished it shows the result, and how to go on from there.
    """
    from kernelarc.cli.report import known_run
    from kernelarc.clients.run_spec import RunSpec
    from kernelarc.memory.rows import RunState

    with reported(as_json=as_json):
        level = checked_isolation(isolation)
        folder = home_folder(home)
        with opened_archive(database, home, create=False) as archive:
            found = known_run(archive, run_id)
            spec = RunSpec.model_validate(found.spec)
            if found.state is RunState.FINISHED:
                if not as_json:
                    console().print(f"run {run_id} has finished: there is nothing to resume.")
                place = report or _run_folder(folder, run_id) / "report.html"
                _conclude(archive, run_id, spec, found.state, found.reason, place, as_json)
                return
            archive.runs.set_run_state(run_id, RunState.RUNNING, reason="resumed")
            _sitting(archive, run_id, spec, folder, level, report, as_json)


def _spec(
    names: list[str],
    agents: int,
    strategies: str | None,
    attempts: int,
    minutes: float,
    seed: int,
    device: str,
    board_cap: int | None,
    agent_patience: int | None,
) -> RunSpec:
    from kernelarc.clients.run_spec import BoardSpec, Budgets, PlateauSpec, RunSpec, team
    from kernelarc.guard import problems
    from kernelarc.guard.errors import RequestError
    from kernelarc.server.guidance import category
    from kernelarc.strategies import catalogue

    known = catalogue.load()
    fitting: dict[str, None] = {}
    for name in names:
        problem = problems.get(name)
        if not problem.ranked(checked_device(device)):
            raise RequestError(f"problem {name!r} has no workloads for device {device!r}.")
        fitting |= dict.fromkeys(s.id for s in known.applicable(category(problem), device))
    wanted = [s.strip() for s in strategies.split(",") if s.strip()] if strategies else []
    if strategies is not None and not wanted:
        raise RequestError(
            "--strategies is empty; name ids, separated by commas, or leave it out. Allowed: "
            f"{', '.join(fitting)}."
        )
    for strategy in wanted:
        known.get(strategy, offer=fitting)
    if repeated := sorted({n for n in names if names.count(n) > 1}):
        raise RequestError(f"name each problem once; repeated: {', '.join(repeated)}.")
    members = [
        member.model_copy(update={"strategy": wanted[i % len(wanted)]}) if wanted else member
        for i, member in enumerate(team(agents))
    ]
    return RunSpec(
        problems=names,
        agents=members,
        budgets=Budgets(attempts=attempts, minutes=minutes),
        seed=seed,
        device=device,
        board=BoardSpec(cap=board_cap),
        plateau=PlateauSpec(agent_patience=agent_patience),
    )


def _sitting(
    archive: Archive,
    run_id: str,
    spec: RunSpec,
    home: Path,
    isolation: str,
    report: Path | None,
    as_json: bool,
) -> None:
    import anyio

    folder = _run_folder(home, run_id)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(spec.model_dump_json(indent=2), "utf-8")
    outcome = anyio.run(_orchestrate, archive, run_id, spec, home, isolation, as_json)
    place = report or folder / "report.html"
    data = _conclude(archive, run_id, spec, outcome.state, outcome.reason, place, as_json)
    if not any(problem.promotions for problem in data.problems):
        raise typer.Exit(REJECTED)


def _run_folder(home: Path, run_id: str) -> Path:
    return home / "runs" / run_id


def _conclude(
    archive: Archive,
    run_id: str,
    spec: RunSpec,
    state: str,
    reason: str,
    report: Path,
    as_json: bool,
) -> ReportData:
    """Write the report and tell what came of the run, and what can be done next."""
    from kernelarc.cli.report import outcome_document, write_report
    from kernelarc.clients.report import summarise
    from kernelarc.memory.rows import RunState

    path, data = write_report(archive, run_id, report, option="--report")
    follow = f"resume {run_id}"
    if state == RunState.FINISHED:
        follow = f"run {' '.join(spec.problems)}"
    if as_json:
        document = outcome_document(data, str(state), reason, path)
        print_json(document | {"next": f"kernelarc {follow}"})
        return data
    out = console()
    out.print(summarise(data))
    out.print(f"run {run_id} {state}: {reason}")
    meaning = "start from its leader" if state == RunState.FINISHED else "go on"
    out.print(f"{meaning} with: kernelarc {follow}", soft_wrap=True)
    out.print(f"report: {path}", soft_wrap=True)
    return data


async def _orchestrate(
    archive: Archive, run_id: str, spec: RunSpec, home: Path, isolation: str, as_json: bool
) -> RunOutcome:
    from kernelarc.cli.run_recorder import ArchiveRecorder, earlier_seconds
    from kernelarc.cli.server_process import ServerArguments, running_server
    from kernelarc.clients.live import live_view
    from kernelarc.clients.orchestrator import RunHandle, orchestrate
    from kernelarc.clients.session import socket_session

    members, states = _enrol(archive, run_id, spec)
    tokens = {name: token for name, (_, token) in members.items()}
    recorder = ArchiveRecorder(archive, run_id, {n: agent for n, (agent, _) in members.items()})
    arguments = ServerArguments(
        database=archive.path,
        home=home,
        device=spec.device,
        isolation=isolation,
        board_cap=spec.board.cap,
        plateau=spec.plateau.model_dump(exclude_none=True),
        log=home / "runs" / run_id / "server.log",
    )
    elapsed_s = earlier_seconds(archive, run_id)
    async with running_server(arguments) as socket, live_view(console(stderr=as_json)) as observe:

        def connect(name: str) -> AbstractAsyncContextManager[Toolbox]:
            return socket_session(socket, tokens[name])

        handle = RunHandle(
            run_id=run_id,
            spec=spec,
            recorder=recorder,
            connect=connect,
            agent=_agent,
            states=states,
            elapsed_s=elapsed_s,
        )
        return await orchestrate(handle, observe=observe)


def _agent(spec: AgentSpec) -> Agent:
    from kernelarc.clients.agents.builtin import BuiltinAgent
    from kernelarc.guard.errors import RequestError

    if spec.kind != "builtin":
        raise RequestError(
            f"agent kind {spec.kind!r} is not in this version; available: builtin. Other MCP "
            "clients can join through `kernelarc stdio`."
        )
    return BuiltinAgent()


def _enrol(
    archive: Archive, run_id: str, spec: RunSpec
) -> tuple[Mapping[str, tuple[str, str]], Mapping[str, AgentState]]:
    """Identities with fresh tokens: agent id and token by name, and how each stood."""
    import secrets

    from kernelarc.clients.run_record import AgentState

    known = {agent.name: agent.state.value for agent in archive.runs.agents(run_id)}
    members = {}
    for agent in spec.agents:
        token = secrets.token_urlsafe(32)
        row = archive.runs.ensure_agent(agent.name, run=run_id, kind=agent.kind, token=token)
        members[agent.name] = (row.id, token)
    valid = {state.value for state in AgentState}
    states = {name: AgentState(state) for name, state in known.items() if state in valid}
    return members, states
