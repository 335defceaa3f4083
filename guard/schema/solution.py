"""``solution.json``: submitted sources, in SOL-ExecBench's form, and their identity."""

from __future__ import annotations

import hashlib
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from kernelarc.guard.schema.base import StrictModel, canonical_bytes
from kernelarc.guard.schema.source_paths import checked_path, shadowed_module

MAX_SOURCE_BYTES = 1 << 20
"""All sources of a solution together."""
MAX_SOURCES = 64
MAX_FLAGS = 64
MAX_FLAG_LENGTH = 200


class Language(StrEnum):
    """SOL-ExecBench's languages, and ours."""

    PYTORCH = "pytorch"
    TRITON = "triton"
    CUTE_DSL = "cute_dsl"
    CUTILE = "cutile"
    CUDNN_FRONTEND = "cudnn_frontend"
    TILELANG = "tilelang"
    HELION = "helion"
    CUTLASS = "cutlass"
    CUDNN = "cudnn"
    CUBLAS = "cublas"
    CUDA_CPP = "cuda_cpp"
    CUDA = "cuda"
    """Ours: CUDA C++ with a declarative launch plan."""
    CPP = "cpp"
    """Ours: C++ for the CPU, an ``extern "C"`` function."""

    @property
    def is_python(self) -> bool:
        """Whether its sources are Python."""
        return self in _PYTHON

    @property
    def suffixes(self) -> tuple[str, ...]:
        """Allowed endings of source files."""
        if self.is_python:
            return (".py",)
        if self is Language.CPP:
            return (".cpp", ".cc", ".cxx", ".c", ".h", ".hpp")
        if self is Language.CUDA:
            return (".cu", ".cuh", ".h", ".hpp", ".json")
        return (".cu", ".cpp", ".cc", ".cxx", ".c", ".h", ".hpp", ".cuh")


_PYTHON = {
    Language.PYTORCH,
    Language.TRITON,
    Language.CUTE_DSL,
    Language.CUTILE,
    Language.CUDNN_FRONTEND,
    Language.TILELANG,
    Language.HELION,
}
_ALONE = {Language.CPP, Language.CUDA}


class Hardware(StrEnum):
    """What a solution was written for."""

    B200 = "B200"
    LOCAL = "LOCAL"
    H100 = "H100"
    H200 = "H200"
    CPU = "CPU"


_Flag = Annotated[str, Field(max_length=MAX_FLAG_LENGTH)]
_Flags = Annotated[list[_Flag], Field(max_length=MAX_FLAGS)]


class CompileOptions(StrictModel):
    """Flags of the compilers; each language's builder has a list of what it allows."""

    cflags: _Flags = Field(default_factory=list)
    cuda_cflags: _Flags = Field(default_factory=lambda: ["-O3", "--use_fast_math"])
    ld_flags: _Flags = Field(default_factory=lambda: ["-lcuda"])


class BuildSpec(StrictModel):
    """How the sources become a function."""

    languages: list[Language] = Field(min_length=1)
    target_hardware: list[Hardware] = Field(min_length=1)
    entry_point: str
    """``file::function``."""
    dependencies: list[str] = Field(default_factory=list)
    """Packages that the author names; informative."""
    destination_passing_style: bool = True
    """Whether ``run(*inputs, *outputs)`` writes into the outputs, or ``run(*inputs)`` returns
    them."""
    binding: Literal["torch"] | None = None
    """How a C++ extension is bound; unused by our own languages."""
    compile_options: CompileOptions | None = None

    @property
    def entry_file(self) -> str:
        """Path of the file with the entry point."""
        return self.entry_point.partition("::")[0]

    @property
    def entry_function(self) -> str:
        """Name of the function in it."""
        return self.entry_point.partition("::")[2]

    @field_validator("languages")
    @classmethod
    def _languages_go_together(cls, languages: list[Language]) -> list[Language]:
        if len({language.is_python for language in languages}) > 1:
            raise ValueError("Python and C++ languages cannot be mixed in one solution")
        if len(languages) > 1 and _ALONE & set(languages):
            raise ValueError("'cpp' and 'cuda' cannot be combined with another language")
        if len(set(languages)) != len(languages):
            raise ValueError("a language is listed twice")
        return languages

    @field_validator("entry_point")
    @classmethod
    def _entry_point_has_two_parts(cls, entry_point: str) -> str:
        file, separator, function = entry_point.partition("::")
        if not (file and separator and function.isidentifier() and function.isascii()):
            raise ValueError("must be 'file::function', for example 'main.py::run'")
        return entry_point


