"""The list of tools, in the order in which clients show them."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, NamedTuple

from mcp.server.mcpserver.tools import Tool
from mcp.types import ToolAnnotations

from kernelarc.server import board_tools, candidate_tools, problem_tools
from kernelarc.server.errors import tool_errors
from kernelarc.server.views import brief_schema

READS = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
ADDS = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
"""Nothing is ever overwritten, and a repeated call changes nothing more."""
WITHDRAWS = ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
)


class _Entry(NamedTuple):
    title: str
    annotations: ToolAnnotations
    function: Callable[..., Awaitable[Any]]


TOOLS = (
    _Entry("List problems", READS, problem_tools.list_problems),
    _Entry("Get a problem's contract", READS, problem_tools.get_problem),
    _Entry("Compile and verify a candidate", ADDS, candidate_tools.compile_and_verify),
    _Entry("Benchmark against the leader", ADDS, candidate_tools.benchmark),
    _Entry("Post an insight", ADDS, board_tools.post_insight),
    _Entry("Read the board", READS, board_tools.read_board),
    _Entry("Get the leader", READS, problem_tools.get_leader),
    _Entry("Wait for a result", READS, candidate_tools.get_result),
    _Entry("Cancel a job", WITHDRAWS, candidate_tools.cancel_job),
)


@cache
def tools() -> tuple[Tool, ...]:
    """All tools, made once; the docstring of each function is its description."""
    return tuple(_tool(entry) for entry in TOOLS)


def _tool(entry: _Entry) -> Tool:
    tool = Tool.from_function(
        tool_errors(entry.function),
        title=entry.title,
        description=inspect.cleandoc(entry.function.__doc__ or ""),
        annotations=entry.annotations,
    )
    properties = tool.parameters["properties"].items()
    parameters = {
        "type": "object",
        "properties": {name: brief_schema(schema) for name, schema in properties},
        "required": tool.parameters.get("required", []),
    }
    return tool.model_copy(update={"parameters": parameters})
