"""Workloads: the traps of the dataset's format."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kernelarc.guard.schema import Workload


def test_a_workload_is_written_as_it_was_read(workload: dict[str, Any]) -> None:
    workload["tolerance"] = {"max_atol": 1, "required_match_ratio": 0.98}
    workload["origin"] = "trace"
    assert Workload.model_validate(workload).to_json() == workload


def test_the_misspelt_ratio_is_reported_and_the_default_applies(workload: dict[str, Any]) -> None:
    workload["tolerance"] = {"max_atol": 1e-3, "required_match_ratio": 0.5}
    read = Workload.model_validate(workload)
    assert read.tolerance.required_matched_ratio == 0.99
    assert len(read.warnings()) == 1
    assert "'tolerance.required_match_ratio' is a misspelling" in read.warnings()[0]


def test_custom_inputs_are_all_or_nothing(workload: dict[str, Any]) -> None:
    workload["inputs"]["x"] = {"type": "custom"}
    with pytest.raises(ValidationError, match=r"all or nothing, but \['weight', 'eps'\]"):
        Workload.model_validate(workload)
    workload["inputs"] = {name: {"type": "custom"} for name in workload["inputs"]}
    assert Workload.model_validate(workload).is_custom


@given(st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False)))
def test_a_scalar_keeps_its_type_and_value(value: bool | int | float) -> None:
    data = {"axes": {}, "uuid": "u", "inputs": {"s": {"type": "scalar", "value": value}}}
    scalar = Workload.model_validate(data).scalars["s"]
    assert scalar == value
    assert type(scalar) is type(value)


@pytest.mark.parametrize(
    ("field", "value", "match"),
    [
        ("axes", {"M": -1}, "greater than"),
        ("axes", {"M": 1.0}, "valid integer"),
        ("axes", {"M": "3"}, "valid integer"),
        ("uuid", "", "at least 1 character"),
        ("inputs", {"x": {"type": "zeros"}}, "random"),
        ("inputs", {"x": {"type": "scalar", "value": "1"}}, "valid"),
        ("tolerance", {"required_matched_ratio": 1.5}, "less than or equal to 1"),
        ("tolerance", {"max_atol": -1}, "greater than or equal to 0"),
        ("tolerance", {"max_rtol": float("inf")}, "finite"),
    ],
)
def test_a_workload_that_breaks_a_rule_is_refused(
    workload: dict[str, Any], field: str, value: object, match: str
) -> None:
    with pytest.raises(ValidationError, match=match):
        Workload.model_validate(workload | {field: value})
