"""Times the built-in agent's seeds against eager PyTorch on this machine and prints a table.

    python benchmarks/builtin_templates.py [PROBLEM ...] [--rounds 30] [--all-seeds]

Every ratio is the median over rounds in which both sides run once, one after the other, so that
drift of the machine hits both. A ratio above 1 means that the kernel is faster. No guard is
involved: these numbers rank templates, they are not results.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import torch
from rich.console import Console
from rich.table import Table

from kernelarc.clients.agents.builtin.kernels import KERNELS
from kernelarc.clients.agents.builtin.render import render
from kernelarc.clients.agents.builtin.space import Point
from kernelarc.guard import problems
from kernelarc.guard.schema import Problem, Workload, cpp_signature

GXX = ["g++", "-O3", "-march=native", "-std=c++20", "-shared", "-fPIC", "-fopenmp"]


def build(source: str, folder: Path) -> Callable[..., None]:
    """Compile one source and return its ``run``."""
    path = folder / f"{len(list(folder.iterdir()))}.cpp"
    path.write_text(source)
    library = path.with_suffix(".so")
    subprocess.run([*GXX, str(path), "-o", str(library)], check=True)
    function = ctypes.CDLL(str(library)).run
    function.restype = None

    def run(*arguments: object) -> None:
        function(*arguments)

    return run


def inputs_of(problem: Problem, workload: Workload) -> list[Any]:
    """Normal values, labels and slots inside their range, eps 1e-5."""
    axes = problem.axes(workload)
    values: list[Any] = []
    for name, shape in problem.input_shapes(workload).items():
        if shape is None:
            values.append(1e-5)
        elif name == "slots":
            values.append(torch.randperm(axes["P"])[: shape[0]].contiguous())
        elif name == "labels":
            values.append(torch.randint(0, axes["V"], shape))
        else:
            values.append(torch.randn(shape))
    return values


Argument = ctypes.c_void_p | ctypes.c_double | ctypes.c_int64


def argument(value: object) -> Argument:
    """A Python value as the C++ calling convention passes it."""
    if isinstance(value, torch.Tensor):
        return ctypes.c_void_p(value.data_ptr())
    if isinstance(value, float):
        return ctypes.c_double(value)
    assert isinstance(value, int)
    return ctypes.c_int64(value)


def interleaved(
    mine: Callable[[], object], other: Callable[[], object], rounds: int
) -> list[float]:
    """Microseconds of ``mine`` and of ``other``, and the median of the rounds' ratios."""
    times: list[tuple[float, float]] = []
    for _ in range(rounds + 3):
        start = time.perf_counter()
        mine()
        middle = time.perf_counter()
        other()
        times.append((middle - start, time.perf_counter() - middle))
    kept = times[3:]
    ratio = statistics.median(b / a for a, b in kept)
    return [*(statistics.median(side) * 1e6 for side in zip(*kept, strict=True)), ratio]


def seeds_of(name: str, every: bool) -> list[tuple[str, Point]]:
    space = KERNELS[name].space
    return [
        (strategy, seed)
        for strategy in space.angles
        for seed in (space.seeds(strategy) if every else space.seeds(strategy)[-1:])
    ]


def add_rows(table: Table, name: str, folder: Path, rounds: int, every: bool) -> None:
    problem = problems.get(name)
    ranked = problem.ranked("cpu")
    shapes = [problem.axes(workload) for workload in ranked]
    scope: dict[str, Any] = {}
    exec(problem.definition.reference, scope)
    for strategy, seed in seeds_of(name, every):
        run = build(render(KERNELS[name], seed, cpp_signature(problem), shapes), folder)
        for workload in ranked:
            inputs = inputs_of(problem, workload)
            results = scope["run"](*inputs)
            outputs = [
                torch.empty_like(r) for r in (results if isinstance(results, tuple) else [results])
            ]
            arguments = [argument(v) for v in (*inputs, *outputs, *problem.axes(workload).values())]
            mine_us, eager_us, ratio = interleaved(
                lambda run=run, arguments=arguments: run(*arguments),
                lambda inputs=inputs: scope["run"](*inputs),
                rounds,
            )
            axes = " ".join(f"{k}={v}" for k, v in workload.axes.items())
            table.add_row(name, axes, strategy, f"{mine_us:.0f}", f"{eager_us:.0f}", f"{ratio:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", default=list(KERNELS))
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--all-seeds", action="store_true")
    options = parser.parse_args()
    table = Table("problem", "axes", "strategy", "kernel us", "eager us", "eager / kernel")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.problems:
            add_rows(table, name, Path(folder), options.rounds, options.all_seeds)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
