"""MCP over standard input and output, for one client that starts this process.

Two things the SDK's own runner does not do:

* **Probes do not choose an era.** Some clients send ``server/discover`` to see what is there
  and then open with ``initialize``. The SDK takes the probe as a decision for the stateless
  protocol and refuses the handshake. Here leading probes are answered in place, and the first
  other request decides.
* **SIGTERM is an end of input.** A thread blocked in ``read(0)`` cannot be cancelled. Input is
  therefore relayed through a pipe, and the relay stops on a signal: the SDK then sees an
  ordinary end of input and winds down as if the client had left.
"""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import anyio.to_thread
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server import MCPServer
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import DiscoverResult, JSONRPCRequest, JSONRPCResponse

from kernelarc.server.app import build_server, configure_logging
from kernelarc.server.services import Services, open_services
from kernelarc.server.settings import ServerSettings

STATELESS_VERSION = "2026-07-28"
"""The first protocol version without a handshake."""

TOKEN_VARIABLE = "KERNELARC_TOKEN"  # noqa: S105  (its name, not a token)

_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_SERVER_KEY = "io.modelcontextprotocol/serverInfo"
_CHUNK_BYTES = 1 << 16


async def serve_stdio(settings: ServerSettings) -> None:
    """Serves until the client closes standard input, or SIGTERM or SIGINT arrives.

    The caller is the agent whose token is in ``KERNELARC_TOKEN``, or ``local`` without one.
    Standard output carries protocol messages only; the log goes to standard error. A job that
    is running when the server stops goes back to the queue.

    Raises:
        BoardError: The database cannot be opened.
        NotPermitted: ``KERNELARC_TOKEN`` is the token of no agent.
    """
    configure_logging()
    token = os.environ.get(TOKEN_VARIABLE)
    with _relayed_stdin() as (source, sink):
        async with open_services(settings, token=token) as services:
            server = build_server(services)
            async with anyio.create_task_group() as tasks:
                relay = anyio.CancelScope()
                tasks.start_soon(_relay, source, sink, relay)
                tasks.start_soon(_cancel_on_signal, relay)
                await run_tolerant(server)
                tasks.cancel_scope.cancel()


async def run_tolerant(server: MCPServer[Services]) -> None:
    """Serves ``server`` on standard input and output until the input ends; tolerates probes."""
    low = server._lowlevel_server
    async with stdio_server() as (read, write):
        send, receive = anyio.create_memory_object_stream[SessionMessage | Exception](0)

        async def sort(out: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
            opening = True
            async with out:
                async for item in read:
                    request = _request(item)
                    if opening and request is not None:
                        if _is_probe(request):
                            await write.send(SessionMessage(_probe_answer(server, request)))
                            continue
                        opening = False
                    await out.send(item)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(sort, send)
            await low.run(receive, write, low.create_initialization_options())
            tasks.cancel_scope.cancel()


def _request(item: SessionMessage | Exception) -> JSONRPCRequest | None:
    if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCRequest):
        return item.message
    return None


def _is_probe(request: JSONRPCRequest) -> bool:
    meta = (request.params or {}).get("_meta") or {}
    return request.method == "server/discover" and meta.get(_VERSION_KEY) == STATELESS_VERSION


def _probe_answer(server: MCPServer[Services], request: JSONRPCRequest) -> JSONRPCResponse:
    low = server._lowlevel_server
    found = DiscoverResult(
        supported_versions=[STATELESS_VERSION],
        instructions=server.instructions,
        capabilities=low.get_capabilities(protocol_version=STATELESS_VERSION),
    )
    body = found.model_dump(by_alias=True, mode="json", exclude_none=True)
    body["_meta"] = {_SERVER_KEY: low.server_info_stamp}
    return JSONRPCResponse(jsonrpc="2.0", id=request.id, result=body)


@contextmanager
def _relayed_stdin() -> Iterator[tuple[int, int]]:
    """Puts a pipe in the place of descriptor 0; yields the real input and the pipe's far end."""
    source = os.dup(0)
    near, far = os.pipe()
    os.dup2(near, 0)
    os.close(near)
    os.set_blocking(far, False)
    try:
        yield source, far
    finally:
        os.dup2(source, 0)
        os.close(source)


async def _relay(source: int, sink: int, scope: anyio.CancelScope) -> None:
    """Copies ``source`` to ``sink`` until its end or until ``scope`` is cancelled; closes sink."""
    # Regular files and devices such as /dev/null cannot be waited for; they never block a read.
    mode = os.fstat(source).st_mode
    pollable = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(source)
    try:
        with scope:
            while True:
                if pollable:
                    await anyio.wait_readable(source)
                chunk = await anyio.to_thread.run_sync(os.read, source, _CHUNK_BYTES)
                if not chunk:
                    return
                await _write(sink, chunk)
    finally:
        os.close(sink)


async def _write(sink: int, chunk: bytes) -> None:
    view = memoryview(chunk)
    while view:
        await anyio.wait_writable(sink)
        try:
            view = view[os.write(sink, view) :]
        except BrokenPipeError:
            return


async def _cancel_on_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()
            return
