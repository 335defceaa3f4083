"""How often an equal candidate displaces the leader: it must be never.

A C++ kernel leads; the same kernel under other names is timed against it, many times. Prints each
outcome and the count of promotions (bound: 6.1e-5 each).

    python benchmarks/equal_candidates.py [TRIES]
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

import anyio

from kernelarc.guard import problems
from kernelarc.guard.pipeline import GuardSettings, open_guard
from kernelarc.guard.schema import Problem, Solution, solution_from_source

SOURCE = """
#include <cmath>
#include <cstdint>

extern "C" void run(const float* x, const float* weight, double eps, float* y,
                    int64_t M, int64_t N) {
  for (int64_t row = 0; row < M; ++row) {
    float TOTAL = 0;
    #pragma omp simd reduction(+ : TOTAL)
    for (int64_t j = 0; j < N; ++j) TOTAL += x[row * N + j] * x[row * N + j];
    const float scale = 1.0f / std::sqrt(TOTAL / N + static_cast<float>(eps));
    for (int64_t j = 0; j < N; ++j) y[row * N + j] = x[row * N + j] * scale * weight[j];
  }
}
"""


def candidate(problem: Problem, name: str) -> Solution:
    return solution_from_source(problem, SOURCE.replace("TOTAL", name), "cpp")


async def main(tries: int) -> None:
    problem = problems.get("rmsnorm")
    leader = candidate(problem, "sum")
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as home:
        async with open_guard(GuardSettings(home=Path(home))) as guard:
            for number in range(tries):
                result = await guard.benchmark(problem, candidate(problem, f"t{number}"), leader)
                outcomes[result.outcome.value] += 1
                median = result.speedup.median if result.speedup else float("nan")
                print(f"{number + 1:3} {result.outcome.value:13} {median:.3f}x {result.reason}")
    print(f"promotions: {outcomes['PROMOTED']} of {tries}; {dict(outcomes)}")
    if outcomes["PROMOTED"]:
        sys.exit(1)


if __name__ == "__main__":
    anyio.run(main, int(sys.argv[1]) if len(sys.argv) > 1 else 20)
