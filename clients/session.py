"""An agent's line to the server: a ``Toolbox`` that outlives lost connections and restarts.

Every request opens its own MCP client. A client whose server dies cancels the task that holds
it, and a handshake-era session is unknown to a restarted server, so a client kept over several
requests would have to be replaced at the first fault anyway; over a socket a fresh one costs
a few milliseconds. The server answers a repeated call from its records, so a request that got
lost is simply made again, and a job that is known by its id is asked for by that id.
"""

from __future__ import annotations

import contextlib
import json
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import anyio
import httpx2
import stamina
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    CallToolResult,
    ReadResourceResult,
    TextContent,
    TextResourceContents,
)

from kernelarc.clients.agents.base import ToolFailed
from kernelarc.guard.errors import GuardUnavailable, NotPermitted

# Where logging is not configured Python would print a line for each retry, into the live view.
logging.getLogger("stamina").addHandler(logging.NullHandler())

T = TypeVar("T")

_LOST: tuple[type[Exception], ...] = (
    MCPError,
    httpx2.HTTPError,
    OSError,
    anyio.ClosedResourceError,
    anyio.BrokenResourceError,
    anyio.EndOfStream,
)
"""What the loss of a connection looks like, depending on the moment and on the protocol's era."""

_LOST_IN_ANY_WRAPPING: tuple[type[Exception], ...] = (*_LOST, ExceptionGroup)

SOCKET_URL = "http://localhost/mcp"
"""Address of the endpoint on a Unix socket; the host part only satisfies the server's check."""

QUEUEING_TOOLS = frozenset({"compile_and_verify", "benchmark"})
"""Tools whose work is a job of the server."""


class ServerUnreachable(GuardUnavailable):
    """No answer from the server, however often it was asked."""


@dataclass(frozen=True)
class Patience:
    """How long a session waits for what, in seconds."""

    request_s: float = 90.0
    """One request and its answer. A tool of the server answers within 45 s."""
    reconnect_s: float = 120.0
    """Time over which a request that got lost is repeated."""
    call_s: float = 3600.0
    """One tool call in all, the time of its job in the queue included."""
    first_wait_s: int = 1
    """How long the server may hold back the id of a job. Until it is known, a cancelled call
    cannot withdraw its job."""
    poll_s: int = 45
    """How long one question for a job's result may wait at the server."""
    backoff_s: float = 0.2
    """Pause before the first repetition; doubled each time, with jitter, up to 10 s."""
    withdraw_s: float = 5.0
    """How long a cancelled call tries to withdraw its job."""


class Session:
    """Speaks MCP as one agent. Calls may overlap; each has a connection of its own.

    Args:
        connect: Makes a new, not yet entered MCP client.
        patience: Limits of all waiting.
    """

    def __init__(
        self,
        connect: Callable[[], AbstractAsyncContextManager[Client]],
        *,
        patience: Patience | None = None,
    ) -> None:
        self._connect = connect
        self._patience = patience or Patience()

    async def call(self, tool: str, **arguments: object) -> dict[str, object]:
        """Call a tool and return its structured content.

        A job is followed until it is done. When the call is cancelled, a job whose id is known
        is withdrawn first; that takes at most ``Patience.withdraw_s``.

        Raises:
            ToolFailed: the server refused or failed the call; the text is for the agent.
            ServerUnreachable: no connection, or no result, within the limits.
            NotPermitted: the server does not know this agent's token.
        """
        if tool in QUEUEING_TOOLS:
            arguments.setdefault("wait_s", self._patience.first_wait_s)
        try:
            with anyio.fail_after(self._patience.call_s):
                return await self._follow(tool, await self._tool(tool, arguments))
        except TimeoutError:
            raise ServerUnreachable(
                f"{tool} had no result after {self._patience.call_s:.0f} s, the time in the "
                "queue included; its job was withdrawn. Repeat the same call later."
            ) from None

    async def read(self, uri: str) -> str:
        """Return the text of a resource.

        Raises:
            ToolFailed: there is no such resource, or it is not text.
            ServerUnreachable: no connection within the limits.
            NotPermitted: the server does not know this agent's token.
        """
        result: ReadResourceResult = await self._request(
            uri, lambda client: client.read_resource(uri, cache_mode="bypass")
        )
        texts = [part.text for part in result.contents if isinstance(part, TextResourceContents)]
        if not texts:
            raise ToolFailed(f"the resource {uri} has no text.", tool=uri)
        return "\n".join(texts)

    async def _follow(self, tool: str, answer: dict[str, object]) -> dict[str, object]:
        while answer.get("state") in ("queued", "running"):
            job_id = str(answer["job_id"])
            arguments = {"job_id": job_id, "wait_s": self._patience.poll_s}
            try:
                answer = await self._tool("get_result", arguments, about=tool)
            except anyio.get_cancelled_exc_class():
                await self._withdraw(job_id)
                raise
        if answer.get("state") == "cancelled" and tool != "cancel_job":
            raise ToolFailed(f"the job of this {tool} was withdrawn before it ended.", tool=tool)
        return answer

    async def _withdraw(self, job_id: str) -> None:
        """Tell the server that nobody waits for a job any more, if it can be told at once."""
        with (
            anyio.move_on_after(self._patience.withdraw_s, shield=True),
            # It has ended meanwhile, or the server is gone and will find the job orphaned.
            contextlib.suppress(ToolFailed, ServerUnreachable, NotPermitted),
        ):
            result = await self._once(
                "cancel_job", lambda client: client.call_tool("cancel_job", {"job_id": job_id})
            )
            _content("cancel_job", result)

    async def _tool(
        self, name: str, arguments: dict[str, Any], *, about: str = ""
    ) -> dict[str, object]:
        result = await self._request(name, lambda client: client.call_tool(name, arguments))
        return _content(about or name, result)

    async def _request(self, name: str, ask: Callable[[Client], Awaitable[T]]) -> T:
        """Ask until there is an answer; only a lost connection is a reason to ask again."""
        async for attempt in stamina.retry_context(
            on=ServerUnreachable,
            attempts=None,
            timeout=self._patience.reconnect_s,
            wait_initial=self._patience.backoff_s,
            wait_jitter=self._patience.backoff_s,
            wait_max=10.0,
        ):
            with attempt:
                return await self._once(name, ask)
        raise AssertionError("the retry loop returns or raises")

    async def _once(self, name: str, ask: Callable[[Client], Awaitable[T]]) -> T:
        answers: list[T] = []
        with _connection_errors(name, self._patience.request_s):
            try:
                with anyio.fail_after(self._patience.request_s):
                    async with self._connect() as client:
                        answers.append(await ask(client))
            except _LOST_IN_ANY_WRAPPING:
                # An answer that came before the line broke is as good as any.
                if not answers:
                    raise
        return answers[0]


