"""The orchestrator's server: a child process on a Unix socket, restarted when it dies."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.abc

from kernelarc.guard.errors import GuardUnavailable

MAX_RESTARTS = 50
"""A run in which the server dies more often than that has a problem that restarting hides."""
STOP_S = 5.0


@dataclass(frozen=True)
class ServerArguments:
    """How the server of a run is started."""

    database: Path
    home: Path
    device: str
    isolation: str
    board_cap: int | None
    plateau: dict[str, float]
    """Overrides of the plateau policy."""
    log: Path

    def command(self, socket: Path) -> list[str]:
        """The command line."""
        options = {
            "--socket": str(socket),
            "--db": str(self.database),
            "--home": str(self.home),
            "--device": self.device,
            "--isolation": self.isolation,
            "--plateau": json.dumps(self.plateau),
        }
        if self.board_cap is not None:
            options["--board-cap"] = str(self.board_cap)
        flat = [word for pair in options.items() for word in pair]
        return [sys.executable, "-m", "kernelarc.cli", "serve-socket", *flat]


@contextlib.asynccontextmanager
async def running_server(arguments: ServerArguments) -> AsyncIterator[Path]:
    """Keep a server alive for the time of the context; yields the path of its socket.

    Raises:
        GuardUnavailable: it does not start, or died more than ``MAX_RESTARTS`` times.
    """
    with tempfile.TemporaryDirectory(prefix="kernelarc-") as folder:
        socket = Path(folder, "mcp.sock")
        async with anyio.create_task_group() as tasks:
            await tasks.start(_keep_alive, arguments, socket)
            try:
                yield socket
            finally:
                tasks.cancel_scope.cancel()


async def _keep_alive(
    arguments: ServerArguments, socket: Path, *, task_status: anyio.abc.TaskStatus[None]
) -> None:
    started = False
    for _ in range(MAX_RESTARTS):
        with arguments.log.open("ab") as log:
            process = await anyio.open_process(
                arguments.command(socket),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        try:
            ready = await _ready(process)
            # A server that was killed from outside is started again; one that gave up is not.
            if not ready and not started and await process.wait() >= 0:
                raise GuardUnavailable(
                    f"the server did not start; its log is {arguments.log}: {_tail(arguments.log)}"
                )
            if ready and not started:
                started = True
                task_status.started()
            await process.wait()
        finally:
            with anyio.CancelScope(shield=True):
                await _stop(process)
    raise GuardUnavailable(
        f"the server died {MAX_RESTARTS} times in this run; its log is {arguments.log}."
    )


async def _ready(process: anyio.abc.Process) -> bool:
    """Wait for the line that the server writes when it listens; its end means it never did."""
    assert process.stdout is not None
    try:
        return bool(await process.stdout.receive())
    except anyio.EndOfStream:
        return False


async def _stop(process: anyio.abc.Process) -> None:
    """The end of its stdin asks the server to stop; SIGKILL if it does not."""
    if process.stdin is not None:
        await process.stdin.aclose()
    with anyio.move_on_after(STOP_S):
        await process.wait()
    if process.returncode is None:
        process.kill()
    await process.aclose()


def _tail(path: Path) -> str:
    lines = path.read_text("utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "(empty)"
