"""The evaluator against Python's own arithmetic, and what it refuses."""

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelarc.guard.schema import ExpressionError, evaluate, evaluate_integer
from kernelarc.guard.schema.expressions import names_in

NAMES = {"M": 7, "N": 64, "zero": 0}


def _expressions() -> st.SearchStrategy[str]:
    operators = st.sampled_from(["+", "-", "*", "/", "//", "%"])
    return st.recursive(
        st.sampled_from([*NAMES, "1", "2", "17", "(-4)"]),
        lambda inner: st.one_of(
            st.builds("({} {} {})".format, inner, operators, inner),
            st.builds("({} ** {})".format, inner, st.sampled_from(["0", "2", "(-1)"])),
            st.builds("(-{})".format, inner),
        ),
        max_leaves=8,
    )


@given(_expressions())
def test_agrees_with_python_on_rationals(expression: str) -> None:
    rational = re.sub(r"\d+", r"F(\g<0>)", expression)
    scope = {name: Fraction(value) for name, value in NAMES.items()} | {"F": Fraction}
    try:
        expected = eval(rational, scope)
    except ZeroDivisionError:
        with pytest.raises(ExpressionError, match="divides by zero"):
            evaluate(expression, NAMES)
        return
    assert evaluate(expression, NAMES) == expected


@given(st.integers(0, 2**100), st.integers(1, 2**20))
def test_keeps_integers_exact_beyond_the_precision_of_a_float(a: int, b: int) -> None:
    assert evaluate_integer("a * b / b", {"a": a, "b": b}) == a


@given(st.integers(0, 10**6))
def test_takes_the_exact_square_root_of_a_square_only(n: int) -> None:
    assert evaluate_integer("x ** 0.5", {"x": n * n}) == n
    with pytest.raises(ExpressionError, match="not rational"):
        evaluate("x ** 0.5", {"x": (n + 1) ** 2 + 1})


def test_reads_a_decimal_constant_as_it_is_written() -> None:
    assert evaluate("0.1 * n", {"n": 10}) == 1


def test_refuses_a_fraction_where_an_integer_is_needed() -> None:
    with pytest.raises(ExpressionError, match=r"'N / 3' is not an integer for {'N': 64}: 64/3"):
        evaluate_integer("N / 3", {"N": 64})


def test_names_the_unknown_axis_and_the_known_ones() -> None:
    with pytest.raises(ExpressionError, match="unknown name 'Q'; known here: M, N, zero"):
        evaluate("M + Q", NAMES)


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os')",
        "M.real",
        "[M]",
        "M if N else 1",
        "M < N",
        "lambda: 1",
        "'a' * 3",
        "True",
        "M & N",
        "~M",
        "1j",
        "None",
        "",
        "M +",
        "M\nN",
        "1e999",
        "\0",
        "2 ** 65",
        "9 ** 64 ** 2",
        "1" * 400,
        "(" * 5000,
        "-" * 900 + "1" + " + 1" * 100,
    ],
)
def test_refuses_all_but_bounded_arithmetic(expression: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate(expression, NAMES)


def test_a_tower_of_powers_is_refused_before_it_is_computed() -> None:
    with pytest.raises(ExpressionError, match="too large"):
        evaluate("((N ** 64) ** 64) ** 64", NAMES)


def test_finds_names_even_where_made_up_values_divide_by_zero() -> None:
    assert names_in("M / (N - K)") == {"M", "N", "K"}
