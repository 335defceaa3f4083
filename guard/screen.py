"""A first look at the text of a solution, before it is compiled or run.

A courtesy, never a wall: it finds at once, and says clearly, what would fail later anyway. The
sandbox and the judge do not rely on it. So a miss costs a few seconds, while a false rejection
costs an idea: only what can never be legitimate has a status, the rest are notes. It parses what
a candidate wrote, so it runs where candidates run: in the sandbox, before g++ or the import.
Comments and strings do not count; neither does Python under ``if __name__ == "__main__"``, which
never runs.
"""

from __future__ import annotations

from collections.abc import Mapping

from kernelarc.guard.schema.problem import Problem
from kernelarc.guard.schema.signatures import cpp_signature, python_signature
from kernelarc.guard.schema.solution import Language, Solution
from kernelarc.guard.screen_cpp import screen_c, screen_cpp_entry
from kernelarc.guard.screen_finding import Entry, ScreenFinding
from kernelarc.guard.screen_python import screen_python

LONGEST_CHARACTERS = 200_000
"""Longer files are not looked at: no kernel is that long, and the screen should not take long."""

__all__ = ["LONGEST_CHARACTERS", "Entry", "ScreenFinding", "entry_of", "screen", "screen_files"]


def screen(problem: Problem, solution: Solution, device: str) -> list[ScreenFinding]:
    """Look at a solution's sources.

    Args:
        problem: What it claims to solve.
        solution: The sources; they are read, never run.
        device: ``cpu`` or ``cuda``.

    Returns:
        Findings by file and line. The solution is rejected if one of them has a status.
    """
    files = {source.path: source.content for source in solution.sources}
    return screen_files(files, solution.language, entry_of(problem, solution), device)


def entry_of(problem: Problem, solution: Solution) -> Entry:
    """The function that a solution has to define."""
    definition = problem.definition
    into_outputs = solution.spec.destination_passing_style
    count = len(definition.inputs)
    if solution.language is Language.CPP:
        count += len(definition.outputs) + len(definition.axes)
        signature = cpp_signature(problem)
    else:
        count += len(definition.outputs) if into_outputs else 0
        signature = python_signature(problem, destination_passing_style=into_outputs)
    return Entry(solution.spec.entry_file, solution.spec.entry_function, count, signature)


def screen_files(
    files: Mapping[str, str], language: Language, entry: Entry, device: str
) -> list[ScreenFinding]:
    """The same on plain texts.

    Args:
        files: Text by relative path.
        language: Of the solution.
        entry: What must be defined in them.
        device: ``cpu`` or ``cuda``.
    """
    if any(len(text) > LONGEST_CHARACTERS for text in files.values()):
        return []
    found: list[ScreenFinding] = []
    for path, text in files.items():
        if language.is_python:
            found += screen_python(path, text, entry, device)
        else:
            found += screen_c(path, text, files)
    if language is Language.CPP:
        found += screen_cpp_entry(files, entry)
    return sorted(set(found), key=lambda f: (f.file, f.line or 0, f.message))
