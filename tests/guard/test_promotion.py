"""The promotion rule: pure arithmetic on block ratios."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelarc.guard import promotion
from kernelarc.guard.schema import BenchmarkOutcome

ratio = st.floats(min_value=0.05, max_value=20.0)


def test_screening_lets_pass_what_gained_in_every_block():
    assert promotion.screening([0.9, 0.999, 0.5], noise=None) is None
    assert promotion.screening([0.9, 1.0, 0.5], noise=None) is not None


def test_screening_calls_slower_only_what_is_slower_beyond_the_noise():
    """Three blocks of an equal candidate often lie on one side by chance."""
    slower = promotion.screening([1.5, 1.52, 1.49], noise=None)
    assert slower is not None
    assert slower.outcome is BenchmarkOutcome.BACKUP
    for ratios, noise in (([1.05, 1.01, 1.07], None), ([1.05, 1.06, 1.05], 0.08)):
        equal = promotion.screening(ratios, noise=noise)
        assert equal is not None
        assert equal.outcome is BenchmarkOutcome.TIE
        assert "0 of 3" not in equal.reason
        assert f"{min(ratios):.3f}x to {max(ratios):.3f}x" in equal.reason


@given(st.lists(st.floats(0.25, 4.0), min_size=3, max_size=3), st.none() | st.floats(0, 0.5))
def test_screening_never_decides_for_the_candidate(ratios, noise):
    decision = promotion.screening(ratios, noise=noise)
    if decision is None:
        assert max(ratios) < 1
    else:
        assert decision.outcome in (BenchmarkOutcome.TIE, BenchmarkOutcome.BACKUP)
        assert (decision.outcome is BenchmarkOutcome.TIE) or min(ratios) > 1


def test_twenty_clear_gains_and_two_misses_promote():
    ratios = [0.9] * 20 + [1.01, 1.02]
    decision = promotion.decide(ratios, noise=0.01, workload_ratios={"w": 0.9})
    assert decision.outcome is BenchmarkOutcome.PROMOTED
    assert decision.misses == 2


def test_three_misses_do_not_promote():
    ratios = [0.9] * 19 + [1.01, 1.02, 0.999]
    decision = promotion.decide(ratios, noise=0.0, workload_ratios={"w": 0.9})
    assert decision.outcome is BenchmarkOutcome.TIE


def test_a_gain_inside_the_noise_floor_is_a_miss():
    ratios = [0.97] * 22
    assert promotion.misses(ratios, promotion.margin(0.02)) == 0
    assert promotion.misses(ratios, promotion.margin(0.04)) == 22


def test_the_margin_is_never_below_half_a_percent():
    assert promotion.margin(0.0) == 0.005
    assert promotion.margin(0.03) == 0.03


def test_a_gain_below_one_percent_is_a_tie_even_without_misses():
    decision = promotion.decide([0.992] * 22, noise=0.0, workload_ratios={"w": 0.992})
    assert decision.outcome is BenchmarkOutcome.TIE
    assert decision.misses == 0


def test_a_regression_on_one_workload_keeps_the_leader():
    decision = promotion.decide([0.8] * 22, noise=0.0, workload_ratios={"M=1": 0.5, "M=4096": 1.03})
    assert decision.outcome is BenchmarkOutcome.BACKUP
    assert "M=4096" in decision.reason


def test_a_slower_candidate_is_a_backup():
    decision = promotion.decide([1.3] * 22, noise=0.01, workload_ratios={"w": 1.3})
    assert decision.outcome is BenchmarkOutcome.BACKUP


def test_nothing_is_decided_on_a_host_that_is_too_noisy():
    decision = promotion.decide([0.5] * 22, noise=0.6, workload_ratios={"w": 0.5})
    assert decision.outcome is BenchmarkOutcome.INCONCLUSIVE


def test_fewer_blocks_than_the_rule_wants_never_promote():
    decision = promotion.decide([0.5] * 21, noise=0.0, workload_ratios={"w": 0.5})
    assert decision.outcome is not BenchmarkOutcome.PROMOTED


def test_the_interval_of_22_blocks_is_ranks_6_and_17():
    """Coverage 1 - 2 * sum(C(22, k), k < 6) / 2**22."""
    ratios = [1 / (1 + k / 100) for k in range(1, 23)]
    found = promotion.interval(ratios)
    assert found.low == pytest.approx(1.06)
    assert found.high == pytest.approx(1.17)
    assert found.coverage == pytest.approx(0.98310, abs=1e-5)
    assert found.blocks == 22


def test_noise_floor_needs_enough_blocks():
    with pytest.raises(ValueError, match="20"):
        promotion.noise_floor([1.0] * 19)


def test_noise_floor_is_the_95th_percentile_on_both_sides():
    ratios = [1.0] * 18 + [1 / 1.1, 1.5]
    assert promotion.noise_floor(ratios) == pytest.approx(0.1)


@given(st.lists(ratio, min_size=1, max_size=40))
def test_the_interval_holds_its_median(ratios):
    found = promotion.interval(ratios)
    assert found.low <= found.median <= found.high
    assert 0 <= found.coverage <= 1


@given(st.lists(ratio, min_size=22, max_size=22), st.floats(0, 0.19))
def test_a_promotion_satisfies_every_condition_of_the_rule(ratios, noise):
    decision = promotion.decide(ratios, noise=noise, workload_ratios={"w": 0.5})
    if decision.outcome is BenchmarkOutcome.PROMOTED:
        d0 = max(0.005, noise)
        assert sum(1 for r in ratios if r >= 1 - d0) <= 2
        assert sorted(ratios)[11] <= 1


@given(st.lists(ratio, min_size=22, max_size=22), st.floats(0, 0.19), st.floats(1.0, 2.0))
def test_being_slower_never_helps(ratios, noise, slower):
    before = promotion.decide(ratios, noise=noise, workload_ratios={"w": 0.5})
    after = promotion.decide([r * slower for r in ratios], noise=noise, workload_ratios={"w": 0.5})
    if after.outcome is BenchmarkOutcome.PROMOTED:
        assert before.outcome is BenchmarkOutcome.PROMOTED


def test_equal_candidates_are_almost_never_promoted():
    """Bound 6.1e-5 each: 20000 candidates give at most 1.2 on average."""
    rng = random.Random(20261130)
    promoted = 0
    for _ in range(20_000):
        ratios = [math.exp(rng.gauss(0, 0.02)) for _ in range(22)]
        decision = promotion.decide(ratios, noise=0.0, workload_ratios={"w": 1.0})
        promoted += decision.outcome is BenchmarkOutcome.PROMOTED
    assert promoted <= 6
