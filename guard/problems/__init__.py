"""The built-in problems: ``guard/problems/<name>/`` holds one each."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from kernelarc.guard.errors import UnknownProblem
from kernelarc.guard.schema import Problem, load_problem

_FOLDER = Path(__file__).parent


@cache
def _names() -> tuple[str, ...]:
    return tuple(sorted(path.parent.name for path in _FOLDER.glob("*/definition.json")))


def names() -> list[str]:
    """Names of the built-in problems, sorted."""
    return list(_names())


@cache
def get(name: str) -> Problem:
    """The built-in problem of that name, read once.

    Raises:
        UnknownProblem: lists the names there are.
    """
    if name not in _names():
        raise UnknownProblem(name, names())
    return load_problem(_FOLDER / name)
