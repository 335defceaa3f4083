"""Measured rates of the CPU device, by working-set size."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns

import torch

from kernelarc.guard.roofline import Floor, Rates, floor
from kernelarc.guard.schema import Problem, Workload

REPEATS = 9
MATMUL_SIZE = 768
SMALLEST_BYTES = 1 << 18
LARGEST_BYTES = 1 << 26


class Peaks:
    """Measured once at the start: one bandwidth per power of two of the working set."""

    def __init__(self, threads: int) -> None:
        """Measure with as many threads as candidates have; takes about a second."""
        torch.set_num_threads(threads)
        sizes = range(SMALLEST_BYTES.bit_length() - 1, LARGEST_BYTES.bit_length())
        self._bandwidth = {1 << size: _bandwidth_gbps(1 << size) for size in sizes}
        self._gflops = _matmul_gflops()

    def rates(self, working_set_bytes: int) -> Rates:
        """Rates for calls that touch ``working_set_bytes``."""
        size = min(max(working_set_bytes, SMALLEST_BYTES), LARGEST_BYTES)
        bucket = 1 << (size - 1).bit_length()
        return Rates(bandwidth_gbps=self._bandwidth[bucket], peak_gflops=self._gflops)

    def floor(self, problem: Problem, workload: Workload) -> Floor:
        """Physical floor of a workload at the rates of its own working set."""
        moved = problem.moved_bytes(workload)
        return floor(moved, problem.flops(workload), self.rates(moved))


def _matmul_gflops() -> float:
    """fp32 matrix multiplication, best of a few, GFLOP/s."""
    a = torch.randn(MATMUL_SIZE, MATMUL_SIZE)
    b = torch.randn(MATMUL_SIZE, MATMUL_SIZE)
    out = torch.empty(MATMUL_SIZE, MATMUL_SIZE)
    return 2 * MATMUL_SIZE**3 / _best_ns(lambda: torch.mm(a, b, out=out))


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
