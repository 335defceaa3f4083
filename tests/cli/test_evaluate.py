"""``kernelarc eval``: bad input, rejected candidates, a guard that is not there."""

import json

import pytest

from kernelarc.cli import evaluate
from kernelarc.guard import problems
from kernelarc.guard.schema import (
    BenchmarkOutcome,
    BenchmarkResult,
    EvaluationStatus,
    Isolation,
    Performance,
    reference_solution,
    solution_id,
)

ZEROS = """
#include <cstdint>
extern "C" void run(const float*, const float*, double, float* y, int64_t M, int64_t N) {
  for (int64_t i = 0; i < M * N; ++i) y[i] = 0;
}
"""
DROP_SETUID = "import ctypes; ctypes.CDLL(None).prctl(24, 7, 0, 0, 0)"
"""As root: without CAP_SETUID candidates cannot get a user id of their own."""
NO_TORCH = "import sys; sys.modules['torch'] = None\n"


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "kernel.cpp"
    path.write_text(ZEROS)
    return path


def test_an_unknown_problem_is_refused_with_the_known_ones(call, source):
    assert call("eval", "fly", source).code == 2
    call("eval", "fly", source).sentence("'fly'", "rmsnorm")
    call("eval", "", source).sentence("''", "rmsnorm")
    call("eval", "fly", source, "--json").error("'fly'", "rmsnorm")


def test_a_missing_file_is_refused(call, tmp_path):
    answer = call("eval", "rmsnorm", tmp_path / "gone.cpp")
    assert answer.code == 2
    answer.sentence("gone.cpp", "solution.json", ".cpp")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.cpp", b"", "the file is empty"),
        ("blank.py", b" \n\n", "the file is empty"),
        ("latin.cpp", b"\xff\xfe", "UTF-8"),
        ("nul.cpp", b"int x;\0", "NUL"),
        ("notes.txt", b"hello", "'.txt'"),
        ("solution.json", b"", "line 1"),
        ("solution.json", b"{", "line 1"),
        ("solution.json", b"[]", "top level"),
        ("solution.json", b"{}", "sources"),
        ("solution.json", b'{"name": 1}', "name"),
        ("solution.json", b"\xff", "UTF-8"),
    ],
)
def test_a_file_that_is_no_solution_is_refused(call, tmp_path, name, content, said):
    path = tmp_path / name
    path.write_bytes(content)
    answer = call("eval", "rmsnorm", path)
    assert answer.code == 2
    answer.sentence(name, said, "`kernelarc problems show rmsnorm`")
    document = call("eval", "rmsnorm", path, "--json")
    assert document.code == 2
    document.error(name, said)


def test_a_solution_of_another_problem_is_refused(call, tmp_path):
    spec = {"languages": ["cpp"], "target_hardware": ["CPU"], "entry_point": "main.cpp::run"}
    sources = [{"path": "main.cpp", "content": ZEROS}]
    solution = {"name": "s", "definition": "gemm", "spec": spec, "sources": sources}
    (tmp_path / "solution.json").write_text(json.dumps(solution))
    answer = call("eval", "rmsnorm", tmp_path)
    assert answer.code == 2
    answer.sentence("'gemm'", "'rmsnorm'")


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [
        ("--language", "cobol", "pytorch, triton"),
        ("--against", "me", "reference or leader"),
        ("--device", "gpu", "cpu"),
        ("--isolation", "most", "full, reduced, none"),
    ],
)
def test_an_unknown_value_is_refused_with_the_allowed_ones(call, source, option, value, allowed):
    answer = call("eval", "rmsnorm", source, option, value)
    assert answer.code == 2
    answer.sentence(f"'{value}'", allowed)
    call("eval", "rmsnorm", source, option, value, "--json").error(f"'{value}'", allowed)


def test_a_home_that_cannot_be_made_is_refused(call, source):
    answer = call("eval", "rmsnorm", source, "--home", source)
    assert answer.code == 2
    answer.sentence(str(source), "--home", "KERNELARC_HOME")


@pytest.mark.torch
@pytest.mark.parametrize(
    ("text", "status"), [(ZEROS, "INCORRECT_NUMERICAL"), ("int x = ;", "COMPILE_ERROR")]
)
def test_a_rejected_candidate_is_exit_code_1(start, source, text, status):
    source.write_text(text)
    answer = start("eval", "rmsnorm", source, "--isolation", "none", "--json")
    assert answer.code == 1
    assert answer.document["status"] == answer.document["verdict"] == status
    assert answer.document["benchmark"] is None


@pytest.mark.torch
def test_a_level_that_this_host_does_not_reach_is_exit_code_3(start, source):
    answer = start("eval", "rmsnorm", source, "--isolation", "full", "--json", before=DROP_SETUID)
    assert answer.code == 3
    assert "'full'" in answer.document["error"]
    assert "kernelarc doctor" in answer.document["error"]


def test_without_torch_is_exit_code_3(start, source, tmp_path):
    folder = tmp_path / "path"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(NO_TORCH)
    environment = {"PYTHONPATH": str(folder)}
    answer = start("eval", "rmsnorm", source, "--isolation", "none", environment=environment)
    assert answer.code == 3
    answer.sentence("torch", "pip install 'kernelarc[cpu]'")
    document = start("doctor", "--json", environment=environment).document
    assert document["ready"] is False
    assert "pip install 'kernelarc[cpu]'" in document["problem"]


@pytest.mark.parametrize(
    ("against", "other"), [("reference", "leader us"), ("leader", "reference us")]
)
def test_the_table_of_timings_says_against_whom_and_on_which_shapes(capsys, against, other):
    problem = problems.get("rmsnorm")
    workload = problem.ranked("cpu")[0]
    reference = solution_id(reference_solution(problem))
    timing = Performance(
        latency_us=20.0, runner_latency_us=20.0, leader_latency_us=30.0, ratio=0.667, calls=9
    )
    result = BenchmarkResult(
        guard_version="1",
        problem=problem.name,
        solution_id="1" * 32,
        leader_id=reference if against == "reference" else "2" * 32,
        outcome=BenchmarkOutcome.TIE,
        status=EvaluationStatus.PASSED,
        reason="a tie.",
        performance={workload.uuid: timing},
        isolation=Isolation(level="reduced", walls=[]),
        environment_key="k",
    )
    evaluate._show_timings(problem, result)
    table = capsys.readouterr().out
    assert f"{against} us" in table
    assert f"time / {against}" in table
    assert other not in table
    assert workload.uuid[:8] not in table
    assert ", ".join(f"{n}={v}" for n, v in problem.axes(workload).items()) in table
