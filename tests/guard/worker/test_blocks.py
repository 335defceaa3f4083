"""The value of a block."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelarc.guard.worker.blocks import QUADS_PER_BLOCK, _quads, pseudomedian

logs = st.lists(st.floats(-1.4, 1.4), min_size=1, max_size=16)


def test_the_pseudomedian_withstands_disturbed_turns():
    quiet = [0.01, -0.01, 0.0, 0.02, -0.02, 0.01, 0.0, -0.01]
    assert pseudomedian(quiet) == pytest.approx(0.0)
    assert abs(pseudomedian([*quiet[:6], 5.0, 5.0])) < 0.02


@given(logs)
def test_the_pseudomedian_lies_within_and_has_no_side(values):
    middle = pseudomedian(values)
    assert min(values) <= middle <= max(values)
    assert pseudomedian([-v for v in values]) == pytest.approx(-middle)


@given(logs, st.floats(-1, 1))
def test_a_candidate_slower_by_a_factor_is_measured_so(values, factor):
    assert pseudomedian([v + factor for v in values]) == pytest.approx(
        pseudomedian(values) + factor
    )


def test_each_arm_has_as_many_turns_in_each_place():
    quads = _quads()
    assert len(quads) == QUADS_PER_BLOCK
    assert set(quads) <= {"ABBA", "BAAB"}
    drawn = {quad for _ in range(64) for quad in _quads()}
    assert drawn == {"ABBA", "BAAB"}, "the coin decides"
