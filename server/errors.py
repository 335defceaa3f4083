"""The one place where errors become text that a model reads.

A model sees only the first text of a failed call, so that text must stand alone: what was
wrong, what is allowed, what to do next. The messages of ``KernelArcError`` say the first two;
the hint added here says the third. Any other exception is left to the SDK, which logs its
traceback and answers with the tool's name only: nothing internal reaches a client.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS

from kernelarc.guard.errors import (
    BoardBusy,
    BoardError,
    GuardUnavailable,
    JobCancelled,
    KernelArcError,
    NotVerified,
    RequestError,
    UnknownId,
    UnknownProblem,
)

P = ParamSpec("P")
R = TypeVar("R")

_HINTS: tuple[tuple[type[KernelArcError], str], ...] = (
    (UnknownProblem, "Call list_problems."),
    (NotVerified, "Call compile_and_verify with its source first."),
    (GuardUnavailable, "Nothing was decided about the candidate; repeat the same call later."),
    (BoardBusy, "Nothing was stored; repeat the same call."),
    (BoardError, "Nothing was stored."),
    (JobCancelled, "Submit again to have it judged."),
)


def explain(error: KernelArcError) -> str:
    """The text of ``error`` for a client, ended by what to do next where the class implies it."""
    hint = next((hint for kind, hint in _HINTS if isinstance(error, kind)), "")
    return f"{error} {hint}".strip()


def tool_errors(tool: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    """Wraps a tool so that a ``KernelArcError`` becomes the ``ToolError`` a model reads."""

    @functools.wraps(tool)
    async def told(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return await tool(*args, **kwargs)
        except KernelArcError as error:
            raise ToolError(explain(error)) from error

    return told


def resource_errors(read: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    """Wraps a resource so that an unknown id is "not found" and other errors keep their text."""

    @functools.wraps(read)
    async def told(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return await read(*args, **kwargs)
        except (UnknownId, UnknownProblem) as error:
            raise ResourceNotFoundError(explain(error)) from error
        except KernelArcError as error:
            raise ResourceError(explain(error)) from error

    return told


def prompt_errors(render: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    """Wraps a prompt so that a repairable error reaches the client as invalid arguments."""

    @functools.wraps(render)
    async def told(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return await render(*args, **kwargs)
        except RequestError as error:
            raise MCPError(INVALID_PARAMS, explain(error)) from error

    return told


def failed_job(job_id: str, error: str) -> ToolError:
    """What a model reads about a job that ended without a result; ``error`` says what to do."""
    return ToolError(f"job {job_id} failed: {error}")
