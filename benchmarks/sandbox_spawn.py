"""How long a sandbox takes to start, by the walls that are raised.

Usage: ``python benchmarks/sandbox_spawn.py [--torch] [--spawns N]``. With ``--torch`` the parent
has imported torch, as the guard's zygote has: the copies of its page tables are most of the time.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
from time import perf_counter_ns

from kernelarc.guard.sandbox import (
    SandboxPolicy,
    WallName,
    Walls,
    python_paths,
    raisable,
    spawn_confined,
    wait,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch", action="store_true")
    parser.add_argument("--spawns", type=int, default=40)
    arguments = parser.parse_args()
    if arguments.torch:
        importlib.import_module("torch")
    walls = raisable()
    print(f"{'walls':24} {'ready, ms':>10} {'ended, ms':>10}   (medians of {arguments.spawns})")
    rows: list[tuple[str, Walls]] = [("none", frozenset())]
    rows += [(wall.value, frozenset({wall})) for wall in WallName if wall in walls]
    rows.append((f"all {len(walls)} of this host", walls))
    for name, chosen in rows:
        ready, ended = measure(chosen, arguments.spawns)
        print(f"{name:24} {ready:10.2f} {ended:10.2f}")


def measure(walls: Walls, spawns: int) -> tuple[float, float]:
    """Median milliseconds from the call until ``main`` begins, and until all has ended."""
    policy = SandboxPolicy(readable=python_paths())
    ready, ended = [], []
    for _ in range(spawns):
        start = perf_counter_ns()
        confined = spawn_confined(policy, lambda: 0, (), walls=walls)
        middle = perf_counter_ns()
        wait(confined)
        ready.append((middle - start) / 1e6)
        ended.append((perf_counter_ns() - start) / 1e6)
    return statistics.median(ready), statistics.median(ended)


if __name__ == "__main__":
    main()
