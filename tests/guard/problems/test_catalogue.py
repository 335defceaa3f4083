"""The built-in problems as data: complete, consistent, described."""

import json
import re
from pathlib import Path

import pytest

import kernelarc.guard.problems
from kernelarc.guard import problems
from kernelarc.guard.errors import UnknownProblem
from kernelarc.guard.schema import AxisVar, Problem

FOLDER = Path(kernelarc.guard.problems.__file__).parent
NAMES = problems.names()
FLOAT32 = [name for name in NAMES if not name.endswith("_bf16")]


@pytest.fixture(params=NAMES)
def problem(request: pytest.FixtureRequest) -> Problem:
    return problems.get(request.param)


def test_the_set_is_complete() -> None:
    expected = {
        "add_rmsnorm",
        "attn_causal_gqa",
        "causal_conv1d_silu",
        "cross_entropy",
        "gate_up_swiglu",
        "gemm",
        "gemm_bf16",
        "oproj_residual",
        "rmsnorm",
        "rmsnorm_bf16",
        "rmsnorm_bwd",
        "rope_kv_append",
        "router_topk",
        "softmax",
    }
    assert set(NAMES) == expected
    assert sorted(NAMES) == NAMES


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownProblem, match=r"unknown problem 'gem'.*add_rmsnorm, .*softmax\."):
        problems.get("gem")
    with pytest.raises(UnknownProblem):
        problems.get("../problems/gemm")


def test_a_problem_is_read_once_and_named_like_its_folder(problem: Problem) -> None:
    assert problems.get(problem.name) is problem
    assert (FOLDER / problem.name / "definition.json").is_file()


def test_the_files_have_nothing_odd_and_come_back_equal(problem: Problem) -> None:
    assert problem.warnings == []
    folder = FOLDER / problem.name
    assert problem.definition.to_json() == json.loads((folder / "definition.json").read_text())
    assert problem.contract.to_json() == json.loads((folder / "contract.json").read_text())
    lines = (folder / "workload.jsonl").read_text().splitlines()
    assert [w.to_json() for w in problem.workloads] == [json.loads(line) for line in lines]


def test_it_is_described(problem: Problem) -> None:
    contract = problem.contract
    assert contract.title
    assert contract.category
    assert len(contract.summary) > 80
    for spec in (problem.definition.inputs | problem.definition.outputs).values():
        assert spec.description
    assert all(axis.description for axis in problem.definition.axes.values())


def test_every_workload_is_tagged_and_costs_something(problem: Problem) -> None:
    for workload in problem.workloads:
        assert problem.contract.devices[workload.uuid] in (["cpu"], ["gpu"])
        assert problem.flops(workload) > 0
        assert problem.moved_bytes(workload) > 0


def test_it_has_workloads_for_its_devices(problem: Problem) -> None:
    cpu, gpu = problem.ranked("cpu"), problem.ranked("gpu")
    assert 3 <= len(gpu) <= 5
    if problem.name in FLOAT32:
        assert 1 <= len(cpu) <= 2
        assert all(problem.moved_bytes(w) <= 16e6 for w in cpu)
    else:
        assert cpu == []


def test_some_workload_has_an_odd_size(problem: Problem) -> None:
    assert any(size % 2 and size > 1 for w in problem.ranked("gpu") for size in w.axes.values())


def test_every_output_has_a_tolerance_and_every_variable_axis_a_shape_rule(
    problem: Problem,
) -> None:
    axes = problem.definition.axes
    variable = {name for name, axis in axes.items() if isinstance(axis, AxisVar)}
    assert set(problem.contract.shapes) == variable
    assert set(problem.contract.outputs) == set(problem.definition.outputs)


def test_every_input_that_is_drawn_has_a_rule(problem: Problem) -> None:
    drawn = {name for name, spec in problem.definition.inputs.items() if spec.shape is not None}
    unlisted = drawn - set(problem.contract.inputs)
    assert all(problem.definition.inputs[name].dtype.is_float for name in unlisted)


def test_every_float32_problem_forbids_lower_precisions(problem: Problem) -> None:
    forbidden = set(problem.contract.precision.forbidden)
    if problem.name in FLOAT32:
        assert forbidden == {"float16", "bfloat16", "tfloat32"}
    else:
        assert forbidden == {"float8_e4m3fn", "float8_e5m2"}


def test_every_problem_has_mutants_that_drop_something(problem: Problem) -> None:
    names = [mutant.name for mutant in problem.contract.mutants]
    assert len(names) >= 3
    assert all(re.fullmatch(r"(drop|wrong):[a-z0-9-]+", name) for name in names)
    assert any(name.startswith("drop:") for name in names)


def test_references_never_narrow_to_a_fixed_precision(problem: Problem) -> None:
    source = problem.definition.reference.replace("promote_types(x.dtype, torch.float32)", "")
    source = source.replace("promote_types(total.dtype, torch.float32)", "")
    assert not re.search(r"float32|float16|\.float\(|\.half\(", source)
