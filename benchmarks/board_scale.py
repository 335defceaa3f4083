"""How fast the board is when it is large: posts insights in bulk, then times readings.

Usage: ``python benchmarks/board_scale.py [INSIGHTS]`` (200,000 by default). Four fifths of the
insights are spread over 50 problems of 5 categories; one problem has the last fifth, so that
both a usual and a crowded board are read. Medians of 9 readings; no threshold is asserted.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kernelarc.guard.schema import Definition, Problem, Workload
from kernelarc.memory import Archive, InsightKind, open_archive
from kernelarc.memory.board_search import scope_tokens

PROBLEMS = 50
CATEGORIES = 5
CROWDED = "problem-0"
DEVICE = "Test device"
COMMON = ["memory", "tile", "shared", "load", "register", "warp", "block", "latency"]
READINGS = 9


def make_problem(number: int) -> Problem:
    name = f"problem-{number}"
    return Problem(
        definition=Definition.model_validate(
            {
                "name": name,
                "op_type": f"category-{number % CATEGORIES}",
                "axes": {"n": {"type": "var"}},
                "inputs": {"x": {"shape": ["n"], "dtype": "float32"}},
                "outputs": {"y": {"shape": ["n"], "dtype": "float32"}},
                "reference": "def run(x):\n    return x\n",
            }
        ),
        workloads=(
            Workload.model_validate(
                {"uuid": "w", "axes": {"n": 8}, "inputs": {"x": {"type": "random"}}}
            ),
        ),
    )


def insights(total: int, agents: int) -> Iterator[dict[str, Any]]:
    chance = random.Random(1)
    rare = [f"word{n}" for n in range(5000)]
    for number in range(total):
        problem = 0 if chance.random() < 0.2 else chance.randrange(PROBLEMS)
        category = f"category-{problem % CATEGORIES}"
        words = chance.choices(COMMON, k=6) + chance.choices(rare, k=16) + [f"n{number}"]
        yield {
            "problem_id": problem + 1,
            "kind": chance.choice(list(InsightKind)).value,
            "strategy": chance.choice(["tiling", "fusion", "vectorise", "pipelining"]),
            "text": " ".join(words),
            "text_digest": str(number),
            "scope": scope_tokens(problem + 1, category, DEVICE),
            "agent_id": chance.randrange(agents) + 1,
            "run_id": None,
            "category": category,
            "device_name": DEVICE,
            "verified": int(chance.random() < 0.3),
            "created_at": float(number),
        }


def fill(archive: Archive, total: int, agents: int) -> float:
    """Bulk load straight into the table, as no agent could; returns insights per second."""
    for number in range(PROBLEMS):
        archive.catalogue.register_problem(make_problem(number))
    for number in range(agents):
        archive.runs.ensure_agent(f"agent-{number}")
    begun = time.perf_counter()
    with archive._store.write() as db:
        db.table("insights").insert_all(insights(total, agents), batch_size=1000)
    return total / (time.perf_counter() - begun)


def median_ms(call: Callable[[], object], clock: Callable[[], float]) -> float:
    times = []
    for _ in range(READINGS):
        begun = clock()
        call()
        times.append((clock() - begun) * 1e3)
    return statistics.median(times)


def readings(archive: Archive) -> Iterator[tuple[str, Callable[[], object]]]:
    read = archive.board.read
    for label, name in (("crowded", CROWDED), ("usual", "problem-7")):
        yield f"{label}: newest 20", lambda name=name: read(name)
        yield (
            f"{label}: one strategy and kind",
            lambda name=name: read(name, strategy="fusion", kinds=[InsightKind.QUESTION]),
        )
        yield f"{label}: capped to 100", lambda name=name: read(name, board_cap=100)
        yield f"{label}: with related", lambda name=name: read(name, related_on=DEVICE)
        for query in ("word17", "memory", "memory tile shared load", "word17 word18 nowhere"):
            yield (
                f"{label}: search {query!r}",
                lambda name=name, query=query: read(name, query=query),
            )
        yield (
            f"{label}: search 'memory' with related",
            lambda name=name: read(name, query="memory", related_on=DEVICE),
        )
    numbers = iter(range(10**9))
    yield (
        "post one",
        lambda: archive.board.post(
            CROWDED,
            InsightKind.HYPOTHESIS,
            "tiling",
            f"posted {next(numbers)}",
            agent="a_1",
            device_name=DEVICE,
        ),
    )


def main() -> None:
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "archive.db"
        with open_archive(path) as archive:
            rate = fill(archive, total, agents=100)
            print(f"{total} insights, bulk load {rate:,.0f}/s")
            print(f"{'median of':50} {'wall ms':>9} {'CPU ms':>9}")
            for label, call in readings(archive):
                wall, cpu = (median_ms(call, c) for c in (time.perf_counter, time.process_time))
                print(f"{label:50} {wall:9.2f} {cpu:9.2f}")
        print(f"file {path.stat().st_size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
