"""A problem is checked as a whole, and its numbers follow from its axes."""

from typing import Any

import pytest
from pydantic import ValidationError

from kernelarc.guard.schema import Problem


def _problem(definition: object, workloads: list[object], **contract: object) -> Problem:
    return Problem.model_validate(
        {"definition": definition, "workloads": workloads, "contract": contract}
    )


def test_shapes_follow_from_the_axes(problem: Problem) -> None:
    (workload,) = problem.workloads
    assert problem.axes(workload) == {"M": 3, "H": 4, "N": 8}
    assert problem.input_shapes(workload) == {"x": (3, 8), "weight": (8,), "eps": None}
    assert problem.output_shapes(workload) == {"y": (3, 4, 2)}


def test_bytes_are_each_tensor_once_unless_the_contract_says_otherwise(
    definition: dict[str, Any], workload: dict[str, Any], problem: Problem
) -> None:
    assert problem.moved_bytes(problem.workloads[0]) == 3 * 8 * 4 + 8 * 2 + 3 * 8 * 4
    said = _problem(definition, [workload], bytes="10 * M", flops="2 * M * N")
    assert said.moved_bytes(said.workloads[0]) == 30
    assert said.flops(said.workloads[0]) == 48


def test_a_problem_without_a_contract_claims_no_flops_and_ranks_everything(
    problem: Problem,
) -> None:
    assert problem.flops(problem.workloads[0]) == 0
    assert problem.ranked("cpu") == problem.ranked("gpu") == list(problem.workloads)


def test_workloads_are_ranked_where_they_are_tagged(
    definition: dict[str, Any], workload: dict[str, Any]
) -> None:
    workloads: list[object] = [workload | {"uuid": uuid} for uuid in ("a", "b", "c")]
    problem = _problem(definition, workloads, devices={"a": ["cpu"], "b": ["gpu"]})
    assert [w.uuid for w in problem.ranked("cpu")] == ["a", "c"]
    assert [w.uuid for w in problem.ranked("gpu")] == ["b", "c"]
    assert problem.ranked("cuda") == problem.ranked("gpu")


def test_tolerances_come_from_the_contract_or_else_from_the_workload(
    definition: dict[str, Any], workload: dict[str, Any]
) -> None:
    workload["tolerance"] = {"max_atol": 0.5, "max_rtol": 0.25, "required_matched_ratio": 0.9}
    own = _problem(definition, [workload])
    rule = own.tolerance(own.workloads[0], "y")
    assert (rule.atol, rule.rtol, rule.atol_rms, rule.matched_ratio) == (0.5, 0.25, 0, 0.9)
    said = _problem(definition, [workload], outputs={"y": {"rtol": 1e-5, "atol_rms": 1e-6}})
    assert said.tolerance(said.workloads[0], "y") == said.contract.outputs["y"]


def test_a_workload_is_found_by_its_uuid(problem: Problem) -> None:
    assert problem.workload("first") is problem.workloads[0]
    with pytest.raises(KeyError):
        problem.workload("second")


def test_the_digest_survives_a_round_trip_and_written_out_defaults(
    definition: dict[str, Any], workload: dict[str, Any], problem: Problem
) -> None:
    assert Problem.model_validate_json(problem.model_dump_json()).digest == problem.digest
    workload["tolerance"] = {"max_atol": 1e-2, "max_rtol": 1e-2}
    assert _problem(definition, [workload], format=1).digest == problem.digest


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("definition", {"description": "other"}),
        ("definition", {"reference": "def run(x, weight, eps):\n    return x"}),
        ("workload", {"uuid": "other"}),
        ("workload", {"axes": {"M": 4}}),
        ("workload", {"tolerance": {"max_atol": 0.02}}),
        ("contract", {"flops": "M"}),
        ("contract", {"inputs": {"x": {"scale": 2.0}}}),
    ],
)
def test_the_digest_changes_with_every_part(
    definition: dict[str, Any],
    workload: dict[str, Any],
    problem: Problem,
    part: str,
    change: dict[str, Any],
) -> None:
    parts = {"definition": definition, "workload": workload, "contract": {}}
    parts[part] = parts[part] | change
    changed = _problem(parts["definition"], [parts["workload"]], **parts["contract"])
    assert changed.digest != problem.digest


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"axes": {}}, "line 1: axes: no value for 'M'"),
        ({"uuid": "hidden"}, "line 1: uuid: 'hidden'"),
        ({"inputs": {"x": {"type": "random"}}}, r"line 1: inputs: \['x'\] are given"),
        (
            {"inputs": {n: {"type": "random"} for n in ("x", "weight", "eps")}},
            "inputs.eps: type 'random', but the input is a Python scalar",
        ),
        (
            {"inputs": {n: {"type": "scalar", "value": 1} for n in ("x", "weight", "eps")}},
            "inputs.x: type 'scalar', but the input is a tensor",
        ),
    ],
)
def test_a_workload_that_does_not_fit_the_definition_is_named(
    definition: dict[str, Any], workload: dict[str, Any], change: dict[str, Any], match: str
) -> None:
    with pytest.raises(ValidationError, match=match):
        _problem(definition, [workload | change])


def test_uuids_are_unique_and_there_is_a_workload(
    definition: dict[str, Any], workload: dict[str, Any]
) -> None:
    with pytest.raises(ValidationError, match="line 2: uuid 'first' again"):
        _problem(definition, [workload, workload])
    with pytest.raises(ValidationError, match="no workload"):
        _problem(definition, [])


@pytest.mark.parametrize(
    ("contract", "match"),
    [
        ({"devices": {"none": ["cpu"]}}, "devices: unknown"),
        ({"inputs": {"z": {}}}, "inputs: unknown"),
        ({"outputs": {"x": {"rtol": 0, "atol_rms": 0}}}, "outputs: unknown"),
        ({"shapes": {"N": {"low": 1, "high": 9}}}, "shapes: unknown"),
        ({"flops": "2 * Q"}, "flops"),
        ({"flops": "M / 2"}, "not an integer"),
        ({"inputs": {"x": {"kind": "weight", "fan_in": "Q"}}}, r"inputs.x: unknown \['Q'\]"),
        ({"mutants": [{"name": "m", "replace": [["q", "p"]]}]}, "mutant 'm': 'q' occurs 0"),
    ],
)
def test_a_contract_that_does_not_fit_the_definition_is_named(
    definition: dict[str, Any], workload: dict[str, Any], contract: dict[str, Any], match: str
) -> None:
    with pytest.raises(ValidationError, match=match):
        _problem(definition, [workload], **contract)
