"""Measured rates of the CPU device, by working-set size."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns

import torch

from kernelarc.guard.roofline import Rates

REPEATS = 9
MATMUL_SIZE = 768
SMALLEST_BYTES = 1 << 18
LARGEST_BYTES = 1 << 28


class Peaks:
    """Measures on demand and remembers: one figure per power of two of the working set."""

    def __init__(self) -> None:
        self._bandwidth: dict[int, float] = {}
        self._gflops: float | None = None

    def rates(self, working_set_bytes: int) -> Rates:
        """Rates for calls that touch ``working_set_bytes``."""
        size = min(max(working_set_bytes, SMALLEST_BYTES), LARGEST_BYTES)
        bucket = 1 << (size - 1).bit_length()
        if bucket not in self._bandwidth:
            self._bandwidth[bucket] = _bandwidth_gbps(bucket)
        return Rates(bandwidth_gbps=self._bandwidth[bucket], peak_gflops=self.gflops())

    def gflops(self) -> float:
        """fp32 matrix multiplication, best of a few, GFLOP/s."""
        if self._gflops is None:
            a = torch.randn(MATMUL_SIZE, MATMUL_SIZE)
            b = torch.randn(MATMUL_SIZE, MATMUL_SIZE)
            out = torch.empty(MATMUL_SIZE, MATMUL_SIZE)
            best_ns = _best_ns(lambda: torch.mm(a, b, out=out))
            self._gflops = 2 * MATMUL_SIZE**3 / best_ns
        return self._gflops


def _bandwidth_gbps(total_bytes: int) -> float:
    """Best of copying (half read, half written) and summing (all read) ``total_bytes``."""
    source = torch.ones(total_bytes // 8)
    target = torch.empty_like(source)
    copy_ns = _best_ns(lambda: target.copy_(source))
    both = torch.ones(total_bytes // 4)
    read_ns = _best_ns(lambda: both.sum())
    return total_bytes / min(copy_ns, read_ns)


def _best_ns(work: Callable[[], object]) -> int:
    work()
    best = 1 << 62
    for _ in range(REPEATS):
        start = perf_counter_ns()
        work()
        best = min(best, perf_counter_ns() - start)
    return max(best, 1)
