"""Files that somebody else wrote: whatever is in them, they load or are refused in words."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given

from kernelarc.guard import problems
from kernelarc.guard.errors import MalformedProblem, MalformedSolution
from kernelarc.guard.schema import Solution, load_problem, load_solution, solution_id
from kernelarc.guard.screen import screen

PROBLEM = problems.get("attn_causal_gqa")
FILES = ("definition.json", "workload.jsonl", "contract.json")
SOLUTION = {
    "name": "mine",
    "definition": "attn_causal_gqa",
    "author": "somebody",
    "spec": {
        "languages": ["cpp"],
        "target_hardware": ["CPU"],
        "entry_point": "src/main.cpp::run",
        "dependencies": [],
        "destination_passing_style": True,
        "compile_options": {"cflags": ["-O3"]},
    },
    "sources": [
        {"path": "src/main.cpp", "content": '#include "a.h"\nextern "C" void run() {}'},
        {"path": "src/a.h", "content": "// empty"},
    ],
}
PYTHON = SOLUTION | {
    "spec": SOLUTION["spec"] | {"languages": ["pytorch"], "entry_point": "main.py::run"},
    "sources": [{"path": "main.py", "content": "def run(q, k, v):\n    return q\n"}],
}


def document(name):
    """A problem's file as JSON: of the workloads, the first."""
    text = (PROBLEM.folder / name).read_text("utf-8")
    return json.loads(text.splitlines()[0] if name.endswith("l") else text)


@pytest.mark.parametrize("name", FILES)
def test_a_problem_loads_or_is_refused_in_words(name, spoiled_bytes):
    originals = {other: (PROBLEM.folder / other).read_bytes() for other in FILES}

    @given(spoiled_bytes(document(name)))
    def check(data):
        with TemporaryDirectory() as folder:
            for other, content in originals.items():
                (Path(folder) / other).write_bytes(data if other == name else content)
            try:
                problem = load_problem(Path(folder))
            except MalformedProblem:
                return
            for workload in problem.workloads:
                assert set(problem.axes(workload)) >= set(workload.axes)
                assert set(problem.output_shapes(workload)) == set(problem.definition.outputs)
                assert set(problem.input_shapes(workload)) == set(problem.definition.inputs)
            assert problem.digest == load_problem(Path(folder)).digest

    check()


@pytest.mark.parametrize("original", [SOLUTION, PYTHON], ids=["cpp", "python"])
def test_a_solution_loads_or_is_refused_in_words(original, spoiled_bytes):
    @given(spoiled_bytes(original))
    def check(data):
        with TemporaryDirectory() as folder:
            path = Path(folder) / "solution.json"
            path.write_bytes(data)
            before = {p: p.read_bytes() for p in Path(folder).rglob("*")}
            try:
                solution = load_solution(path, PROBLEM)
            except MalformedSolution:
                return
            finally:
                assert {p: p.read_bytes() for p in Path(folder).rglob("*")} == before
            again = Solution.model_validate_json(json.dumps(solution.to_json()))
            assert solution_id(again) == solution_id(solution)
            for finding in screen(PROBLEM, solution, "cpu"):
                assert finding.message

    check()
