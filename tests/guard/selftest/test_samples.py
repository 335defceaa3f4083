"""The samples that ship: they parse, their names and codes are their own, families have twins."""

import pytest

from kernelarc.guard.schema import solution_id
from kernelarc.guard.selftest import sample

NAMES = sample.names()


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_is_well_formed(name):
    loaded = sample.load(name)
    first = loaded.solution.entry_source.lstrip()
    assert first.startswith(("//", "/*", '"""', "#")), "say at the top what it does"


def test_names_are_unique_over_both_kinds():
    short = [name.partition("/")[2] for name in NAMES]
    assert len(set(short)) == len(short)


def test_no_sample_is_another_under_a_second_name():
    ids = {}
    for name in NAMES:
        loaded = sample.load(name)
        key = (solution_id(loaded.solution), loaded.expectation.stage)
        assert key not in ids, f"{name} is the same as {ids[key]}"
        ids[key] = name


def test_every_adversarial_family_has_an_honest_twin():
    """A guard that refuses everything would pass the adversarial half."""
    families = {kind: set() for kind in sample.KINDS}
    for name in NAMES:
        loaded = sample.load(name)
        families[loaded.kind].add(loaded.expectation.family)
    missing = families["adversarial"] - families["honest"]
    assert not missing, f"families without an honest sample: {sorted(missing)}"
