"""Physical floors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelarc.guard.roofline import Rates, floor, impossible

RATES = Rates(bandwidth_gbps=10.0, peak_gflops=100.0)


def test_a_copy_is_bound_by_memory():
    """1 MB at 10 GB/s takes 100 us."""
    limit = floor(1_000_000, 10, RATES)
    assert limit.bound == "memory"
    assert limit.floor_us == pytest.approx(100.0)


def test_a_matrix_product_is_bound_by_arithmetic():
    """100 MFLOP at 100 GFLOP/s takes 1 ms."""
    limit = floor(1_000, 100_000_000, RATES)
    assert limit.bound == "compute"
    assert limit.floor_us == pytest.approx(1000.0)


def test_half_the_floor_is_possible_and_a_tenth_is_not():
    limit = floor(1_000_000, 0, RATES)
    assert not impossible(50.0, limit)
    assert impossible(10.0, limit)


@given(st.integers(1, 10**12), st.integers(0, 10**15))
def test_more_work_never_has_a_lower_floor(moved, flops):
    assert floor(moved, flops, RATES).floor_us <= floor(2 * moved, flops + 1, RATES).floor_us
