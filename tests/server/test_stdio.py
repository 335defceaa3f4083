"""The real process: its own interpreter, its own pipes, the real guard behind it."""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from kernelarc.memory.archive import open_archive

pytestmark = pytest.mark.anyio

PROGRAM = """
import sys

if "--without-torch" in sys.argv:
    sys.modules["torch"] = None  # as where it is not installed: no judge, everything else works
import anyio
from pathlib import Path
from kernelarc.server.settings import ServerSettings
from kernelarc.server.stdio import serve_stdio

folder = Path(sys.argv[1])
settings = ServerSettings(database=folder / "a.sqlite", home=folder / "home", isolation="none")
anyio.run(serve_stdio, settings)
"""
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}


@pytest.fixture
def judging(tmp_path):
    """Command line of a server with everything that there is."""
    file = tmp_path / "serve.py"
    file.write_text(PROGRAM)
    return [sys.executable, str(file), str(tmp_path)]


@pytest.fixture
def program(judging):
    """The same where torch is not installed, for tests that need no verdict."""
    return [*judging, "--without-torch"]


def _start(command):
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


@pytest.fixture
def started(program):
    """A raw process on pipes, ended with the test."""
    process = _start(program)
    yield process
    process.kill()
    process.communicate()


def _ask(process, method, params, identity=1):
    request = {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}
    process.stdin.write(json.dumps(request) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def _initialize(process):
    info = {"name": "test", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
    return _ask(process, "initialize", params)


async def test_a_client_can_work_over_a_pipe(program, era):
    server = StdioServerParameters(command=program[0], args=program[1:])
    async with Client(server, mode=era) as client:
        assert len((await client.list_tools()).tools) == 9
        answer = await client.call_tool("read_board", {"problem": "rmsnorm"})
        assert answer.structured_content["insights"] == []


async def test_the_caller_is_the_agent_of_the_token(program, tmp_path):
    with open_archive(tmp_path / "a.sqlite") as archive:
        archive.runs.ensure_agent("alice", token="alices-token")
    server = StdioServerParameters(
        command=program[0], args=program[1:], env={"KERNELARC_TOKEN": "alices-token"}
    )
    async with Client(server) as client:
        uri = "kernelarc://agents/me/attempts/rmsnorm"
        text = (await client.read_resource(uri)).contents[0].text
        assert json.loads(text)["agent"] == "alice"


def test_a_wrong_token_is_refused_at_the_start(program):
    environment = os.environ | {"KERNELARC_TOKEN": "nobodys"}
    ended = subprocess.run(
        program, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert ended.returncode != 0
    assert "KERNELARC_TOKEN" in ended.stderr
    assert ended.stdout == ""


def test_a_probe_does_not_choose_the_protocol(started):
    probed = _ask(started, "server/discover", {"_meta": META})
    assert probed["result"]["supportedVersions"] == ["2026-07-28"]
    assert "tools" in probed["result"]["capabilities"]
    again = _ask(started, "server/discover", {"_meta": META}, 2)
    assert again["id"] == 2
    assert _initialize(started)["result"]["protocolVersion"] == "2025-11-25"


def test_the_stateless_protocol_works_after_a_probe(started):
    _ask(started, "server/discover", {"_meta": META})
    capabilities = {"io.modelcontextprotocol/clientCapabilities": {}}
    listed = _ask(started, "tools/list", {"_meta": META | capabilities}, 2)
    assert len(listed["result"]["tools"]) == 9


def test_the_end_of_input_ends_the_server(started):
    _initialize(started)
    output, errors = started.communicate(timeout=60)
    assert output == ""
    assert "Traceback" not in errors
    assert started.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server(started, number):
    _initialize(started)
    started.send_signal(number)
    started.wait(timeout=60)
    assert started.returncode == 0
    assert "Traceback" not in started.stderr.read()
    assert started.stdout.read() == ""


def test_a_file_may_be_the_input(program, tmp_path):
    request = {"jsonrpc": "2.0", "id": 7, "method": "server/discover", "params": {"_meta": META}}
    (tmp_path / "requests").write_text(json.dumps(request) + "\n")
    with (tmp_path / "requests").open() as requests:
        ended = subprocess.run(program, stdin=requests, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0
    assert json.loads(ended.stdout)["id"] == 7


def test_a_long_message_passes(started):
    _initialize(started)
    params = {"name": "read_board", "arguments": {"problem": "x" * 1_000_000}}
    answer = _ask(started, "tools/call", params, 2)
    assert "unknown problem" in answer["result"]["content"][0]["text"]


def test_the_server_never_imports_torch():
    code = "import sys, kernelarc.server.stdio, kernelarc.server.local; print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ended.stdout.split())
    assert "kernelarc.server.tools" in loaded
    assert not loaded & {"torch", "triton", "cuda", "plotly", "kernelarc.guard.worker"}


async def test_without_a_judge_a_tool_says_what_is_missing(program):
    server = StdioServerParameters(command=program[0], args=program[1:])
    async with Client(server) as client:
        answer = await client.call_tool("get_leader", {"problem": "rmsnorm"})
        assert answer.is_error
        assert "torch is not installed" in answer.content[0].text
        listed = await client.call_tool("list_problems", {})
        assert "device" not in listed.structured_content


@pytest.mark.slow
@pytest.mark.torch
def test_nothing_is_left_running_when_the_judge_was_at_work(judging):
    """Real guard, real candidate: the server is told to stop while it judges."""
    process = _start(judging)
    try:
        _initialize(process)
        code = 'extern "C" void run() { for (;;) { asm volatile(""); } }'
        arguments = {"problem": "rmsnorm", "language": "cpp", "source": code, "wait_s": 0}
        params = {"name": "compile_and_verify", "arguments": arguments}
        answer = _ask(process, "tools/call", params, 2)
        assert answer["result"]["structuredContent"]["verdict"] == "PENDING"
        below = [os.pidfd_open(pid) for pid in _descendants(process.pid)]
        assert below
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    for descriptor in below:
        ended, _, _ = select.select([descriptor], [], [], 60)
        assert ended, "a process outlived the server"
        os.close(descriptor)


def _descendants(pid):
    """Process ids below ``pid``."""
    below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in below] + [
        grandchild for child in below for grandchild in _descendants(child)
    ]


@pytest.mark.slow
@pytest.mark.torch
async def test_what_was_running_is_judged_by_the_next_server(judging):
    arguments = {"problem": "rmsnorm", "language": "cpp", "source": 'extern "C" void run() {}'}
    server = StdioServerParameters(command=judging[0], args=judging[1:])
    async with Client(server) as client:
        pending = await client.call_tool("compile_and_verify", arguments | {"wait_s": 0})
        job = {"job_id": pending.structured_content["job_id"]}
    async with Client(server) as client:
        with anyio.fail_after(100):
            result = (await client.call_tool("get_result", job)).structured_content
        assert result["state"] == "done"
        assert result["verdict"] not in ("PASSED", "PENDING")
