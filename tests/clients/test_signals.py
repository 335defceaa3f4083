"""Real signals against a real process: it works without end on the scripted server."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, signal, sys
import anyio
from kernelarc.clients.agents.base import AgentEnd
from kernelarc.clients.orchestrator import RunHandle, orchestrate
from kernelarc.clients.run_spec import RunSpec, team
from kernelarc.clients.session import Patience, socket_session
from pathlib import Path

class Endless:
    kind = "builtin"
    async def run(self, toolbox, assignment, budget, report):
        try:
            await toolbox.call("compile_and_verify", problem=assignment.problem, source="stuck")
        except anyio.get_cancelled_exc_class():
            if sys.argv[2] == "hang":
                with anyio.CancelScope(shield=True):
                    print("hanging", flush=True)
                    await anyio.sleep_forever()
            raise
        return AgentEnd("budget", "", 1)

class Recorder:
    async def record_event(self, agent, kind, payload): pass
    async def agent_state(self, agent, state, *, reason):
        print(json.dumps([agent, state, reason]), flush=True)
    async def finish(self, state, *, reason):
        print(json.dumps(["", state, reason]), flush=True)

async def main():
    patience = Patience(first_wait_s=1, poll_s=2)
    connect = lambda name: socket_session(Path(sys.argv[1]), "token-" + name, patience=patience)
    spec = RunSpec(problems=["rmsnorm"], agents=team(1))
    before = signal.getsignal(signal.SIGTERM)
    outcome = await orchestrate(RunHandle("r_1", spec, Recorder(), connect, lambda _: Endless()))
    assert signal.getsignal(signal.SIGTERM) is before
    sys.exit(3 if outcome.state == "interrupted" else 4)

anyio.run(main)
"""


@pytest.fixture
def start(served, script, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    started = []

    def launch(mode):
        process = subprocess.Popen(
            [sys.executable, str(program), str(Path(served.socket)), mode],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONWARNINGS": "error"},
        )
        started.append(process)
        reached = script.entered if script.slow_start else script.asked
        assert reached.wait(30), "the call to be interrupted never came"
        return process

    yield launch
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_withdraws_jobs_saves_the_state_and_ends(start, script, number):
    process = start("obey")
    process.send_signal(number)
    lines = [json.loads(line) for line in process.stdout]
    assert process.wait(20) == 3
    assert script.cancelled == ["j_1"]
    assert lines[-2:] == [
        ["builtin-1", "ready", "interrupted"],
        ["", "interrupted", f"stopped by {number.name}"],
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_before_the_agents_begin_ends_the_run_too(start, script, number):
    script.slow_start = True
    process = start("obey")
    process.send_signal(number)
    lines = [json.loads(line) for line in process.stdout]
    assert process.wait(20) == 3
    assert lines == [["", "interrupted", f"stopped by {number.name}"]]


def test_the_second_signal_kills_even_when_an_agent_refuses_to_stop(start):
    process = start("hang")
    process.send_signal(signal.SIGINT)
    while process.stdout.readline() != "hanging\n":
        pass
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == -signal.SIGINT
