"""``kernelarc stdio`` and the hidden ``serve-socket``."""

import json
import subprocess
import sys

import pytest

STDIO = [sys.executable, "-m", "kernelarc.cli", "stdio", "--isolation", "none"]


def test_the_server_answers_and_ends_with_its_input():
    info = {"name": "test", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    pipe = subprocess.PIPE
    with subprocess.Popen(STDIO, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        output, errors = process.communicate()
    assert answer["id"] == 1
    assert answer["result"]["serverInfo"]["name"] == "kernelarc"
    assert output == ""
    assert "Traceback" not in errors
    assert process.returncode == 0


def test_the_end_of_the_input_is_enough():
    done = subprocess.run(STDIO, input="", capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("--device", "gpu", "cpu"),
        ("--isolation", "most", "full, reduced, none"),
        ("--board-cap", "-1", "greater than or equal to 0"),
    ],
)
def test_an_unknown_value_is_refused_with_the_allowed_ones(call, option, value, allowed):
    answer = call("stdio", option, value)
    assert answer.code == 2
    answer.sentence(allowed)


def test_a_file_that_is_no_database_is_refused(call, no_database):
    answer = call("stdio", "--db", no_database)
    assert answer.code == 2
    answer.sentence(str(no_database), "not a database", "--db")


@pytest.mark.parametrize("plateau", ["{", "[]", '{"fly": 1}'])
def test_overrides_of_the_plateau_rule_are_checked(call, tmp_path, plateau):
    answer = call("serve-socket", "--socket", tmp_path / "s", "--plateau", plateau)
    assert answer.code == 2
    answer.sentence(plateau, "agent_patience")
