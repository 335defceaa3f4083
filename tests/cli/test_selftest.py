"""``kernelarc selftest``: what it says, and its exit codes."""

import shutil

import pytest

from kernelarc.guard.selftest import sample

HONEST = "honest/rmsnorm-cpp"
REAL = sample.FOLDER


@pytest.fixture
def lying(tmp_path):
    """Python that puts samples in place of which one expects that doing nothing passes."""
    folder = tmp_path / "samples"
    for name in (HONEST, "adversarial/does-nothing"):
        shutil.copytree(REAL / name, folder / name)
    manifest = folder / "adversarial" / "does-nothing" / sample.MANIFEST
    manifest.write_text(manifest.read_text().replace("STALE_OUTPUT", "PASSED"))
    return (
        "from functools import partial; from kernelarc.guard.selftest import sample; "
        f"from pathlib import Path; folder = Path({str(folder)!r}); "
        "sample.chosen = partial(sample.chosen, folder=folder); "
        "sample.load = partial(sample.load, folder=folder)"
    )


def test_the_list_has_every_sample_with_its_reason(call):
    entries = call("selftest", "--list", "--json").document
    assert [entry["name"] for entry in entries] == sample.names()
    assert all(entry["why"] for entry in entries)
    shown = call("selftest", "--list", "--kind", "honest")
    assert shown.code == 0
    assert "honest/" in shown.out
    assert "adversarial/" not in shown.out


def test_a_mistyped_name_or_kind_is_refused(call):
    assert call("selftest", "does-nothin").code == 2
    call("selftest", "does-nothin").sentence("'does-nothin'", "does-nothing")
    call("selftest", "--kind", "kind").sentence("adversarial", "honest")
    call("selftest", "does-nothin", "--json").error("does-nothing")


def test_as_expected_ends_well_and_skipped_is_not_passed(start):
    pytest.importorskip("torch")
    cuda = next(n for n in sample.names() if sample.load(n).expectation.device == "cuda")
    answer = start("selftest", "rmsnorm-cpp", "does-nothing", cuda, "--repeat", "2", "--json")
    document = answer.document
    assert answer.code == 0
    counts = [document[key] for key in ("samples", "as_expected", "skipped", "ok", "screen")]
    assert counts == [6, 4, 2, True, True]
    skipped = [row for row in document["rows"] if row["skipped"]]
    assert [row["name"] for row in skipped] == [cuda, cuda]
    assert not any(row["as_expected"] or row["got"] for row in skipped)


def test_another_verdict_than_expected_ends_with_1(start, lying):
    pytest.importorskip("torch")
    answer = start("selftest", before=lying)
    assert answer.code == 1
    assert "2 samples: 1 as expected, 0 false accepts, 0 false rejects" in answer.out
    assert "NO" in answer.out


def test_without_a_guard_nothing_is_said_of_samples(start):
    answer = start("selftest", "does-nothing", before="import sys; sys.modules['torch'] = None")
    assert answer.code == 3
    answer.sentence("torch")
