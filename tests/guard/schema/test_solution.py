"""Solutions: what is refused, and what makes two of them the same candidate."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from kernelarc.guard.schema import Language, Solution, solution_id
from kernelarc.guard.schema.base import describe
from kernelarc.guard.schema.solution import (
    MAX_FLAG_LENGTH,
    MAX_FLAGS,
    MAX_SOURCE_BYTES,
    MAX_SOURCES,
)

SOLUTION: dict[str, Any] = {
    "name": "mine",
    "definition": "gemm",
    "author": "me",
    "spec": {
        "languages": ["cuda_cpp"],
        "target_hardware": ["LOCAL"],
        "entry_point": "main.cu::run",
        "dependencies": ["torch"],
        "destination_passing_style": True,
        "binding": "torch",
        "compile_options": {"cflags": ["-O3"], "cuda_cflags": ["-O3"], "ld_flags": []},
    },
    "sources": [
        {"path": "main.cu", "content": "void run() {}"},
        {"path": "tile.cuh", "content": "#pragma once"},
    ],
    "description": "tiles",
}


def _changed(path: tuple[str | int, ...], value: object) -> dict[str, Any]:
    data: Any = copy.deepcopy(SOLUTION)
    target = data
    for part in path[:-1]:
        target = target[part]
    target[path[-1]] = value
    return data


def _python(*paths: str, content: str = "def run(): pass") -> dict[str, Any]:
    data = copy.deepcopy(SOLUTION)
    data["spec"] = {
        "languages": ["triton"],
        "target_hardware": ["H100"],
        "entry_point": f"{paths[0]}::run",
    }
    data["sources"] = [{"path": path, "content": content} for path in paths]
    return data


def _refused(data: object, match: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Solution.model_validate(data)
    assert match in describe(caught.value)


def test_a_solution_is_written_as_it_was_read() -> None:
    assert Solution.model_validate(SOLUTION).to_json() == SOLUTION


def test_an_unknown_key_is_refused_with_the_allowed_ones() -> None:
    data = _changed(("spec", "entrypoint"), "main.cu::run")
    _refused(data, "spec: unknown key 'entrypoint'; allowed: languages, target_hardware")
    _refused(data, "Did you mean 'entry_point'?")


@pytest.mark.parametrize(
    ("path", "value", "match"),
    [
        (("spec", "languages"), [], "at least 1 item"),
        (("spec", "languages"), ["rust"], "'pytorch'"),
        (("spec", "languages"), ["triton", "cuda_cpp"], "cannot be mixed"),
        (("spec", "languages"), ["cpp", "cuda_cpp"], "cannot be combined"),
        (("spec", "languages"), ["cuda_cpp", "cuda_cpp"], "listed twice"),
        (("spec", "languages"), ["cpp"], "allowed endings: .c, .cc, .cpp"),
        (("spec", "target_hardware"), ["A100"], "'B200'"),
        (("spec", "target_hardware"), [], "at least 1 item"),
        (("spec", "entry_point"), "main.cu", "for example 'main.py::run'"),
        (("spec", "entry_point"), "main.cu::a::b", "for example 'main.py::run'"),
        (("spec", "entry_point"), "main.cu::1", "for example 'main.py::run'"),
        (("spec", "entry_point"), "other.cu::run", "'other.cu' is not among the sources"),
        (("spec", "binding"), "tvm-ffi", "'torch'"),
        (("sources",), [], "at least 1 item"),
        (("sources", 1, "path"), "../tile.cuh", "relative and normalised"),
        (("sources", 1, "path"), "MAIN.cu", "differ at most in case"),
        (("sources", 1, "path"), "main.cu", "differ at most in case"),
        (("sources", 1, "path"), "main.cu/tile.cuh", "both a file and a folder"),
        (("sources", 1, "path"), "solution.json", "a file of the problem"),
        (("sources", 1, "path"), "tile.py", "allowed endings"),
        (("sources", 1, "path"), "tile", "allowed endings"),
        (("sources", 1, "content"), " \n", "the file is empty"),
        (("sources", 1, "content"), "a\0b", "NUL"),
        (("sources", 1, "content"), "x" * MAX_SOURCE_BYTES, f"{MAX_SOURCE_BYTES} are allowed"),
    ],
)
def test_a_solution_that_breaks_a_rule_is_refused(
    path: tuple[str | int, ...], value: object, match: str
) -> None:
    _refused(_changed(path, value), match)


def test_size_is_counted_in_bytes() -> None:
    _refused(_changed(("sources", 1, "content"), "ä" * (MAX_SOURCE_BYTES // 2)), "are allowed")


@pytest.mark.parametrize("kind", ["cflags", "cuda_cflags", "ld_flags"])
def test_flags_are_limited_in_number_and_length(kind: str) -> None:
    where = ("spec", "compile_options", kind)
    Solution.model_validate(_changed(where, ["x" * MAX_FLAG_LENGTH] * MAX_FLAGS))
    _refused(_changed(where, ["x"] * (MAX_FLAGS + 1)), f"at most {MAX_FLAGS} items")
    _refused(_changed(where, ["x" * 10_000_000]), f"at most {MAX_FLAG_LENGTH} characters")
    with pytest.raises(ValidationError) as caught:
        Solution.model_validate(_changed(where, ["x" * 10_000_000]))
    assert len(describe(caught.value)) < 1000


def test_the_number_of_files_is_limited() -> None:
    _refused(_python(*(f"f{i}.py" for i in range(MAX_SOURCES + 1))), f"at most {MAX_SOURCES}")


@pytest.mark.parametrize("path", ["torch.py", "json/__init__.py", "sitecustomize.py", "TRITON.py"])
def test_a_python_source_may_not_hide_a_module(path: str) -> None:
    _refused(_python("main.py", path), "would hide the module")


def test_a_header_may_have_the_name_of_a_module() -> None:
    assert Solution.model_validate(_changed(("sources", 1, "path"), "math.h"))


@pytest.mark.parametrize(
    ("languages", "language"),
    [(["pytorch"], "pytorch"), (["pytorch", "triton"], "triton"), (["triton"], "triton")],
)
def test_the_most_specific_language_counts(languages: list[str], language: str) -> None:
    data = _python("main.py")
    data["spec"]["languages"] = languages
    assert Solution.model_validate(data).language is Language(language)


MEANINGLESS: list[tuple[tuple[str | int, ...], object]] = [
    (("name",), "yours"),
    (("author",), "you"),
    (("description",), None),
    (("spec", "dependencies"), []),
    (("spec", "target_hardware"), ["B200"]),
]

MEANINGFUL: list[tuple[tuple[str | int, ...], object]] = [
    (("definition",), "softmax"),
    (("spec", "languages"), ["cutlass"]),
    (("spec", "entry_point"), "main.cu::walk"),
    (("spec", "destination_passing_style"), False),
    (("spec", "binding"), None),
    (("spec", "compile_options"), None),
    (("spec", "compile_options", "cflags"), ["-O2"]),
    (("spec", "compile_options", "cuda_cflags"), []),
    (("spec", "compile_options", "ld_flags"), ["-lcuda"]),
    (("sources", 0, "content"), "void run() { }"),
    (("sources", 1, "path"), "tiles.cuh"),
    (("sources",), SOLUTION["sources"][:1]),
]


@pytest.mark.parametrize(("path", "value"), MEANINGLESS)
def test_identity_ignores(path: tuple[str | int, ...], value: object) -> None:
    changed = Solution.model_validate(_changed(path, value))
    assert solution_id(changed) == solution_id(Solution.model_validate(SOLUTION))


def test_identity_changes_with_every_field_that_means_something() -> None:
    solutions = [SOLUTION, *(_changed(path, value) for path, value in MEANINGFUL)]
    ids = {solution_id(Solution.model_validate(data)) for data in solutions}
    assert len(ids) == len(solutions)


@given(st.randoms(use_true_random=False))
def test_identity_ignores_the_order_of_keys_and_files(chance: Any) -> None:
    def shuffled(value: object) -> object:
        if isinstance(value, dict):
            items = [(key, shuffled(item)) for key, item in value.items()]
            chance.shuffle(items)
            return dict(items)
        return value

    data = copy.deepcopy(SOLUTION)
    data["sources"] = chance.sample(data["sources"], k=2)
    data["sources"] = [shuffled(source) for source in data["sources"]]
    again = Solution.model_validate(shuffled(data))
    assert solution_id(again) == solution_id(Solution.model_validate(SOLUTION))


@given(st.text(min_size=1), st.text(min_size=1))
def test_different_contents_have_different_identities(left: str, right: str) -> None:
    def identity(content: str) -> str | None:
        try:
            return solution_id(Solution.model_validate(_python("main.py", content=content)))
        except ValidationError:
            return None

    ids = identity(left), identity(right)
    if None not in ids:
        assert (ids[0] == ids[1]) == (left == right)


@given(st.text(min_size=1), st.text(min_size=1))
def test_text_cannot_move_from_one_file_to_another(first: str, second: str) -> None:
    data = _python("a.py", "b.py")
    swapped = copy.deepcopy(data)
    data["sources"][0]["content"], data["sources"][1]["content"] = "x" + first, "x" + second
    swapped["sources"][0]["content"] = "x" + first + "x" + second
    swapped["sources"][1]["content"] = "x"
    try:
        ids = {solution_id(Solution.model_validate(d)) for d in (data, swapped)}
    except ValidationError:
        return
    assert len(ids) == 2


def test_identity_is_stable_across_versions() -> None:
    identity = solution_id(Solution.model_validate(SOLUTION))
    assert identity == "3954632ccc14783efe11afaa60dc8944"
