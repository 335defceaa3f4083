"""Arithmetic over axis names, evaluated exactly and without ``eval``.

Used for ``expr`` axes and for the formulas of a contract. Values are rationals, so ``N / 2 * 2``
is ``N`` for every N, and an axis that does not come out integral is an error, not a rounding.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction

MAX_LENGTH = 1000
MAX_MAGNITUDE = 2**256
MAX_EXPONENT = 64


class ExpressionError(ValueError):
    """An expression is not allowed, names an unknown axis or has no value."""


def evaluate(expression: str, names: Mapping[str, int]) -> Fraction:
    """The exact value of an expression.

    Allowed are numbers, names, parentheses and ``+ - * / // % **``.

    Args:
        expression: for example ``"2 * M * N * K"``.
        names: values of the names.

    Raises:
        ExpressionError: with the expression and what is wrong in it.
    """
    try:
        return _value(_parse(expression), names)
    except ZeroDivisionError:
        raise ExpressionError(f"{expression!r} divides by zero for {dict(names)}") from None
    except ExpressionError as error:
        raise ExpressionError(f"in {expression!r}: {error}") from None


def evaluate_integer(expression: str, names: Mapping[str, int]) -> int:
    """As ``evaluate``, for a result that must be integral."""
    value = evaluate(expression, names)
    if value.denominator != 1:
        raise ExpressionError(f"{expression!r} is not an integer for {dict(names)}: {value}")
    return value.numerator


def names_in(expression: str) -> set[str]:
    """The names that an expression uses; it is checked for syntax on the way."""
    tree = _parse(expression)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    try:
        _value(tree, dict.fromkeys(names, 1))
    except ZeroDivisionError:
        pass  # only the syntax matters here; the values are made up
    except ExpressionError as error:
        raise ExpressionError(f"in {expression!r}: {error}") from None
    return names


def _parse(expression: str) -> ast.expr:
    if len(expression) > MAX_LENGTH:
        raise ExpressionError(f"an expression may have {MAX_LENGTH} characters")
    try:
        return ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ExpressionError(f"{expression!r} is not an arithmetic expression") from None


def _value(node: ast.expr, names: Mapping[str, int]) -> Fraction:
    match node:
        case ast.Constant(value=bool()):
            raise ExpressionError("only numbers, axis names and + - * / // % ** are allowed")
        case ast.Constant(value=int() | float() as number):
            return _constant(number)
        case ast.Name(id=name):
            if name not in names:
                known = ", ".join(names) or "none"
                raise ExpressionError(f"unknown name {name!r}; known here: {known}")
            return Fraction(names[name])
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand, names)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            result = _OPERATIONS[type(op)](_value(left, names), _value(right, names))
            return _bounded(result)
        case _:
            raise ExpressionError("only numbers, axis names and + - * / // % ** are allowed")


def _constant(number: float) -> Fraction:
    try:
        # repr, so that 0.1 is one tenth and not the nearest binary fraction
        return _bounded(Fraction(repr(number)))
    except ValueError:
        raise ExpressionError("infinite constant") from None


def _bounded(value: Fraction) -> Fraction:
    if max(abs(value.numerator), value.denominator) > MAX_MAGNITUDE:
        raise ExpressionError("a number in it is too large")
    return value


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if abs(exponent.numerator) > MAX_EXPONENT or exponent.denominator > MAX_EXPONENT:
        raise ExpressionError(f"exponents go up to {MAX_EXPONENT}")
    power = base**exponent.numerator
    assert isinstance(power, Fraction)
    root = exponent.denominator
    if root == 1:
        return power
    numerator, denominator = (
        _exact_root(power.numerator, root),
        _exact_root(power.denominator, root),
    )
    if numerator is None or denominator is None:
        raise ExpressionError(f"({base}) ** ({exponent}) is not rational")
    return Fraction(numerator, denominator)


def _exact_root(value: int, degree: int) -> int | None:
    """The integer whose ``degree``-th power is ``value``, if there is one."""
    if value < 0:
        return None
    low, high = 0, 1 << (value.bit_length() // degree + 1)
    while low < high:
        middle = (low + high) // 2
        if middle**degree < value:
            low = middle + 1
        else:
            high = middle
    return low if low**degree == value else None


_OPERATIONS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: lambda a, b: Fraction(a // b),
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