@contextlib.asynccontextmanager
async def socket_session(
    socket: Path, token: str, *, patience: Patience | None = None
) -> AsyncIterator[Session]:
    """A session with the server that listens on a Unix socket.

    Args:
        socket: The socket's path.
        token: The agent's bearer token.
        patience: Limits of all waiting.
    """
    transport = httpx2.AsyncHTTPTransport(uds=str(socket), verify=_no_certificates())
    async with _http_session(SOCKET_URL, token, transport, patience) as session:
        yield session


@contextlib.asynccontextmanager
async def http_session(
    url: str, token: str, *, patience: Patience | None = None
) -> AsyncIterator[Session]:
    """A session with a shared server over the network.

    Args:
        url: The endpoint, ``https://guard.example.com/mcp``.
        token: The agent's bearer token.
        patience: Limits of all waiting.
    """
    async with _http_session(url, token, None, patience) as session:
        yield session


def stdio_session(server: StdioServerParameters, *, patience: Patience | None = None) -> Session:
    """A session with a server that is started for each call and ends with it.

    For a single agent without a running server. A call holds its server until its job is done,
    so nothing is lost between calls, but each pays the start of a server and of its guard.

    Args:
        server: The command that speaks MCP on its standard streams.
        patience: Limits of all waiting.
    """
    return Session(lambda: Client(server), patience=patience)


@contextlib.asynccontextmanager
async def _http_session(
    url: str,
    token: str,
    transport: httpx2.AsyncHTTPTransport | None,
    patience: Patience | None,
) -> AsyncIterator[Session]:
    limits = patience or Patience()
    async with httpx2.AsyncClient(
        transport=transport,
        headers={"Authorization": f"Bearer {token}"},
        timeout=httpx2.Timeout(30.0, read=limits.request_s),
        event_hooks={"response": [_refuse_strangers]},
    ) as http:
        yield Session(
            lambda: Client(streamable_http_client(url, http_client=http)), patience=limits
        )


def _no_certificates() -> ssl.SSLContext:
    """An empty context: a Unix socket is not encrypted, and loading the system's is slow."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


async def _refuse_strangers(response: httpx2.Response) -> None:
    """Turn a refused token into its own error: the SDK would report a fault of the server."""
    if response.status_code in (401, 403):
        raise NotPermitted(
            f"the server refused this agent's token (HTTP {response.status_code}). Tokens belong "
            "to one run of one database: resume the run by its id, or start a new one."
        )


@contextlib.contextmanager
def _connection_errors(name: str, request_s: float) -> Iterator[None]:
    """Translate whatever a lost connection looks like into ``ServerUnreachable``."""
    try:
        yield
    except TimeoutError:
        raise ServerUnreachable(
            f"the server did not answer {name} within {request_s:.0f} s."
        ) from None
    except _LOST_IN_ANY_WRAPPING as error:
        raise _explained(name, error) from error


def _explained(name: str, error: Exception) -> Exception:
    """What to raise for ``error``, which may be a group: itself when it is not about the line."""
    leaves = list(_leaves(error))
    for leaf in leaves:
        if isinstance(leaf, NotPermitted):
            return leaf
        if isinstance(leaf, MCPError) and leaf.code in (INVALID_PARAMS, METHOD_NOT_FOUND):
            return ToolFailed(leaf.message, tool=name)
    if all(isinstance(leaf, _LOST) for leaf in leaves):
        said = "; ".join(dict.fromkeys(str(leaf) or type(leaf).__name__ for leaf in leaves))
        return ServerUnreachable(f"lost the server during {name}: {said}.")
    return error


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _content(tool: str, result: CallToolResult) -> dict[str, object]:
    """The structured content of a result, or its text as JSON for servers that send text only."""
    text = next((part.text for part in result.content if isinstance(part, TextContent)), "")
    if result.is_error:
        raise ToolFailed(text or f"{tool} failed without saying why.", tool=tool)
    if isinstance(result.structured_content, dict):
        return result.structured_content
    try:
        content = json.loads(text)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise ToolFailed(f"{tool} answered without structured content.", tool=tool)
    return content
