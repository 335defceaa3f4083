"""Reading from disk: every error names file, line and field; nothing outside the folder is read."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelarc.guard.errors import MalformedProblem, MalformedSolution
from kernelarc.guard.schema import (
    Language,
    Problem,
    load_problem,
    load_solution,
    load_workloads,
    reference_solution,
    solution_from_source,
    solution_id,
)

RUN = "def run(x, weight, eps, y):\n    y.copy_(x)\n"


def test_a_folder_is_read_and_its_files_come_back_equal(
    definition: dict[str, Any], workload: dict[str, Any], write_problem: Callable[..., Path]
) -> None:
    workloads = [workload, workload | {"uuid": "second"}]
    contract = {"title": "Scale", "inputs": {"x": {"scale": 2}}}
    read = load_problem(write_problem(definition, workloads, contract))
    assert read.definition.to_json() == definition
    assert [w.to_json() for w in read.workloads] == workloads
    assert read.contract.to_json() == contract


def test_oddities_are_collected_and_not_errors(
    definition: dict[str, Any], workload: dict[str, Any], write_problem: Callable[..., Path]
) -> None:
    workload["tolerance"] = {"required_match_ratio": 0.98}
    read = load_problem(write_problem(definition | {"tags": []}, [workload]))
    assert read.warnings[0] == "definition.json: unknown key 'tags', ignored"
    assert read.warnings[1].startswith("workload.jsonl, line 1: 'tolerance.required_match_ratio'")


def test_blank_lines_and_line_separators_in_strings_do_not_end_a_workload(
    tmp_path: Path, workload: dict[str, Any]
) -> None:
    line = json.dumps(workload | {"uuid": "a\u2028b"}, ensure_ascii=False)
    (tmp_path / "workload.jsonl").write_text(f"\n{line}\r\n\n", encoding="utf-8")
    assert [w.uuid for w in load_workloads(tmp_path / "workload.jsonl")] == ["a\u2028b"]


@pytest.mark.parametrize(
    ("definition_text", "workloads_text", "match"),
    [
        ("{", None, "definition.json: Expecting"),
        ('{"name": "a", "name": "b"}', None, "definition.json: duplicate key 'name'"),
        ('{"name": NaN}', None, "definition.json: NaN is not JSON"),
        ("[" * 100_000, None, "definition.json: nested too deeply"),
        ("[]", None, "definition.json"),
        (None, '{"axes": {"M": "x"}}', "workload.jsonl, line 1: axes.M"),
        (None, "{}\nnonsense", "workload.jsonl, line 1"),
        (None, "", "no workload"),
    ],
)
def test_a_problem_that_does_not_parse_names_the_place(
    definition: dict[str, Any],
    workload: dict[str, Any],
    write_problem: Callable[..., Path],
    definition_text: str | None,
    workloads_text: str | None,
    match: str,
) -> None:
    folder = write_problem(definition_text or definition, workloads_text or [workload])
    if workloads_text == "":
        (folder / "workload.jsonl").write_text("")
    with pytest.raises(MalformedProblem, match=match):
        load_problem(folder)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MalformedProblem, match=r"definition.json: cannot be read: No such file"):
        load_problem(tmp_path)


@pytest.mark.parametrize(
    ("name", "source", "language"),
    [
        ("k.cpp", "void run();", "cpp"),
        ("k.cc", "void run();", "cpp"),
        ("k.cu", "void run();", "cuda"),
        ("k.py", RUN, "pytorch"),
        ("k.py", "import triton.language as tl\n" + RUN, "triton"),
        ("k.py", "    from triton import jit\n" + RUN, "triton"),
        ("k.py", "# import triton\nimport tritonic\n" + RUN, "pytorch"),
    ],
)
def test_a_single_file_gets_its_language_from_its_suffix(
    tmp_path: Path, problem: Problem, name: str, source: str, language: str
) -> None:
    (tmp_path / name).write_text(source)
    read = load_solution(tmp_path / name, problem)
    assert read.language is Language(language)
    assert read.spec.entry_point == f"{name}::run"
    assert read.sources[0].content == source
    assert read.definition == problem.name


def test_a_given_language_overrides_the_suffix(tmp_path: Path, problem: Problem) -> None:
    (tmp_path / "k.cu").write_text("void run();")
    assert load_solution(tmp_path / "k.cu", problem, "cuda_cpp").language is Language.CUDA_CPP


def test_an_unknown_suffix_or_language_lists_what_is_allowed(
    tmp_path: Path, problem: Problem
) -> None:
    (tmp_path / "k.f90").write_text("x")
    with pytest.raises(MalformedSolution, match=r"ending '.f90'.*pass one of: pytorch, triton"):
        load_solution(tmp_path / "k.f90", problem)
    with pytest.raises(MalformedSolution, match=r"language: 'fortran' is unknown\. Allowed: pyto"):
        solution_from_source(problem, "x", "fortran")


def _write_solution(folder: Path, **changes: object) -> Path:
    data: dict[str, object] = {
        "name": "s",
        "definition": "scale_rows",
        "spec": {
            "languages": ["cpp"],
            "target_hardware": ["CPU"],
            "entry_point": "main.cpp::run",
        },
        "sources": [{"path": "main.cpp"}, {"path": "inc/tile.hpp", "content": ""}],
    }
    (folder / "solution.json").write_text(json.dumps(data | changes))
    return folder / "solution.json"


@pytest.fixture
def solution_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "solution"
    (folder / "inc").mkdir(parents=True)
    (folder / "main.cpp").write_text("void run();")
    (folder / "inc" / "tile.hpp").write_text("#pragma once")
    return folder


def test_missing_contents_are_read_from_the_folder(solution_folder: Path, problem: Problem) -> None:
    path = _write_solution(solution_folder)
    read = load_solution(path, problem)
    assert [s.content for s in read.sources] == ["void run();", "#pragma once"]
    assert load_solution(solution_folder, problem) == read


@pytest.mark.parametrize("path", ["../secret.hpp", "/etc/hostname", "inc/../main.cpp"])
def test_a_path_out_of_the_folder_is_not_read(
    solution_folder: Path, problem: Problem, path: str
) -> None:
    (solution_folder.parent / "secret.hpp").write_text("secret")
    file = _write_solution(solution_folder, sources=[{"path": "main.cpp"}, {"path": path}])
    with pytest.raises(MalformedSolution, match="relative and normalised"):
        load_solution(file, problem)


@pytest.mark.parametrize("link", ["main.cpp", "inc"])
def test_a_symbolic_link_is_not_followed(
    solution_folder: Path, problem: Problem, link: str
) -> None:
    target = solution_folder.parent / "elsewhere"
    (solution_folder / link).rename(target)
    (solution_folder / link).symlink_to(target)
    with pytest.raises(MalformedSolution, match="symbolic link"):
        load_solution(_write_solution(solution_folder), problem)


def test_a_pipe_is_refused_without_waiting_for_a_writer(
    solution_folder: Path, problem: Problem
) -> None:
    (solution_folder / "main.cpp").unlink()
    os.mkfifo(solution_folder / "main.cpp")
    with pytest.raises(MalformedSolution, match=r"main.cpp: not a regular file"):
        load_solution(_write_solution(solution_folder), problem)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"\xff\xfe", "main.cpp: not UTF-8"),
        (b"x" * ((1 << 20) + 1), "main.cpp: larger than 1048576 bytes"),
        (b"", "sources.0.content: the file is empty"),
    ],
)
def test_an_unusable_source_is_named(
    solution_folder: Path, problem: Problem, content: bytes, match: str
) -> None:
    (solution_folder / "main.cpp").write_bytes(content)
    with pytest.raises(MalformedSolution, match=match):
        load_solution(_write_solution(solution_folder), problem)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"definition": "other"}, "it solves 'other', not 'scale_rows'"),
        ({"sources": "main.cpp"}, "sources: "),
        ({"sources": [{"path": 3}]}, "sources.path: 3 is not a string"),
        ({"sources": [{"path": "none.cpp"}]}, "none.cpp: cannot be read: No such file"),
        ({"speck": {}}, "unknown key 'speck'"),
    ],
)
def test_a_solution_that_does_not_parse_names_the_field(
    solution_folder: Path, problem: Problem, changes: dict[str, object], match: str
) -> None:
    with pytest.raises(MalformedSolution, match=match):
        load_solution(_write_solution(solution_folder, **changes), problem)


def test_a_bare_source_becomes_a_solution_with_defaults(problem: Problem) -> None:
    made = solution_from_source(problem, "void run();", "cpp")
    assert made.spec.entry_point == "main.cpp::run"
    assert made.spec.destination_passing_style
    assert made.name == "scale_rows-cpp"
    with pytest.raises(MalformedSolution, match="entry_point"):
        solution_from_source(problem, "void run();", "cpp", entry_point="run")


def test_the_reference_is_a_solution_that_returns_its_outputs(problem: Problem) -> None:
    reference = reference_solution(problem)
    assert reference.entry_source == problem.definition.reference
    assert reference.language is Language.PYTORCH
    assert not reference.spec.destination_passing_style
    assert solution_id(reference) == solution_id(reference_solution(problem))


def test_half_a_surrogate_pair_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "definition.json").write_text('{"name": "\\ud800"}')
    with pytest.raises(MalformedProblem, match="half a character"):
        load_problem(tmp_path)
