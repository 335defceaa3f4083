"""``kernelarc stdio`` and the orchestrator's ``serve-socket``."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelarc.cli.output import first_error, reported
from kernelarc.cli.settings import (
    DatabaseOption,
    DeviceOption,
    HomeOption,
    IsolationOption,
    checked_device,
    checked_isolation,
    database_file,
    home_folder,
    unusable_database,
)
from kernelarc.guard.errors import BoardBusy, BoardError, KernelArcError, RequestError

if TYPE_CHECKING:
    from kernelarc.server.settings import ServerSettings

BoardCapOption = Annotated[
    int | None,
    typer.Option(min=0, help="How many insights of a problem an agent may see; default: all."),
]


def stdio(
    database: DatabaseOption = None,
    home: HomeOption = None,
    device: DeviceOption = "cpu",
    isolation: IsolationOption = "reduced",
    board_cap: BoardCapOption = None,
) -> None:
    """Serve MCP on standard input and output, for one client that starts this command.

    Put it into your client's configuration with `kernelarc install CLIENT --write`.
    """
    import anyio

    from kernelarc.server.stdio import serve_stdio

    with reported():
        settings = _settings(database, home, device, isolation, board_cap, {})
        with _named_database(settings.database):
            anyio.run(serve_stdio, settings)


def serve_socket(
    socket: Annotated[Path, typer.Option()],
    database: DatabaseOption = None,
    home: HomeOption = None,
    device: DeviceOption = "cpu",
    isolation: IsolationOption = "reduced",
    board_cap: BoardCapOption = None,
    plateau: Annotated[str, typer.Option(help="Overrides of the plateau policy, JSON.")] = "{}",
) -> None:
    """Serve MCP on a Unix socket until standard input ends: the server of one orchestrator."""
    import anyio

    with reported():
        settings = _settings(database, home, device, isolation, board_cap, _overrides(plateau))
        anyio.run(_serve_socket, settings, socket)


@contextlib.contextmanager
def _named_database(path: Path) -> Iterator[None]:
    """An archive that cannot be opened is an error that names its file."""
    unusable: KernelArcError | None = None
    try:
        yield
    except* BoardBusy:
        raise
    except* BoardError as group:
        unusable = first_error(group)
    # Raised out here: within except*, early versions of Python 3.11 wrap it in a group.
    if unusable is not None:
        raise unusable_database(path, unusable)


def _overrides(plateau: str) -> dict[str, float]:
    """Overrides of the plateau policy.

    Raises:
        RequestError: it is not a JSON object, or names an unknown setting.
    """
    from dataclasses import fields

    from kernelarc.strategies.plateau import PlateauPolicy

    known = [field.name for field in fields(PlateauPolicy)]
    try:
        found = json.loads(plateau)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not set(found) <= set(known):
        raise RequestError(
            f"--plateau {plateau!r} is not understood; it takes a JSON object with any of: "
            f"{', '.join(known)}."
        )
    return found


async def _serve_socket(settings: ServerSettings, socket: Path) -> None:
    import anyio

    from kernelarc.server.local import serve_local

    stop = anyio.Event()

    async def watch_parent() -> None:
        # The orchestrator holds the other end: it ends however the orchestrator ends.
        read = partial(os.read, sys.stdin.fileno(), 4096)
        while await anyio.to_thread.run_sync(read, abandon_on_cancel=True):
            pass
        stop.set()

    def ready() -> None:
        sys.stdout.write("ready\n")
        sys.stdout.flush()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch_parent)
        await serve_local(settings, socket, ready=ready, stop=stop)
        tasks.cancel_scope.cancel()


def _settings(
    database: Path | None,
    home: Path | None,
    device: str,
    isolation: str,
    board_cap: int | None,
    plateau: dict[str, float],
) -> ServerSettings:
    from dataclasses import replace

    from kernelarc.server.settings import ServerSettings
    from kernelarc.strategies.plateau import DEFAULT_POLICY

    return ServerSettings(
        database=database_file(database, home),
        home=home_folder(home),
        device=checked_device(device),
        isolation=checked_isolation(isolation),
        board_cap=board_cap,
        plateau=replace(DEFAULT_POLICY, **plateau),  # type: ignore[arg-type]
    )
