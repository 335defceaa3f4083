"""What gain this host can resolve: how often a candidate that is truly faster gets promoted.

Leader and candidate are one kernel that ends each row with a chain of dependent operations; the
candidate's chain is shorter, so its gain is known by construction (the rest of the kernel is
measured once and taken into account). Prints a line for each gain: promotions, the median gain
that the guard said, and all outcomes.

    python benchmarks/effect_size.py [--tries 20] [--gains 3,5,10,20]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections import Counter
from pathlib import Path

import anyio

from kernelarc.guard import problems
from kernelarc.guard.pipeline import Guard, GuardSettings, open_guard
from kernelarc.guard.schema import BenchmarkResult, Problem, Solution, solution_from_source

SOURCE = """
#include <cmath>
#include <cstdint>

extern "C" void run(const float* x, const float* weight, double eps, float* y,
                    int64_t M, int64_t N) {
  for (int64_t row = 0; row < M; ++row) {
    float SUM = 0;
    #pragma omp simd reduction(+ : SUM)
    for (int64_t j = 0; j < N; ++j) SUM += x[row * N + j] * x[row * N + j];
    const float scale = 1.0f / std::sqrt(SUM / N + static_cast<float>(eps));
    for (int64_t j = 0; j < N; ++j) y[row * N + j] = x[row * N + j] * scale * weight[j];
    volatile float chain = scale;
    for (int64_t j = 0; j < LINKS; ++j) chain = chain * 0.999f;
  }
}
"""
LINKS = 4000
"""Of the leader: about 20 us a row, against less than 1 us for the row itself."""


def kernel(problem: Problem, name: str, links: int) -> Solution:
    source = SOURCE.replace("SUM", name).replace("LINKS", str(links))
    return solution_from_source(problem, source, "cpp")


async def fixed_share(guard: Guard, problem: Problem) -> float:
    """Share of the leader's time that does not shrink with the chain."""
    leader, bare = kernel(problem, "whole", LINKS), kernel(problem, "bare", 0)
    result = await decided(guard, problem, bare, leader)
    return statistics.median(timing.ratio for timing in result.performance.values())


async def decided(
    guard: Guard, problem: Problem, candidate: Solution, leader: Solution
) -> BenchmarkResult:
    while True:
        result = await guard.benchmark(problem, candidate, leader)
        if result.performance:
            return result
        print(f"  again: {result.reason}")


async def main(gains: list[float], tries: int) -> None:
    problem = problems.get("rmsnorm")
    leader = kernel(problem, "whole", LINKS)
    with tempfile.TemporaryDirectory() as home:
        async with open_guard(GuardSettings(home=Path(home))) as guard:
            share = await fixed_share(guard, problem)
            print(f"{share:.1%} of the leader's time is outside of the chain")
            print(f"{'gain':>6} {'promoted':>9} {'said':>7}  outcomes")
            for gain in gains:
                links = round(LINKS * (1 - gain / 100 / (1 - share)))
                outcomes: Counter[str] = Counter()
                said: list[float] = []
                for number in range(tries):
                    candidate = kernel(problem, f"t{number}", links)
                    result = await guard.benchmark(problem, candidate, leader)
                    outcomes[result.outcome.value] += 1
                    if result.speedup:
                        said.append(100 * (1 - 1 / result.speedup.median))
                median = f"{statistics.median(said):.1f} %" if said else ""
                print(
                    f"{gain:5.1f}% {outcomes['PROMOTED']:5}/{tries:<3} {median:>7}  "
                    f"{dict(outcomes)}",
                    flush=True,
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tries", type=int, default=20)
    parser.add_argument("--gains", default="3,5,10,20", help="percent, separated by commas")
    given = parser.parse_args()
    anyio.run(main, [float(gain) for gain in given.gains.split(",")], given.tries)