class SourceFile(StrictModel):
    """One file."""

    path: str
    """Relative to the solution's folder, with forward slashes."""
    content: str

    @field_validator("path")
    @classmethod
    def _stays_in_its_folder(cls, path: str) -> str:
        return checked_path(path)

    @field_validator("content")
    @classmethod
    def _is_text(cls, content: str) -> str:
        if not content.strip():
            raise ValueError("the file is empty")
        if "\0" in content:
            raise ValueError("the file has a NUL character")
        return content


class Solution(StrictModel):
    """A submission. Two solutions with one ``solution_id`` are the same candidate."""

    name: str = Field(min_length=1)
    definition: str = Field(min_length=1)
    """Name of the definition that it solves."""
    author: str = ""
    spec: BuildSpec
    sources: list[SourceFile] = Field(min_length=1, max_length=MAX_SOURCES)
    description: str | None = None

    @property
    def language(self) -> Language:
        """The language that decides how it is run: the most specific that is listed."""
        specific = [lang for lang in self.spec.languages if lang is not Language.PYTORCH]
        return (specific or self.spec.languages)[0]

    @property
    def entry_source(self) -> str:
        """Text of the file with the entry point."""
        return next(s.content for s in self.sources if s.path == self.spec.entry_file)

    @model_validator(mode="after")
    def _sources_fit(self) -> Self:
        paths = [source.path for source in self.sources]
        folded = [path.casefold() for path in paths]
        twice = sorted({path for path in paths if folded.count(path.casefold()) > 1})
        if twice:
            raise ValueError(f"sources: {twice} differ at most in case; give each its own name")
        if self.spec.entry_file not in paths:
            raise ValueError(
                f"spec.entry_point: {self.spec.entry_file!r} is not among the sources {paths}"
            )
        size_bytes = sum(len(source.content.encode()) for source in self.sources)
        if size_bytes > MAX_SOURCE_BYTES:
            raise ValueError(f"sources: {size_bytes} bytes; {MAX_SOURCE_BYTES} are allowed")
        _check_nesting(folded)
        return self

    @model_validator(mode="after")
    def _suffixes_fit(self) -> Self:
        allowed = sorted({suffix for lang in self.spec.languages for suffix in lang.suffixes})
        for source in self.sources:
            if PurePosixPath(source.path).suffix not in allowed:
                names = ", ".join(self.spec.languages)
                raise ValueError(
                    f"sources: {source.path!r} cannot be a source of {names}; "
                    f"allowed endings: {', '.join(allowed)}"
                )
            module = shadowed_module(source.path) if self.language.is_python else None
            if module:
                raise ValueError(
                    f"sources: {source.path!r} would hide the module {module!r}; rename it, "
                    f"for example to 'my_{module}.py'"
                )
        return self


def _check_nesting(paths: list[str]) -> None:
    for path in paths:
        parents = {str(parent) for parent in PurePosixPath(path).parents}
        clash = parents & set(paths)
        if clash:
            raise ValueError(f"sources: {sorted(clash)[0]!r} is both a file and a folder")


def solution_id(solution: Solution) -> str:
    """The identity of a solution: 32 hex digits.

    The first half of the SHA-256 of definition name, languages, entry point, calling convention,
    compile options and sources. Name, author, description, named dependencies, target hardware
    and the order of the files do not enter.
    """
    spec = solution.spec
    options = spec.compile_options
    content = {
        "definition": solution.definition,
        "languages": sorted(spec.languages),
        "entry_point": spec.entry_point,
        "destination_passing_style": spec.destination_passing_style,
        "binding": spec.binding,
        "compile_options": None if options is None else options.model_dump(),
        "sources": {source.path: source.content for source in solution.sources},
    }
    return hashlib.sha256(canonical_bytes(content)).hexdigest()[:32]
