"""One sample: a folder with ``sample.toml``, which says what is expected, and the sources."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from kernelarc.guard import problems
from kernelarc.guard.errors import RequestError, did_you_mean
from kernelarc.guard.schema import (
    BenchmarkOutcome,
    BuildSpec,
    CompileOptions,
    EvaluationStatus,
    Hardware,
    Language,
    Problem,
    Solution,
    SourceFile,
    load_problem,
)
from kernelarc.guard.schema.base import StrictModel, describe

FOLDER = Path(__file__).parent / "samples"
MANIFEST = "sample.toml"
PARTS = FOLDER / "parts"
"""Sources that several samples have in common, like a right answer to spoil."""
OWN_PROBLEM = "own"
PROBLEM_FOLDER = "problem"
"""Beside the manifest, where ``problem`` is ``own``: a problem's files, none of the solution's."""
KEBAB = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

Kind = Literal["adversarial", "honest"]
KINDS: tuple[Kind, ...] = ("adversarial", "honest")

_Line = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\n]*$")]
_Row = Annotated[str, Field(pattern=r"^G?[1-9][0-9]?$")]


def _check_part(value: str) -> None:
    known = sorted(path.name for path in PARTS.glob("*.*"))
    if value not in known:
        raise ValueError(
            f"there is no part {value!r}.{did_you_mean(value, known)} Allowed: {', '.join(known)}"
        )


class MalformedSample(RequestError):
    """A sample's folder cannot be understood; the text names sample, field and what is allowed."""


class UnknownSample(RequestError):
    """No sample of that name."""


class Expectation(StrictModel):
    """``sample.toml``: what the sample is, and what the guard must say of it."""

    why: _Line
    """What it tries; of an honest one, what it does rightly that other harnesses reject."""
    source: _Line
    """Where it is known from, or ``own``."""
    family: _Line
    """Kind of trick. The honest twin of an adversarial sample carries the same one."""
    problem: str = Field(min_length=1)
    """A built-in problem, or ``own``: in the folder ``problem`` beside this file."""
    language: Language
    entry_point: str | None = None
    """``file::function``; by default ``run`` in ``main`` with the language's first suffix."""
    destination_passing: bool = True
    cflags: list[str] = Field(default_factory=list)
    parts: list[str] = Field(default_factory=list)
    """Files of ``samples/parts/`` that belong to the sources."""
    leader: str | None = None
    """Stage ``benchmark``: the part to be timed against, in the same language and with the same
    parts; by default the reference."""
    device: Literal["cpu", "cuda"] = "cpu"
    stage: Literal["verify", "benchmark"]
    expected: list[EvaluationStatus] = Field(min_length=1)
    """Statuses that are right: the verdict's, or the benchmark's where it gets that far."""
    outcomes: list[BenchmarkOutcome] = Field(default_factory=list)
    """Stage ``benchmark``: outcomes that are right when the status is ``PASSED``."""
    without_screen: list[EvaluationStatus] = Field(default_factory=list)
    """Statuses that are right with the static screen off; empty: the same."""
    rows: list[_Row] = Field(default_factory=list)
    """Rows of the catalogue of attacks and of false rejections that it covers."""

    @field_validator("parts", "expected", "outcomes", "without_screen", "rows")
    @classmethod
    def _lists_nothing_twice(cls, values: list[str]) -> list[str]:
        if len(set(values)) != len(values):
            raise ValueError("a value is listed twice")
        return values

    @field_validator("parts")
    @classmethod
    def _parts_exist(cls, values: list[str]) -> list[str]:
        for value in values:
            _check_part(value)
        return values

    @field_validator("leader")
    @classmethod
    def _leader_exists(cls, value: str | None) -> str | None:
        if value is not None:
            _check_part(value)
        return value

    @model_validator(mode="after")
    def _outcomes_go_with_benchmarks(self) -> Self:
        timed = self.stage == "benchmark" and EvaluationStatus.PASSED in self.expected
        if timed and not self.outcomes:
            allowed = ", ".join(o for o in BenchmarkOutcome if o is not BenchmarkOutcome.REJECTED)
            raise ValueError(
                f"outcomes: a sample that may pass its benchmark needs some: {allowed}"
            )
        if self.leader and not timed:
            raise ValueError("leader: only with stage 'benchmark' and 'PASSED' expected")
        if self.outcomes and not timed:
            raise ValueError(
                "outcomes: only with stage 'benchmark' and 'PASSED' among the expected statuses"
            )
        if BenchmarkOutcome.REJECTED in self.outcomes:
            raise ValueError("outcomes: 'REJECTED' is said by a status in 'expected', not here")
        return self


