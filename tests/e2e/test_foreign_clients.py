"""Clients that are not ours work: an SDK of the generation before, and the MCP Inspector."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

HERE = Path(__file__).parent
INSTALL_TIMEOUT_S = 180
CLIENT_TIMEOUT_S = 900
SILENCE_S = 15
"""A call that takes longer than this must have reported progress."""
TOOLS = {
    "list_problems", "get_problem", "compile_and_verify", "benchmark", "post_insight",
    "read_board", "get_leader", "get_result", "cancel_job",
}  # fmt: skip
OUTCOMES = {"PROMOTED", "BACKUP", "TIE", "INCONCLUSIVE"}
"""What becomes of a correct kernel, whatever else the machine does."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(INSTALL_TIMEOUT_S + CLIENT_TIMEOUT_S + 60)]


@pytest.fixture(scope="module")
def foreign_python(tmp_path_factory):
    """An interpreter that has version 1 of the SDK and nothing of ours."""
    venv = tmp_path_factory.mktemp("foreign") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    python = venv / "bin" / "python"
    try:
        done = subprocess.run(
            [str(python), "-m", "pip", "install", "--quiet", "--retries", "1", "mcp>=1.20,<2"],
            capture_output=True,
            text=True,
            timeout=INSTALL_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"the package index did not deliver mcp 1.x within {INSTALL_TIMEOUT_S} s")
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        pytest.skip(f"the package index did not deliver mcp 1.x: {reason}")
    return python


@pytest.fixture(scope="module")
def record(foreign_python, tmp_path_factory):
    """Everything that the foreign client saw."""
    home = tmp_path_factory.mktemp("home")
    server = [
        sys.executable, "-m", "kernelarc.cli", "stdio", "--home", str(home), "--isolation", "none",
    ]  # fmt: skip
    done = subprocess.run(
        [str(foreign_python), str(HERE / "foreign_client.py"), *server],
        cwd=home,
        capture_output=True,
        text=True,
        timeout=CLIENT_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    return json.loads(done.stdout)


def calls(record, tool):
    return [call for call in record["calls"] if call["tool"] == tool]


def verdicts(record, tool):
    return [call["structured"]["verdict"] for call in calls(record, tool) if call["structured"]]


def ended(record, kind):
    """The results of finished jobs of one kind, in order, by whichever tool they came."""
    found = [call["structured"] or {} for call in record["calls"]]
    return [result for result in found if result.get("kind") == kind and result["state"] == "done"]


def test_the_handshake_is_of_the_older_protocol(record):
    assert record["sdk"].startswith("1.")
    assert record["hello"]["serverInfo"]["name"] == "kernelarc"
    assert record["hello"]["protocolVersion"] == "2025-11-25"
    assert "get_problem" in record["hello"]["instructions"]


def test_every_tool_is_listed_with_schemas_and_called(record):
    assert {tool["name"] for tool in record["tools"]} == TOOLS
    assert {call["tool"] for call in record["calls"]} == TOOLS
    for tool in record["tools"]:
        assert tool["description"], tool["name"]
        assert tool["inputSchema"]["type"] == "object", tool["name"]
        assert tool["outputSchema"]["type"] == "object", tool["name"]


def test_structured_content_equals_the_text(record):
    for call in record["calls"]:
        if not call["is_error"]:
            assert json.loads(call["text"]) == call["structured"], call["tool"]


def test_only_the_unknown_problem_is_an_error_and_says_what_to_do(record):
    (failed,) = [call for call in record["calls"] if call["is_error"]]
    assert failed["arguments"] == {"problem": "no_such_problem"}
    assert "list_problems" in failed["text"]


def test_wrong_kernels_are_told_what_is_wrong(record):
    broken, wrong, *right = ended(record, "verify")
    assert broken["verdict"] == "COMPILE_ERROR"
    assert "main.cpp:" in broken["message"]
    assert wrong["verdict"] == "INCORRECT_NUMERICAL"
    assert wrong["failures"]
    assert {result["verdict"] for result in right} == {"PASSED"}


def test_the_same_source_is_answered_from_the_archive(record):
    assert [r for r in ended(record, "verify") if r["verdict"] == "PASSED" and r.get("cached")]


def test_a_job_is_handed_out_and_waited_for(record):
    started = [c for c in calls(record, "compile_and_verify") if c["arguments"].get("wait_s") == 0]
    (queued,) = started
    assert queued["structured"]["state"] in ("queued", "running")
    assert queued["structured"]["job_id"] in queued["structured"]["next"]
    assert verdicts(record, "get_result")


def test_a_correct_kernel_is_timed(record):
    timed = ended(record, "benchmark")
    assert timed, "no benchmark ended"
    assert {result["verdict"] for result in timed} <= OUTCOMES
    assert all(result["evidence"].startswith("b_") for result in timed)


def test_a_cancelled_job_stays_cancelled(record):
    (cancelled,) = calls(record, "cancel_job")
    assert cancelled["structured"]["state"] == "cancelled"
    assert verdicts(record, "get_result")[-1] == "CANCELLED"


def test_an_insight_with_evidence_is_verified_and_found(record):
    (posted,) = calls(record, "post_insight")
    assert posted["structured"]["verified"]
    (board,) = calls(record, "read_board")
    assert [i["id"] for i in board["structured"]["insights"]] == [posted["structured"]["id"]]


def test_slow_calls_report_increasing_progress(record):
    slow = [call for call in record["calls"] if call["elapsed_s"] > SILENCE_S]
    if not slow:
        pytest.skip(f"no call took longer than {SILENCE_S} s")
    for call in slow:
        values = [beat["progress"] for beat in call["progress"]]
        assert values, f"{call['tool']} was silent for {call['elapsed_s']:.0f} s"
        assert values == sorted(set(values))
        assert all(beat["message"] for beat in call["progress"])


def test_every_resource_is_read(record):
    read = record["resources"]["read"]
    assert len(read) == 6
    promoted = any(result["verdict"] == "PROMOTED" for result in ended(record, "benchmark"))
    for template, answer in read.items():
        if template.endswith("/leader") and not promoted:
            assert "Nobody leads yet" in answer["error"]
        else:
            assert answer.get("text"), answer
    assert "unknown problem" in record["resources"]["unknown"]["error"]


def test_every_prompt_is_rendered(record):
    rendered = record["prompts"]["rendered"]
    assert "optimize-kernel" in rendered
    for name, texts in rendered.items():
        assert "rmsnorm" in "".join(texts), name


def test_names_are_completed(record):
    found = record["completions"]
    assert found["problem"][0] == "rmsnorm"
    assert {name["name"] for name in record["prompts"]["listed"]} == {
        "optimize-kernel",
        *(f"strategy-{strategy}" for strategy in found["strategy"]),
    }
    assert found["template"] == ["softmax"]
    assert found["foreign"] == []


def test_the_inspector_uses_every_method(tmp_path):
    if shutil.which("npx") is None:
        pytest.skip("npx is not installed")
    done = subprocess.run(
        ["bash", str(HERE / "inspector.sh"), sys.executable, str(tmp_path / "home")],
        capture_output=True,
        text=True,
        timeout=CLIENT_TIMEOUT_S,
        check=False,
    )
    if done.stdout.startswith("SKIPPED"):
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr
