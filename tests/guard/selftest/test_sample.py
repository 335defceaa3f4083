"""Reading ``sample.toml``: every fault is a sentence that names the sample and the field."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelarc.guard.schema import EvaluationStatus
from kernelarc.guard.selftest import sample
from kernelarc.guard.selftest.sample import Expectation, MalformedSample, UnknownSample

HONEST = "honest/rmsnorm-cpp"
LEAST = {
    "why": "w",
    "source": "own",
    "family": "f",
    "problem": "rmsnorm",
    "language": "cpp",
    "stage": "verify",
    "expected": ["PASSED"],
}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"expected": '["FINE"]'}, "INCORRECT_NUMERICAL"),
        ({"expected": "[]"}, "expected"),
        ({"expected": '["PASSED", "PASSED"]'}, "twice"),
        ({"why": ""}, "why: Field required"),
        ({"why": '"two\\nlines"'}, "why"),
        ({"stage": '"look"'}, "benchmark"),
        ({"stage": '"benchmark"'}, "PROMOTED"),
        ({"outcomes": '["TIE"]'}, "only with stage 'benchmark'"),
        ({"stage": '"benchmark"', "outcomes": '["REJECTED"]'}, "'REJECTED'"),
        ({"stage": '"benchmark"', "outcomes": '["INCONCLUSIVE"]'}, "honest"),
        ({"device": '"tpu"'}, "cuda"),
        ({"language": '"fortran"'}, "cpp"),
        ({"problem": '"rmsnrm"'}, "Did you mean 'rmsnorm'"),
        ({"problem": '"own"'}, "problem"),
        ({"rows": '["0"]'}, "rows"),
        ({"expcted": '["PASSED"]'}, "Did you mean 'expected'"),
        ({"entry_point": '"other.cpp::run"'}, "other.cpp"),
        ({"entry_point": '"run"'}, "file::function"),
        ({"source": "oops"}, "line"),
        ({"parts": '["rmsnorm.hpp"]'}, "Did you mean 'rmsnorm.h'"),
        ({"parts": '["../sample.py"]'}, "Allowed: forged_frames.py"),
    ],
)
def test_a_fault_of_a_manifest_is_named(folder, planted, changes, said):
    name = planted(HONEST, "honest/faulty", **changes)
    with pytest.raises(MalformedSample) as raised:
        sample.load(name, folder)
    assert "'honest/faulty'" in str(raised.value)
    assert said in str(raised.value)


def test_parts_are_sources_beside_the_own_ones(folder, planted):
    name = planted(HONEST, "honest/with-part", parts='["rmsnorm.h"]')
    texts = {file.path: file.content for file in sample.load(name, folder).solution.sources}
    assert set(texts) == {"main.cpp", "rmsnorm.h"}
    assert texts["rmsnorm.h"] == (sample.PARTS / "rmsnorm.h").read_text("utf-8")


def test_a_part_never_replaces_an_own_source(folder, planted):
    name = planted(HONEST, "honest/with-part", parts='["rmsnorm.h"]')
    (folder / name / "rmsnorm.h").write_text("// own\n")
    with pytest.raises(MalformedSample, match=r"rmsnorm\.h"):
        sample.load(name, folder)


def test_a_name_is_kebab_case(folder, planted):
    name = planted(HONEST, "honest/Not_Kebab")
    with pytest.raises(MalformedSample, match="kebab-case"):
        sample.load(name, folder)


def test_a_folder_without_sources_is_refused(folder, planted):
    name = planted(HONEST, "honest/empty")
    (folder / name / "main.cpp").unlink()
    with pytest.raises(MalformedSample, match="sources"):
        sample.load(name, folder)


def test_what_is_no_source_is_refused_but_not_an_installers_cache(folder, planted):
    name = planted(HONEST, "honest/more")
    (folder / name / "__pycache__").mkdir()
    (folder / name / "__pycache__" / "main.pyc").write_bytes(b"\xff")
    (folder / name / "inner").mkdir()
    (folder / name / "inner" / "part.hpp").write_text("// part")
    loaded = sample.load(name, folder)
    assert [s.path for s in loaded.solution.sources] == ["inner/part.hpp", "main.cpp"]
    (folder / name / "notes.md").write_text("notes")
    with pytest.raises(MalformedSample, match=r"notes\.md"):
        sample.load(name, folder)


def test_own_problems_lie_beside_the_manifest(folder, planted):
    name = planted(HONEST, "honest/own-problem", problem='"own"')
    home = folder / name / "problem"
    home.mkdir()
    source = sample.problems.get("rmsnorm")
    (home / "definition.json").write_text(source.definition.model_dump_json(exclude_unset=True))
    (home / "workload.jsonl").write_text(
        "\n".join(w.model_dump_json(exclude_unset=True) for w in source.workloads)
    )
    loaded = sample.load(name, folder)
    assert loaded.problem.definition == source.definition
    assert [s.path for s in loaded.solution.sources] == ["main.cpp"]


def test_with_the_screen_off_other_statuses_are_right(folder, planted):
    name = planted(HONEST, "adversarial/x", expected='["POLICY"]', without_screen='["CRASH"]')
    loaded = sample.load(name, folder)
    assert loaded.expected(screen=True) == [EvaluationStatus.POLICY]
    assert loaded.expected(screen=False) == [EvaluationStatus.CRASH]
    plain = sample.load(HONEST, folder)
    assert plain.expected(screen=False) == plain.expected(screen=True)


def test_samples_are_chosen_by_full_or_short_name_and_kind(folder, planted):
    planted(HONEST, "adversarial/twin")
    planted(HONEST, "honest/twin")
    assert sample.chosen([], None, folder) == ["adversarial/twin", HONEST, "honest/twin"]
    assert sample.chosen(["twin"], None, folder) == ["adversarial/twin", "honest/twin"]
    assert sample.chosen(["twin"], "honest", folder) == ["honest/twin"]
    assert sample.chosen(["honest/twin"], None, folder) == ["honest/twin"]
    with pytest.raises(UnknownSample, match="Did you mean 'rmsnorm-cpp'"):
        sample.chosen(["rmsnormcpp"], None, folder)
    with pytest.raises(UnknownSample, match="adversarial sample"):
        sample.chosen(["rmsnorm-cpp"], "adversarial", folder)


@given(st.dictionaries(st.sampled_from([*LEAST, "device", "rows", "cflags", "x"]), st.none() |
       st.booleans() | st.integers() | st.text() | st.lists(st.text())))  # fmt: skip
def test_no_manifest_ends_in_anything_but_a_validation_error(changes):
    try:
        read = Expectation.model_validate(LEAST | changes)
    except ValueError:
        return
    assert read.expected == [EvaluationStatus.PASSED]


@given(st.text(string.printable))
def test_a_name_that_is_no_sample_is_unknown(name):
    with pytest.raises(UnknownSample):
        sample.chosen([f"no/{name}"])