class Sample(StrictModel):
    """A sample with everything that is needed to judge it."""

    name: str
    """``kind/folder``."""
    expectation: Expectation
    problem: Problem
    solution: Solution
    leader: Solution | None = None
    """What it is timed against; ``None``: the reference."""

    @property
    def kind(self) -> Kind:
        """``adversarial`` or ``honest``."""
        return "honest" if self.name.startswith("honest/") else "adversarial"

    def expected(self, *, screen: bool) -> list[EvaluationStatus]:
        """Statuses that are right, with the static screen on or off."""
        return (not screen and self.expectation.without_screen) or self.expectation.expected


def names(folder: Path = FOLDER) -> list[str]:
    """``kind/name`` of every sample: adversarial before honest, each sorted."""
    return [
        f"{kind}/{path.parent.name}"
        for kind in KINDS
        for path in sorted((folder / kind).glob(f"*/{MANIFEST}"))
    ]


def chosen(wanted: list[str], kind: str | None = None, folder: Path = FOLDER) -> list[str]:
    """Those of all names that were asked for; all of them without a wish.

    Args:
        wanted: ``kind/name``, or ``name`` alone, which may mean one of each kind.
        kind: Only these.
        folder: Where the samples are.

    Raises:
        UnknownSample: one is unknown; the text has the nearest.
    """
    known = [n for n in names(folder) if kind is None or n.startswith(f"{kind}/")]
    short = {name.partition("/")[2] for name in known}
    for name in wanted:
        if name not in known and name not in short:
            which = f"{kind} sample" if kind else "sample"
            raise UnknownSample(
                f"unknown {which} {name!r}.{did_you_mean(name, [*known, *short])} "
                "`kernelarc selftest --list` shows all."
            )
    return [n for n in known if not wanted or n in wanted or n.partition("/")[2] in wanted]


def load(name: str, folder: Path = FOLDER) -> Sample:
    """The sample ``kind/name``.

    Raises:
        MalformedSample: names the sample and what is wrong with it.
    """
    home = folder / name
    try:
        if not KEBAB.fullmatch(home.name):
            raise ValueError("the folder's name must be kebab-case, like 'replay-by-pointer'")
        text = (home / MANIFEST).read_text("utf-8")
        expectation = Expectation.model_validate(tomllib.loads(text))
        if name.startswith("honest/") and BenchmarkOutcome.INCONCLUSIVE in expectation.outcomes:
            raise ValueError("outcomes: 'INCONCLUSIVE' is no right outcome of an honest one")
        problem = _problem(expectation, home)
        sources = [_source(path, home) for path in _source_paths(home)]
        solution = _solution(name, expectation, problem, sources)
        leader = _leader(expectation, problem)
    except ValidationError as error:
        raise MalformedSample(f"sample {name!r}: {describe(error)}") from None
    except (OSError, ValueError, RequestError) as error:
        raise MalformedSample(f"sample {name!r}: {error}") from None
    return Sample(
        name=name, expectation=expectation, problem=problem, solution=solution, leader=leader
    )


def _problem(expectation: Expectation, home: Path) -> Problem:
    if expectation.problem == OWN_PROBLEM:
        return load_problem(home / PROBLEM_FOLDER)
    return problems.get(expectation.problem)


def _leader(expectation: Expectation, problem: Problem) -> Solution | None:
    if expectation.leader is None:
        return None
    changes = {"entry_point": f"{expectation.leader}::run"}
    sources = [_source(PARTS / expectation.leader, PARTS)]
    return _solution("leader", expectation.model_copy(update=changes), problem, sources)


def _solution(
    name: str, expectation: Expectation, problem: Problem, sources: list[SourceFile]
) -> Solution:
    language = expectation.language
    flags = expectation.cflags
    return Solution(
        name=name,
        definition=problem.name,
        spec=BuildSpec(
            languages=[language],
            target_hardware=[Hardware.CPU if language is Language.CPP else Hardware.LOCAL],
            entry_point=expectation.entry_point or f"main{language.suffixes[0]}::run",
            destination_passing_style=expectation.destination_passing,
            compile_options=CompileOptions(cflags=flags) if flags else None,
        ),
        sources=[*sources, *(_source(PARTS / part, PARTS) for part in expectation.parts)],
    )


def _source(path: Path, home: Path) -> SourceFile:
    return SourceFile(path=path.relative_to(home).as_posix(), content=path.read_text("utf-8"))


def _source_paths(home: Path) -> list[Path]:
    # An installer compiles the .py files of a wheel; what it adds is no source.
    ignored = {PROBLEM_FOLDER, "__pycache__"}
    return [
        path
        for path in sorted(home.rglob("*"))
        if path.is_file()
        and path.name != MANIFEST
        and not ignored & set(path.relative_to(home).parts[:-1])
    ]
