"""Any JSON as the arguments of any tool: an answer or a refusal in words; the server goes on."""

import json
import logging

import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import given
from mcp.shared.exceptions import MCPError

VALID = {
    "list_problems": {},
    "get_problem": {"problem": "rmsnorm"},
    "compile_and_verify": {
        "problem": "rmsnorm",
        "language": "cpp",
        "files": {"main.cpp": 'extern "C" void run() {}', "a.h": "// empty"},
        "strategy": "vectorise",
        "parents": ["00000000"],
        "note": "why",
        "cflags": ["-O3"],
        "force": False,
        "wait_s": 1.0,
    },
    "benchmark": {"solution_id": "deadbeef", "force": False, "wait_s": 1.0},
    "post_insight": {
        "problem": "rmsnorm",
        "kind": "hypothesis",
        "text": "Two rows at once keep both units busy.",
        "strategy": "vectorise",
        "evidence": ["00000000"],
    },
    "read_board": {"problem": "rmsnorm", "query": "rows", "kind": "success", "limit": 5},
    "get_leader": {"problem": "rmsnorm", "source": True, "backups": 2},
    "get_result": {"job_id": "j_1", "wait_s": 0.0},
    "cancel_job": {"job_id": "j_1"},
}


@pytest.fixture
def portal(connected):
    """``call(tool, arguments)`` of a client whose server runs in another thread."""
    with (
        start_blocking_portal() as thread,
        thread.wrap_async_context_manager(connected()) as bench,
    ):
        yield lambda tool, arguments: thread.call(bench.client.call_tool, tool, arguments)


def test_every_tool_is_tried(portal):
    from kernelarc.server.tools import tools

    assert set(VALID) == {tool.name for tool in tools()}


@pytest.mark.parametrize("tool", VALID)
def test_nonsense_is_answered_in_words(tool, portal, spoiled, caplog):
    @given(spoiled({"arguments": VALID[tool]}))
    def check(drawn):
        arguments = drawn.get("arguments") if isinstance(drawn, dict) else drawn
        if not isinstance(arguments, dict):  # the client library sends nothing else
            arguments = {"problem": arguments}
        caplog.clear()
        said = answer(portal, tool, arguments)
        assert said.strip()
        assert "Traceback" not in said
        assert not [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR]

    check()
    assert "rmsnorm" in answer(portal, "list_problems", {})


def answer(portal, tool, arguments):
    """What the client is told: the result as strict JSON, or the text of the refusal."""
    try:
        result = portal(tool, arguments)
    except MCPError as refused:
        return refused.error.message
    except UnicodeEncodeError:
        return "refused by the client: not Unicode text"
    if result.is_error:
        return result.content[0].text
    return json.dumps(result.structured_content, allow_nan=False)
