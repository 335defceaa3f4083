"""MCP over Streamable HTTP on a Unix socket: how the agents of one machine reach the server.

Every caller shows a bearer token; the token says which agent it is. Who may connect at all is
decided by the file system: the socket has mode 0600 in a folder of mode 0700.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette

from kernelarc.guard.errors import NotPermitted
from kernelarc.server.app import build_server, configure_logging
from kernelarc.server.services import open_services
from kernelarc.server.settings import ServerSettings

SOCKET_PATH_BYTES = 107
"""Longest path of a Unix socket on Linux (``sun_path`` less its terminator, unix(7))."""

_GRACE_S = 1
"""How long open calls may finish after a stop; with the judge's end it stays below 3 s."""


async def serve_local(
    settings: ServerSettings,
    socket_path: Path,
    *,
    ready: Callable[[], None] | None = None,
    stop: anyio.Event | None = None,
) -> None:
    """Serves on ``socket_path`` until it is stopped; the URL path is ``/mcp``.

    Args:
        settings: The server's settings.
        socket_path: Where the socket is made. Its folder is created with mode 0700.
        ready: Called once, when connections are accepted.
        stop: Ends the server when set. Without it SIGTERM and SIGINT do; with it, signals are
            the caller's business. Cancelling the call stops the server just as gracefully.

    Raises:
        NotPermitted: The folder belongs to somebody else or is open to others, another server
            listens on the socket, or its path is too long.
        BoardError: The database cannot be opened.
    """
    configure_logging()
    await _prepare(socket_path)
    async with open_services(settings) as services:
        app = build_server(services, authenticate=True).streamable_http_app(
            stateless_http=True,
            transport_security=TransportSecuritySettings(allowed_hosts=["localhost"]),
        )
        try:
            await _serve(app, socket_path, ready, stop)
        finally:
            _remove(socket_path)  # not awaited: it must happen when cancelled, too


async def _serve(
    app: Starlette, socket_path: Path, ready: Callable[[], None] | None, stop: anyio.Event | None
) -> None:
    server = _Server(
        uvicorn.Config(
            app,
            uds=str(socket_path),
            log_config=None,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=_GRACE_S,
        ),
        ready,
    )

    async def serve() -> None:
        # Cancelled from outside, the server still closes its connections: only
        # ``should_exit`` below ends it.
        with anyio.CancelScope(shield=True):
            await server.serve()
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        try:
            await (_signalled() if stop is None else stop.wait())
        finally:
            server.should_exit = True


class _Server(uvicorn.Server):
    """uvicorn, without its signal handlers, telling when it listens."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None] | None) -> None:
        super().__init__(config)
        self._ready = ready

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves signals alone: uvicorn would raise them again before the archive is closed."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listens, closes the socket file to others, then reports."""
        await super().startup(sockets)
        if self.started:
            assert self.config.uds is not None
            os.chmod(self.config.uds, 0o600)
            if self._ready is not None:
                self._ready()


async def _prepare(socket_path: Path) -> None:
    """Makes the folder private and the path free."""
    if len(os.fsencode(socket_path)) > SOCKET_PATH_BYTES:
        raise NotPermitted(
            f"socket path too long ({socket_path}): at most {SOCKET_PATH_BYTES} bytes."
        )
    folder = socket_path.parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    facts = folder.stat()
    if facts.st_uid != os.getuid() or stat.S_IMODE(facts.st_mode) & 0o077:
        raise NotPermitted(f"{folder} must belong to you with mode 0700 (chmod 700 {folder}).")
    try:
        stream = await anyio.connect_unix(socket_path)
    except OSError:
        # Nobody listens: it was left behind by a killed server, or is not there.
        _remove(socket_path)
    else:
        await stream.aclose()
        raise NotPermitted(f"another server listens on {socket_path}; join it or stop it first.")


def _remove(socket_path: Path) -> None:
    socket_path.unlink(missing_ok=True)


async def _signalled() -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            return
