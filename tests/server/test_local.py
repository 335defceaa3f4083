"""Streamable HTTP on a Unix socket, with the server in this process and real sockets."""

import contextlib
import os
import stat

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from kernelarc.guard.errors import NotPermitted
from kernelarc.server import local
from kernelarc.server.settings import ServerSettings

pytestmark = pytest.mark.anyio

URL = "http://localhost/mcp"


@pytest.fixture
def tokens(archive):
    """Two agents with their tokens."""
    for name in ("alice", "bob"):
        archive.runs.ensure_agent(name, token=f"{name}-token")
    return {"alice": "alice-token", "bob": "bob-token"}


@pytest.fixture
def socket_path(tmp_path):
    return tmp_path / "run" / "s.sock"


@pytest.fixture
def listening(serving, monkeypatch, archive, tmp_path, socket_path):
    """``async with listening() as stop``: ``serve_local`` over the scripted guard."""

    @contextlib.asynccontextmanager
    async def listen():
        monkeypatch.setattr(local, "open_services", lambda settings: serving())
        settings = ServerSettings(database=archive.path, home=tmp_path / "home")
        ready, stop = anyio.Event(), anyio.Event()
        async with anyio.create_task_group() as tasks:

            async def serve():
                await local.serve_local(settings, socket_path, ready=ready.set, stop=stop)

            tasks.start_soon(serve)
            with anyio.fail_after(30):
                await ready.wait()
            yield stop
            stop.set()

    return listen


@pytest.fixture
def connect(socket_path):
    @contextlib.asynccontextmanager
    async def connect(token, era="auto"):
        async with (
            httpx2.AsyncClient(
                transport=httpx2.AsyncHTTPTransport(uds=str(socket_path)),
                headers={"Authorization": f"Bearer {token}"},
                timeout=30,
            ) as http,
            Client(streamable_http_client(URL, http_client=http), mode=era) as client,
        ):
            yield client

    return connect


async def _attempts(client):
    text = (await client.read_resource("kernelarc://agents/me/attempts/rmsnorm")).contents[0].text
    return text


async def test_the_token_says_who_is_calling(listening, connect, tokens, era, source, archive):
    arguments = {"problem": "rmsnorm", "language": "cpp", "source": source()}
    async with listening(), connect(tokens["alice"], era) as alice:
        result = await alice.call_tool("compile_and_verify", arguments)
        assert result.structured_content["verdict"] == "PASSED"
        async with connect(tokens["bob"], era) as bob:
            assert '"agent": "bob"' in await _attempts(bob)
        assert "alice" in await _attempts(alice)
    [attempt] = archive.reports.attempts("rmsnorm")
    assert attempt.agent_name == "alice"


@pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer wrong"}])
async def test_a_caller_without_a_known_token_is_refused(listening, tokens, socket_path, header):
    async with listening(), _http(socket_path) as http:
        answer = await http.post(URL, json={"jsonrpc": "2.0", "id": 1}, headers=header)
        assert answer.status_code == 401
        assert "resource_metadata" not in answer.headers["www-authenticate"]
        found = await http.get("http://localhost/.well-known/oauth-protected-resource")
        assert found.status_code == 404


async def test_another_host_name_is_refused(listening, tokens, socket_path):
    headers = {"Authorization": "Bearer alice-token", "Host": "evil.example"}
    async with listening(), _http(socket_path) as http:
        answer = await http.post(URL, json={"jsonrpc": "2.0", "id": 1}, headers=headers)
        assert answer.status_code == 421


async def test_only_the_owner_can_reach_the_socket(listening, socket_path):
    async with listening():
        assert stat.S_IMODE(os.stat(socket_path).st_mode) == 0o600
        assert stat.S_IMODE(os.stat(socket_path.parent).st_mode) == 0o700
    assert not socket_path.exists()


async def test_progress_arrives_over_the_socket(
    listening, connect, tokens, era, source, guard, monkeypatch
):
    monkeypatch.setattr("kernelarc.server.jobs.HEARTBEAT_S", 0.01)
    monkeypatch.setattr("kernelarc.server.jobs.POLL_S", 0.02)
    messages = []

    async def beat(progress, total, message):
        messages.append(message)
        guard.gate.set()

    arguments = {"problem": "rmsnorm", "language": "cpp", "source": source("waits")}
    async with listening(), connect(tokens["alice"], era) as client:
        with anyio.fail_after(30):
            await client.call_tool("compile_and_verify", arguments, progress_callback=beat)
    assert messages


async def test_a_vanished_client_does_not_end_its_job(
    listening, connect, tokens, era, source, guard
):
    arguments = {"problem": "rmsnorm", "language": "cpp", "source": source("waits")}
    async with listening():
        with anyio.CancelScope() as scope:
            async with connect(tokens["alice"], era) as client, anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "compile_and_verify", arguments)
                await guard.started.wait()
                scope.cancel()
        guard.gate.set()
        async with connect(tokens["alice"], era) as client:
            result = await client.call_tool("compile_and_verify", arguments)
        assert result.structured_content["verdict"] == "PASSED"
    assert len(guard.verified) == 1


async def test_it_stops_while_a_call_is_waiting(listening, connect, tokens, source, guard, archive):
    """Within 3 s, whatever asyncio thinks of open connections (it differs from 3.12 on)."""
    arguments = {"problem": "rmsnorm", "language": "cpp", "source": source("waits")}
    with anyio.fail_after(60) as scope:
        async with listening() as stop, anyio.create_task_group() as tasks:

            async def call():
                with contextlib.suppress(Exception):  # however the client sees the end
                    async with connect(tokens["alice"], "legacy") as client:
                        await client.call_tool("compile_and_verify", arguments)

            tasks.start_soon(call)
            await guard.started.wait()
            stop.set()
            scope.deadline = anyio.current_time() + 3
    [job] = archive.jobs.unfinished()
    assert (job.state, job.interruptions) == ("queued", 0)


async def test_cancelling_it_stops_it_in_order(listening, socket_path):
    with anyio.CancelScope() as scope:
        async with listening():
            scope.cancel()
            await anyio.sleep_forever()
    assert not socket_path.exists()


async def test_a_socket_left_by_a_killed_server_is_replaced(listening, socket_path):
    socket_path.parent.mkdir(mode=0o700)
    listener = await anyio.create_unix_listener(socket_path)
    await listener.aclose()
    if not socket_path.exists():  # some versions remove it
        socket_path.touch()
    async with listening():
        assert stat.S_ISSOCK(os.stat(socket_path).st_mode)


async def test_a_second_server_on_the_socket_is_refused(listening, socket_path, archive, tmp_path):
    settings = ServerSettings(database=archive.path, home=tmp_path / "home")
    async with listening():
        with pytest.raises(NotPermitted, match="another server"):
            await local.serve_local(settings, socket_path)


async def test_a_folder_that_others_can_enter_is_refused(tmp_path, archive):
    (tmp_path / "open").mkdir(mode=0o755)
    settings = ServerSettings(database=archive.path, home=tmp_path / "home")
    with pytest.raises(NotPermitted, match="chmod 700"):
        await local.serve_local(settings, tmp_path / "open" / "s.sock")


async def test_a_path_that_is_too_long_is_refused(tmp_path, archive):
    settings = ServerSettings(database=archive.path, home=tmp_path / "home")
    with pytest.raises(NotPermitted, match="at most 107 bytes"):
        await local.serve_local(settings, tmp_path / ("x" * 120) / "s.sock")


def _http(socket_path):
    return httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport(uds=str(socket_path)), timeout=30)
