import os
import socket
import sys
from functools import partial

import anyio
import pytest
from mcp import StdioServerParameters

from kernelarc.clients.agents.base import ToolFailed
from kernelarc.clients.session import (
    Patience,
    ServerUnreachable,
    http_session,
    socket_session,
    stdio_session,
)
from kernelarc.guard.errors import NotPermitted

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_call_returns_the_structured_content(connect, mode):
    async with connect("ada", mode) as session:
        result = await session.call("compile_and_verify", problem="rmsnorm", source="plain")
    assert result["verdict"] == "PASSED"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_queued_job_is_followed_until_it_is_done(connect, script, mode):
    async with connect("ada", mode) as session:
        result = await session.call("compile_and_verify", problem="rmsnorm", source="queued")
    assert result["state"] == "done"
    assert [tool for _, tool, _ in script.calls] == ["compile_and_verify", "get_result"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_tool_error_carries_the_text_for_the_agent_and_is_not_repeated(
    connect, script, mode
):
    async with connect("ada", mode) as session:
        with pytest.raises(ToolFailed, match=r"Send C\+\+ with an entry point") as failure:
            await session.call("compile_and_verify", problem="rmsnorm", source="refused")
    assert failure.value.tool == "compile_and_verify"
    assert len(script.calls) == 1


async def test_an_internal_error_of_the_server_is_a_tool_error_without_internals(connect):
    async with connect("ada") as session:
        with pytest.raises(ToolFailed) as failure:
            await session.call("compile_and_verify", problem="rmsnorm", source="crash")
    assert "internal" not in str(failure.value)


async def test_a_job_that_somebody_withdrew_is_a_tool_error(connect, script):
    async with connect("ada") as session, anyio.create_task_group() as group:

        async def withdraw():
            await anyio.to_thread.run_sync(script.entered.wait)
            await session.call("cancel_job", job_id="j_1")

        group.start_soon(withdraw)
        with pytest.raises(ToolFailed, match="withdrawn"):
            await session.call("compile_and_verify", problem="rmsnorm", source="stuck")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_resource_is_read_and_a_missing_one_is_a_tool_error(connect, mode):
    async with connect("ada", mode) as session:
        assert '"attempts"' in await session.read("kernelarc://agents/me/attempts/rmsnorm")
        with pytest.raises(ToolFailed):
            await session.read("kernelarc://nothing/here")


async def test_a_cancelled_call_withdraws_its_job(connect, script):
    async with connect("ada") as session, anyio.create_task_group() as group:
        call = partial(session.call, "compile_and_verify", problem="rmsnorm", source="stuck")
        group.start_soon(call)
        await anyio.to_thread.run_sync(script.asked.wait)
        group.cancel_scope.cancel()
    assert script.cancelled == ["j_1"]


async def test_a_job_that_never_ends_is_given_up_and_withdrawn(connect, script):
    async with connect("ada") as session:
        session._patience = Patience(call_s=0.5, poll_s=5)
        with pytest.raises(ServerUnreachable, match="no result after"):
            await session.call("compile_and_verify", problem="rmsnorm", source="stuck")
    assert script.cancelled == ["j_1"]


async def test_the_token_says_who_calls_over_the_socket(served, script, quick):
    async with socket_session(served.socket, "token-ada", patience=quick) as session:
        await session.call("compile_and_verify", problem="rmsnorm", source="plain")
    assert script.calls == [("ada", "compile_and_verify", "plain")]


async def test_a_shared_server_is_reached_by_its_address(served, script, quick):
    served.stop()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        served.start(listener)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        async with http_session(url, "token-ada", patience=quick) as session:
            await session.call("compile_and_verify", problem="rmsnorm", source="plain")
        await anyio.to_thread.run_sync(served.stop)
    assert script.calls == [("ada", "compile_and_verify", "plain")]


async def test_an_unknown_token_is_refused_at_once_and_in_words(served, quick):
    async with socket_session(served.socket, "stranger", patience=quick) as session:
        with pytest.raises(NotPermitted, match="refused this agent's token"):
            await session.call("list_problems")


async def test_a_call_cut_by_a_restart_is_made_again_and_judged_once(served, script, quick):
    async with (
        socket_session(served.socket, "token-ada", patience=quick) as session,
        anyio.create_task_group() as group,
    ):
        results = []

        async def call():
            results.append(
                await session.call("compile_and_verify", problem="rmsnorm", source="held")
            )

        group.start_soon(call)
        await anyio.to_thread.run_sync(script.entered.wait)
        await anyio.to_thread.run_sync(served.stop)
        script.released.set()
        await anyio.to_thread.run_sync(served.start)
    assert results[0]["verdict"] == "PASSED"
    assert len(script.calls) == 2
    assert len(script.attempts["ada", "rmsnorm"]) == 1


async def test_a_job_is_asked_for_by_its_id_after_a_restart(served, script, quick):
    async with (
        socket_session(served.socket, "token-ada", patience=quick) as session,
        anyio.create_task_group() as group,
    ):
        results = []

        async def call():
            results.append(
                await session.call("compile_and_verify", problem="rmsnorm", source="stuck")
            )

        group.start_soon(call)
        await anyio.to_thread.run_sync(script.asked.wait)
        await anyio.to_thread.run_sync(served.stop)
        script.jobs["j_1"] = {"verdict": "PASSED", "state": "done"}
        await anyio.to_thread.run_sync(served.start)
    assert results == [{"verdict": "PASSED", "state": "done"}]
    assert [tool for _, tool, _ in script.calls].count("compile_and_verify") == 1


async def test_a_session_outlives_restarts_between_calls(served, quick):
    async with socket_session(served.socket, "token-ada", patience=quick) as session:
        await session.call("list_problems")
        await anyio.to_thread.run_sync(served.stop)
        await anyio.to_thread.run_sync(served.start)
        assert (await session.call("list_problems"))["problems"]


async def test_waiting_for_a_dead_server_is_bounded_and_says_what_was_lost(tmp_path):
    patience = Patience(reconnect_s=0.3, backoff_s=0.05)
    async with socket_session(tmp_path / "nobody.sock", "token-ada", patience=patience) as session:
        with pytest.raises(ServerUnreachable, match="lost the server during list_problems"):
            await session.call("list_problems")


async def test_a_silent_server_counts_as_lost(served, script):
    patience = Patience(request_s=0.3, reconnect_s=0.5, backoff_s=0.05)
    async with socket_session(served.socket, "token-ada", patience=patience) as session:
        with pytest.raises(ServerUnreachable, match="did not answer"):
            await session.call("compile_and_verify", problem="rmsnorm", source="held")


async def test_overlapping_calls_do_not_mix_their_answers(served, quick):
    answers = {}
    async with socket_session(served.socket, "token-ada", patience=quick) as session:

        async def call(source):
            answers[source] = await session.call(
                "compile_and_verify", problem="rmsnorm", source=source
            )

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(call, f"{'wrong' if number % 2 else 'plain'} {number}")
    for source, answer in answers.items():
        assert (answer["verdict"] == "PASSED") is source.startswith("plain")


async def test_a_stdio_server_is_started_for_a_call_and_gone_after_it(tmp_path):
    server = tmp_path / "server.py"
    server.write_text(
        "import os\n"
        "from mcp.server import MCPServer\n"
        "mcp = MCPServer('tiny', log_level='ERROR')\n"
        "@mcp.tool()\n"
        "async def pid() -> dict:\n"
        "    '''Its process.'''\n"
        "    return {'pid': os.getpid()}\n"
        "mcp.run()\n"
    )
    session = stdio_session(StdioServerParameters(command=sys.executable, args=[str(server)]))
    first, second = await session.call("pid"), await session.call("pid")
    assert first["pid"] != second["pid"]
    with pytest.raises(ProcessLookupError):
        os.kill(second["pid"], 0)
