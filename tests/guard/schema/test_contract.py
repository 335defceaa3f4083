"""Contracts: rules for inputs, shapes, tolerances and mutants."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kernelarc.guard.schema import Contract, InputRule, Mutant, OutputTolerance, ShapeRule


@pytest.mark.parametrize(
    ("rule", "match"),
    [
        ({"kind": "weight"}, "fan_in is needed"),
        ({"kind": "normal", "fan_in": "K"}, "fan_in is needed"),
        ({"kind": "integers", "low": "0"}, "needs low and high"),
        ({"kind": "uniform"}, "needs low and high"),
        ({"kind": "normal", "low": "0"}, "has no low and high"),
        ({"kind": "uniform", "low": "0", "high": "1", "distinct": True}, "distinct is for"),
        ({"kind": "weight", "fan_in": "K("}, "not an arithmetic expression"),
        ({"kind": "zeros"}, "'normal'"),
        ({"scal": 2.0}, "unknown key 'scal'.*Did you mean 'scale'"),
    ],
)
def test_an_input_rule_that_makes_no_sense_is_refused(rule: dict[str, Any], match: str) -> None:
    with pytest.raises(ValidationError, match=match):
        InputRule.model_validate(rule)


@given(st.integers(-3, 40), st.integers(-3, 40), st.integers(0, 9))
def test_a_shape_rule_is_accepted_exactly_if_some_size_satisfies_it(
    low: int, high: int, step: int
) -> None:
    sizes = [n for n in range(max(low, 0), high + 1) if step and n % step == 0]
    data = {"low": low, "high": high, "multiple_of": step}
    if sizes and low >= 1:
        assert ShapeRule.model_validate(data).multiple_of == step
    else:
        with pytest.raises(ValidationError):
            ShapeRule.model_validate(data)


def test_a_mutant_applies_its_replacements_in_order() -> None:
    mutant = Mutant(name="m", replace=[("a * b", "a * c"), ("* c", "+ b")])
    assert mutant.apply("def run(a, b): return a * b") == "def run(a, b): return a + b"


@pytest.mark.parametrize(
    ("replace", "match"),
    [
        (("q", "p"), "'q' occurs 0 times"),
        (("a", "b"), "'a' occurs 2 times"),
        (("x + a", "x + a"), "changes nothing"),
        (("x + a", "x +"), "not Python"),
    ],
)
def test_a_mutant_that_does_not_fit_its_reference_is_refused(
    replace: tuple[str, str], match: str
) -> None:
    with pytest.raises(ValueError, match=match):
        Mutant(name="m", replace=[replace]).apply("def run(x, a): return x + a")


@pytest.mark.parametrize(
    "data",
    [
        {"format": 2},
        {"devices": {"u": ["tpu"]}},
        {"precision": {"forbidden": ["int8"]}},
        {"outputs": {"y": {"rtol": -1, "atol_rms": 0}}},
        {"outputs": {"y": {"rtol": 0, "atol_rms": 0, "matched_ratio": 0}}},
        {"outputs": {"y": {"rtol": 0, "atol_rms": 0, "block_rows": 0}}},
        {"mutants": [{"name": "m", "replace": [["a", "b"]]}] * 2},
        {"mutants": [{"name": "m", "replace": []}]},
        {"tolerances": {}},
    ],
)
def test_a_contract_that_breaks_a_rule_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Contract.model_validate(data)


def test_a_contract_is_written_as_it_was_read() -> None:
    data = {"format": 1, "title": "t", "mutants": [{"name": "m", "replace": [["a", "b"]]}]}
    assert Contract.model_validate(data).to_json() == data


def test_an_output_tolerance_has_no_absolute_part_unless_asked() -> None:
    assert OutputTolerance(rtol=0.1, atol_rms=0.1).atol == 0
