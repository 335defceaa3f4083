"""Definitions: the rules of SOL-ExecBench's format, and what an axis may be."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kernelarc.guard.schema import Definition, DType


def _refused(data: dict[str, Any], match: str) -> None:
    with pytest.raises(ValidationError, match=match):
        Definition.model_validate(data)


def test_a_definition_is_written_as_it_was_read(definition: dict[str, Any]) -> None:
    definition["constraints"] = ["M > 0"]
    definition["axes"]["M"]["note"] = {"deep": [1, 2.5, None]}
    assert Definition.model_validate(definition).to_json() == definition


def test_the_order_of_inputs_and_axes_is_kept(definition: dict[str, Any]) -> None:
    read = Definition.model_validate(definition).to_json()
    assert list(read["inputs"]) == ["x", "weight", "eps"]
    assert list(read["axes"]) == ["M", "H", "N"]


def test_unknown_keys_are_reported_with_their_place(definition: dict[str, Any]) -> None:
    definition["constraints"] = []
    definition["inputs"]["x"]["layout"] = "row"
    assert Definition.model_validate(definition).warnings() == [
        "unknown key 'constraints', ignored",
        "unknown key 'inputs.x.layout', ignored",
    ]


def test_axes_resolve_in_the_order_of_the_definition(definition: dict[str, Any]) -> None:
    axes = Definition.model_validate(definition).resolve({"M": 5})
    assert list(axes.items()) == [("M", 5), ("H", 4), ("N", 8)]


def test_an_expression_may_use_an_earlier_expression(definition: dict[str, Any]) -> None:
    definition["axes"]["Q"] = {"type": "expr", "expression": "H * M"}
    assert Definition.model_validate(definition).resolve({"M": 5})["Q"] == 20


def test_an_expression_may_not_use_a_later_expression(definition: dict[str, Any]) -> None:
    definition["axes"]["H"]["expression"] = "Q"
    definition["axes"]["Q"] = {"type": "expr", "expression": "N"}
    _refused(definition, r"axis 'H' = Q uses \['Q'\]")


@pytest.mark.parametrize(
    ("given_axes", "match"),
    [
        ({}, "no value for 'M'"),
        ({"M": 1, "Z": 2}, r"unknown \['Z'\]"),
        ({"M": 1, "N": 9}, "'N' is 8 by definition, not 9"),
    ],
)
def test_axes_that_do_not_fit_are_named(
    definition: dict[str, Any], given_axes: dict[str, int], match: str
) -> None:
    with pytest.raises(ValueError, match=match):
        Definition.model_validate(definition).resolve(given_axes)


def test_a_constant_may_be_repeated_with_its_own_value(definition: dict[str, Any]) -> None:
    assert Definition.model_validate(definition).resolve({"M": 1, "N": 8})["N"] == 8


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_an_expression_axis_is_exact_or_an_error(m: int, n: int) -> None:
    definition = Definition.model_validate(
        {
            "name": "d",
            "axes": {
                "M": {"type": "var"},
                "N": {"type": "var"},
                "E": {"type": "expr", "expression": "(M - N) / 2"},
            },
            "inputs": {"x": {"shape": ["M"], "dtype": "float32"}},
            "outputs": {"y": {"shape": ["E"], "dtype": "float32"}},
            "reference": "def run(x):\n    return x",
        }
    )
    if m >= n and (m - n) % 2 == 0:
        assert definition.resolve({"M": m, "N": n})["E"] == (m - n) // 2
    else:
        with pytest.raises(ValueError, match=r"axes: .E. |integer"):
            definition.resolve({"M": m, "N": n})


@pytest.mark.parametrize(
    ("field", "value", "match"),
    [
        ("reference", "def run(x, eps, weight):\n    return x", "equal in name and order"),
        ("reference", "def walk(x):\n    return x", r"no top-level function run\(\)"),
        ("reference", "class A:\n    def run(x): pass", r"no top-level function run\(\)"),
        ("reference", "def run(x:", "not Python"),
        ("reference", "(" * 100_000, "not Python"),
        ("custom_inputs_entrypoint", "make", "reference has no function 'make'"),
        ("outputs", {}, "at least 1 item"),
        ("outputs", {"x": {"shape": ["M"], "dtype": "float32"}}, "both inputs and outputs"),
        ("outputs", {"y": {"shape": ["K"], "dtype": "float32"}}, "neither digits nor an axis"),
        ("outputs", {"y": {"shape": ["-1"], "dtype": "float32"}}, "neither digits nor an axis"),
        ("outputs", {"y": {"shape": ["M"], "dtype": "uint8"}}, "float64"),
        ("axes", {"M": {"type": "var"}, "N": {"type": "const", "value": -8}}, "greater than"),
        ("axes", {"M": {"type": "var"}, "N": {"type": "const", "value": "8"}}, "valid integer"),
        ("axes", {"M": {"type": "var"}, "N": {"type": "const", "value": True}}, "valid integer"),
        ("name", "", "at least 1 character"),
    ],
)
def test_a_definition_that_breaks_a_rule_is_refused(
    definition: dict[str, Any], field: str, value: object, match: str
) -> None:
    _refused(definition | {field: value}, match)


def test_an_input_may_not_have_the_name_of_an_axis(definition: dict[str, Any]) -> None:
    definition["axes"]["x"] = {"type": "var"}
    _refused(definition, "both inputs and axes")


def test_sizes_of_dtypes() -> None:
    assert {dtype.value: dtype.bits for dtype in DType} == {
        "float64": 64,
        "float32": 32,
        "float16": 16,
        "bfloat16": 16,
        "float8_e4m3fn": 8,
        "float8_e5m2": 8,
        "float4_e2m1": 4,
        "float4_e2m1fn_x2": 4,
        "int64": 64,
        "int32": 32,
        "int16": 16,
        "int8": 8,
        "bool": 8,
    }
