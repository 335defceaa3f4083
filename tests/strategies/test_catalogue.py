"""The catalogue: the playbooks that ship are well-formed and reach the problems they are for."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelarc.guard.errors import RequestError
from kernelarc.strategies.catalogue import Catalogue, CatalogueError, load, understood

BUILTIN_AGENT = (
    "algebraic-rewrite",
    "cache-blocking",
    "fast-math",
    "fuse-passes",
    "online-algorithm",
    "parallelism",
    "shape-dispatch",
    "streaming-stores",
    "unroll-ilp",
    "vectorise",
)

PLAYBOOK = """---
id: first
title: A title
rank: 1
summary: A summary.
applies_to:
  categories: [matmul]
  when: Always.
languages: [cpp]
devices: [cpu]
conflicts: []
predicted_gain: Some.
---

## What to try

1. This.

## Pitfalls

* That.

## How to verify

So.
"""
GUIDE = "---\nid: deep\ntitle: Deep\nsummary: Deeper.\ndevices: [gpu]\n---\n\n# Deep\n\nWords.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, page, text in (("playbooks", "first", PLAYBOOK), ("guides", "deep", GUIDE)):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{page}.md").write_text(text, encoding="utf-8")
    return tmp_path


def rewrite(folder: Path, old: str, new: str) -> None:
    assert old in PLAYBOOK
    text = PLAYBOOK.replace(old, new)
    (folder / "playbooks" / "first.md").write_text(text, encoding="utf-8")


def test_the_catalogue_is_read_once():
    assert load() is load()


def test_at_least_fourteen_strategies_and_five_guides_ship():
    assert len(load().ids()) >= 14
    assert {"attention", "cpu-simd", "hopper-gemm", "measuring", "rowwise-norms"} <= set(
        load().guide_ids()
    )


def test_the_strategies_of_the_builtin_agent_apply_to_cpp_on_the_cpu():
    for strategy_id in BUILTIN_AGENT:
        strategy = load().get(strategy_id)
        assert "cpu" in strategy.devices
        assert "cpp" in strategy.languages or "any" in strategy.languages


@pytest.mark.parametrize("page", [*load().strategies.values(), *load().guides.values()])
def test_every_page_is_plain_and_fits_the_line(page):
    text = page.title + page.summary + page.body
    assert all(len(line) <= 100 for line in page.body.splitlines())
    assert not any(word in text for word in ("TODO", "TBD", "FIXME", "http://", "\t"))
    assert text.count("```") % 2 == 0
    assert not page.body.startswith("---")


@pytest.mark.parametrize("strategy", load().strategies.values(), ids=load().ids())
def test_every_playbook_is_concrete(strategy):
    what, pitfalls = strategy.body.split("## Pitfalls")
    assert what.count("\n1. ") >= 1
    assert sum(character.isdigit() for character in what) >= 8
    assert pitfalls.split("## How to verify")[0].count("\n* ") >= 3


@pytest.mark.parametrize(
    "category",
    [
        "matmul",
        "fused-matmul",
        "normalisation",
        "reduction",
        "attention",
        "stencil",
        "selection",
        "gather-scatter",
    ],
)
def test_every_built_in_kind_of_problem_has_many_angles_on_both_devices(category):
    assert understood(category) is not None
    for device in ("cpu", "gpu"):
        strategies = load().applicable(category, device)
        assert len(strategies) >= 8
        assert [s.rank for s in strategies] == sorted(s.rank for s in strategies)


def test_strategies_made_for_a_category_come_before_general_ones_of_the_same_rank():
    assert load().applicable("softmax", "cpu")[0].id == "online-algorithm"
    assert load().applicable("gemm", "cpu")[0].id == "cache-blocking"


def test_gpu_strategies_are_not_offered_on_the_cpu():
    on_cpu = {strategy.id for strategy in load().applicable("gemm", "cpu")}
    on_gpu = {strategy.id for strategy in load().applicable("gemm", "cuda")}
    assert "tensor-cores" in on_gpu - on_cpu
    assert on_gpu == {strategy.id for strategy in load().applicable("gemm", "gpu")}


def test_a_language_narrows_the_choice():
    every = {strategy.id for strategy in load().applicable("gemm", "gpu")}
    triton = {strategy.id for strategy in load().applicable("gemm", "gpu", "triton")}
    assert triton < every
    assert "cluster-multicast" in every - triton


@pytest.mark.parametrize(
    ("word", "meaning"),
    [
        ("GEMM", "matmul"),
        ("fused_matmul", "matmul"),
        ("rms norm", "normalisation"),
        ("attention-output-projection", "matmul"),
        ("causal_attention", "attention"),
        ("cross_entropy", "loss"),
        ("something else", None),
        ("", None),
    ],
)
def test_words_of_problems_are_understood(word, meaning):
    assert understood(word) == meaning


def test_a_word_that_is_not_understood_rules_nothing_out():
    assert {s.id for s in load().applicable("riddle", "cpu")} == {
        s.id for s in load().strategies.values() if "cpu" in s.devices
    }


def test_an_unknown_id_is_answered_with_the_known_ones():
    with pytest.raises(RequestError, match=r"unknown strategy 'nope'\. Allowed: .*vectorise"):
        load().get("nope")
    with pytest.raises(RequestError, match=r"unknown guide 'nope'.*measuring"):
        load().guide("nope")


def test_an_unknown_device_or_language_is_answered_with_the_known_ones():
    with pytest.raises(RequestError, match=r"unknown device 'tpu'.*cpu, gpu"):
        load().applicable("gemm", "tpu")
    with pytest.raises(RequestError, match=r"unknown language 'fortran'.*triton"):
        load().applicable("gemm", "cpu", "fortran")


def test_a_folder_of_ones_own_is_read(folder):
    catalogue = Catalogue.read(folder)
    assert catalogue.ids() == ["first"]
    assert catalogue.get("first").body.startswith("## What to try")
    assert catalogue.guide("deep").body.startswith("# Deep")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("---\nid", "id", "must begin with YAML"),
        ("id: first", "id: [first", "not YAML"),
        ("id: first", "id: second", "must be the file's name"),
        ("rank: 1\n", "", "rank: Field required"),
        ("devices: [cpu]", "devices: [tpu]", "devices"),
        ("languages: [cpp]", "languages: [fortran]", "languages"),
        ("categories: [matmul]", "categories: [riddles]", "applies_to.categories"),
        ("conflicts: []", "conflicts: [second]", "does not exist"),
        ("title: A title", "titel: A title", "titel: Extra inputs"),
        ("## Pitfalls", "## Dangers", "the sections are"),
    ],
)
def test_a_malformed_playbook_is_named_with_the_field(folder, old, new, complaint):
    rewrite(folder, old, new)
    with pytest.raises(CatalogueError) as error:
        Catalogue.read(folder)
    assert "first.md" in str(error.value)
    assert complaint in str(error.value)


def test_front_matter_that_is_no_mapping_is_refused(folder):
    (folder / "guides" / "deep.md").write_text("---\n- a\n---\nWords.\n", encoding="utf-8")
    with pytest.raises(CatalogueError, match=r"deep\.md.*mapping"):
        Catalogue.read(folder)


def test_a_conflict_must_be_named_by_both(folder):
    other = PLAYBOOK.replace("id: first", "id: second")
    (folder / "playbooks" / "second.md").write_text(other, encoding="utf-8")
    rewrite(folder, "conflicts: []", "conflicts: [second]")
    with pytest.raises(CatalogueError, match="does not name it back"):
        Catalogue.read(folder)


def test_a_missing_folder_is_an_incomplete_installation(tmp_path):
    with pytest.raises(CatalogueError, match="reinstall"):
        Catalogue.read(tmp_path)
