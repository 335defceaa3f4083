"""Reading problems and solutions from disk, and making solutions from a bare source."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from kernelarc.guard.errors import MalformedProblem, MalformedSolution, did_you_mean
from kernelarc.guard.schema.base import describe, parse_json
from kernelarc.guard.schema.contract import Contract
from kernelarc.guard.schema.definition import Definition
from kernelarc.guard.schema.problem import Problem
from kernelarc.guard.schema.solution import (
    MAX_SOURCE_BYTES,
    BuildSpec,
    Hardware,
    Language,
    Solution,
    SourceFile,
    solution_id,
)
from kernelarc.guard.schema.source_paths import checked_path
from kernelarc.guard.schema.workload import Workload

MAX_PROBLEM_FILE_BYTES = 64 << 20

ModelT = TypeVar("ModelT", bound=BaseModel)


def load_problem(path: Path) -> Problem:
    """Read a problem's folder.

    Args:
        path: holds ``definition.json``, ``workload.jsonl`` and optionally ``contract.json``.
            Without the last, inputs are drawn by the default rule, every workload counts on
            every device, and each is held to its own tolerance.

    Raises:
        MalformedProblem: names file, line and field.
    """
    definition = _parse(Definition, _read(path / "definition.json"), "definition.json")
    workloads = load_workloads(path / "workload.jsonl")
    contract = Contract()
    if (path / "contract.json").exists():
        contract = _parse(Contract, _read(path / "contract.json"), "contract.json")
    try:
        return Problem(
            definition=definition, workloads=tuple(workloads), contract=contract, folder=path
        )
    except ValidationError as error:
        raise MalformedProblem(f"problem {definition.name!r}: {describe(error)}") from None


def load_workloads(path: Path) -> list[Workload]:
    """Read a ``workload.jsonl``; blank lines are skipped.

    Raises:
        MalformedProblem: names the line and the field.
    """
    lines = _read(path).split("\n")
    return [
        _parse(Workload, line, f"{path.name}, line {number}")
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ]


def load_solution(path: Path, problem: Problem, language: str | None = None) -> Solution:
    """Read a solution: a ``solution.json``, its folder, or a single source file.

    Sources of a ``solution.json`` without ``content`` are read from its folder. A single file
    gets its language from its suffix (``.cpp .cc`` are ``cpp``, ``.cu`` is ``cuda``, ``.py``
    is ``triton`` if it imports triton, else ``pytorch``) and the entry point ``run``.

    Args:
        path: what to read.
        problem: what it solves.
        language: overrides the language of a single file.

    Raises:
        MalformedSolution: names the field, what is allowed and, where it helps, an example.
    """
    if path.is_dir():
        path = path / "solution.json"
    text = _read_text(path, MAX_SOURCE_BYTES * 2, path.name)
    if path.suffix != ".json":
        return solution_from_source(
            problem,
            text,
            language or _language_of(path, text),
            entry_point=f"{path.name}::run",
            name=path.stem,
        )
    try:
        data = parse_json(text)
        solution = Solution.model_validate(_with_contents(data, path.parent))
    except ValidationError as error:
        raise MalformedSolution(f"{path.name}: {describe(error)}") from None
    except ValueError as error:
        raise MalformedSolution(f"{path.name}: {error}") from None
    if solution.definition != problem.name:
        raise MalformedSolution(
            f"{path.name}: definition: it solves {solution.definition!r}, not {problem.name!r}"
        )
    return solution


def solution_from_source(
    problem: Problem,
    source: str,
    language: str,
    *,
    entry_point: str | None = None,
    name: str | None = None,
    destination_passing_style: bool = True,
) -> Solution:
    """A solution of one file.

    Args:
        problem: what it solves.
        source: text of the file.
        language: one of ``Language``.
        entry_point: ``file::function``; by default ``main.<suffix of the language>::run``.
        name: by default made of problem and language.
        destination_passing_style: whether ``run`` writes into its outputs or returns them
            (Python only).

    Raises:
        MalformedSolution: names the field and what is allowed.
    """
    try:
        kind = Language(language)
    except ValueError:
        raise MalformedSolution(
            f"language: {language!r} is unknown.{did_you_mean(language, Language)} Allowed: "
            f"{', '.join(Language)}"
        ) from None
    entry_point = entry_point or f"main{kind.suffixes[0]}::run"
    try:
        return Solution(
            name=name or f"{problem.name}-{kind}",
            definition=problem.name,
            spec=BuildSpec(
                languages=[kind],
                target_hardware=[Hardware.CPU if kind is Language.CPP else Hardware.LOCAL],
                entry_point=entry_point,
                destination_passing_style=destination_passing_style,
            ),
            sources=[SourceFile(path=entry_point.partition("::")[0], content=source)],
        )
    except ValidationError as error:
        raise MalformedSolution(describe(error)) from None


def reference_solution(problem: Problem) -> Solution:
    """The reference as a ``pytorch`` solution that returns its outputs."""
    return solution_from_source(
        problem,
        problem.definition.reference,
        Language.PYTORCH,
        entry_point="reference.py::run",
        name=f"{problem.name}-reference",
        destination_passing_style=False,
    )


def reference_id(problem: Problem) -> str:
    """Content id of the reference: whom a first candidate is timed against."""
    return solution_id(reference_solution(problem))


def _language_of(path: Path, source: str) -> str:
    by_suffix = {".cpp": Language.CPP, ".cc": Language.CPP, ".cu": Language.CUDA}
    if path.suffix in by_suffix:
        return by_suffix[path.suffix]
    if path.suffix != ".py":
        raise MalformedSolution(
            f"{path.name}: cannot tell the language from the ending {path.suffix!r}; name the "
            f"file .cpp, .cc, .cu or .py, or pass one of: {', '.join(Language)}"
        )
    return Language.TRITON if _imports(source, "triton") else Language.PYTORCH


def _imports(source: str, module: str) -> bool:
    """Whether a line imports the module. A guess from the text: the source is not parsed here."""
    lines = (line.split() for line in source.splitlines())
    return any(
        len(words) > 1
        and words[0] in ("import", "from")
        and words[1].rstrip(",").split(".")[0] == module
        for words in lines
    )


def _with_contents(data: object, folder: Path) -> object:
    """``data`` with the missing contents of its sources filled from the folder."""
    if not isinstance(data, dict) or not isinstance(data.get("sources"), list):
        return data  # the model's own error is better than one from here
    sources = [
        {**source, "content": _read_source(folder, source["path"])}
        if isinstance(source, dict) and not source.get("content") and "path" in source
        else source
        for source in data["sources"]
    ]
    return {**data, "sources": sources}


def _read_source(folder: Path, path: object) -> str:
    if not isinstance(path, str):
        raise ValueError(f"sources.path: {path!r} is not a string")
    checked_path(path)
    target = folder.resolve() / path
    if target.resolve() != target:
        raise ValueError(f"sources: {path!r} is or passes through a symbolic link; use a real file")
    return _read_text(target, MAX_SOURCE_BYTES, path)


def _read_text(path: Path, limit_bytes: int, shown: str) -> str:
    """Text of a regular file; never blocks on a pipe, never reads more than the limit."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise MalformedSolution(f"{shown}: not a regular file")
            content = file.read(limit_bytes + 1)
        if len(content) > limit_bytes:
            raise MalformedSolution(f"{shown}: larger than {limit_bytes} bytes")
        return content.decode()
    except OSError as error:
        raise MalformedSolution(f"{shown}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise MalformedSolution(f"{shown}: not UTF-8 text") from None


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_PROBLEM_FILE_BYTES:
            raise MalformedProblem(f"{path.name}: larger than {MAX_PROBLEM_FILE_BYTES} bytes")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise MalformedProblem(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise MalformedProblem(f"{path.name}: not UTF-8 text") from None


def _parse(model: type[ModelT], text: str, where: str) -> ModelT:
    try:
        return model.model_validate(parse_json(text))
    except ValidationError as error:
        raise MalformedProblem(f"{where}: {describe(error)}") from None
    except ValueError as error:
        raise MalformedProblem(f"{where}: {error}") from None
