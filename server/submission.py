"""From the arguments of ``compile_and_verify`` to a ``Solution``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import ValidationError

from kernelarc.guard.errors import MalformedSolution, UnsupportedLanguage, did_you_mean
from kernelarc.guard.schema import (
    BuildSpec,
    CompileOptions,
    Hardware,
    Language,
    Problem,
    Solution,
    SourceFile,
)
from kernelarc.guard.schema.base import describe

ENTRY_FUNCTION = "run"

LANGUAGES: Mapping[str, Mapping[Language, str]] = {
    "cpu": {
        Language.CPP: "C++20 compiled by g++ -O3 -march=native -fopenmp; verified and timed",
        Language.PYTORCH: "Python run() calling torch; verified and timed",
        Language.TRITON: "run by Triton's interpreter; verified, never timed",
    },
    "cuda": {
        Language.PYTORCH: "Python run() calling torch; verified and timed",
        Language.TRITON: "Python run() launching Triton kernels; verified and timed",
        Language.CUDA: "CUDA C++ with a declarative launch plan; verified and timed",
        Language.CUDA_CPP: "CUDA C++ with a torch binding; verified and timed",
    },
}
"""By device: the languages that can be judged there, and what happens to each."""


def languages(device: str) -> Mapping[Language, str]:
    """The languages of ``device`` with one line on each."""
    return LANGUAGES.get(device, {})


def make_solution(
    problem: Problem,
    *,
    device: str,
    language: str,
    source: str | None,
    files: Mapping[str, str] | None,
    cflags: Sequence[str] = (),
) -> Solution:
    """The candidate that the arguments describe. Its text is checked as text, never parsed.

    Args:
        problem: What it solves.
        device: Where it would be judged.
        language: One of ``languages(device)``.
        source: Text of a single file, or
        files: path to text; the file named ``main`` (or the only one) has the entry function.
        cflags: Extra compiler flags, for ``cpp``.

    Raises:
        UnsupportedLanguage: The language is unknown or not judged on this device.
        MalformedSolution: Says which field, what is allowed, and how to repair it.
    """
    kind = _language(language, device)
    sources = _sources(kind, source, files)
    if cflags and kind is not Language.CPP:
        raise MalformedSolution("cflags: only language 'cpp' takes compiler flags; leave them out.")
    try:
        return Solution(
            name=f"{problem.name}-{kind}",
            definition=problem.name,
            spec=BuildSpec(
                languages=[kind],
                target_hardware=[Hardware.CPU if device == "cpu" else Hardware.LOCAL],
                entry_point=f"{_entry_file(list(sources))}::{ENTRY_FUNCTION}",
                compile_options=CompileOptions(cflags=list(cflags)) if cflags else None,
            ),
            sources=[SourceFile(path=path, content=text) for path, text in sources.items()],
        )
    except ValidationError as error:
        raise MalformedSolution(describe(error)) from error


def _language(language: str, device: str) -> Language:
    known = languages(device)
    for kind in known:
        if kind == language:
            return kind
    raise UnsupportedLanguage(
        f"language {language!r} cannot be judged on device {device!r}."
        f"{did_you_mean(language, known)} Allowed: {', '.join(known)}."
    )


def _sources(
    kind: Language, source: str | None, files: Mapping[str, str] | None
) -> Mapping[str, str]:
    if (source is None) == (not files):
        raise MalformedSolution(
            "give either source (the text of one file) or files (path to text), not both and not "
            'neither, e.g. files={"main.cpp": "...", "tile.hpp": "..."}.'
        )
    return files if files else {f"main{kind.suffixes[0]}": source or ""}


def _entry_file(paths: Sequence[str]) -> str:
    if len(paths) == 1:
        return paths[0]
    mains = [path for path in paths if path.rpartition(".")[0] == "main"]
    if len(mains) != 1:
        raise MalformedSolution(
            f"files: exactly one must be named main (main.cpp, main.py, ...), as it has the "
            f"function {ENTRY_FUNCTION!r}; got {', '.join(paths)}."
        )
    return mains[0]
