"""Physical floors: how fast a call can be at best on this device. Pure arithmetic.

``floor = max(bytes / bandwidth, flops / peak)`` with bytes = every input and output once (or the
contract's formula) and rates measured on this device by the judge at the size of the working set.
"""

from __future__ import annotations

from typing import Literal

from kernelarc.guard.schema.results import Record

IMPOSSIBLE_FRACTION = 1 / 3
"""A latency below this share of the floor cannot have done the work. The rest of the way down to
the floor is left to caches: the measured rates are those of good code, not of the hardware."""


class Rates(Record):
    """Measured rates of a device."""

    bandwidth_gbps: float
    """Bytes moved per nanosecond at the working set's size: the better of copying and reading."""
    peak_gflops: float


class Floor(Record):
    """Physical floor of one workload."""

    floor_us: float
    bound: Literal["memory", "compute"]
    bytes: int
    flops: int


def floor(moved_bytes: int, flops: int, rates: Rates) -> Floor:
    """Floor of a call that moves ``moved_bytes`` and computes ``flops``."""
    memory_us = moved_bytes / rates.bandwidth_gbps * 1e-3
    compute_us = flops / rates.peak_gflops * 1e-3
    return Floor(
        floor_us=max(memory_us, compute_us),
        bound="compute" if compute_us > memory_us else "memory",
        bytes=moved_bytes,
        flops=flops,
    )


def impossible(latency_us: float, limit: Floor) -> bool:
    """Whether a latency is below what physics allows."""
    return latency_us < limit.floor_us * IMPOSSIBLE_FRACTION
