"""Compiles generated sources and runs them beside the reference in float64."""

import ctypes
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from kernelarc.guard.schema import Problem, Workload

FLAGS = ["-march=native", "-std=c++20", "-shared", "-fPIC", "-fopenmp"]
WARNINGS = ["-Wall", "-Werror"]


@dataclass
class Bench:
    """Builds and checks solutions of built-in problems, as the contract in a problem says."""

    folder: Path

    def build(self, source, optimise="-O3"):
        stem = self.folder / f"kernel{len(list(self.folder.iterdir()))}"
        stem.with_suffix(".cpp").write_text(source)
        done = subprocess.run(
            [
                "g++",
                optimise,
                *FLAGS,
                "-Wall",
                "-Werror",
                str(stem) + ".cpp",
                "-o",
                str(stem) + ".so",
            ],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[:4000] + source
        return ctypes.CDLL(str(stem) + ".so").run

    def errors(self, function, problem, axes, scale=1.0, seed=0):
        """Differences outside the problem's tolerance, one text for each output that has any."""
        torch = pytest.importorskip("torch")
        workload = problem.workloads[0].model_copy(update={"axes": axes})
        inputs = draw(problem, workload, scale, seed)
        scope = {}
        exec(problem.definition.reference, scope)
        wide = [x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs]
        expected = scope["run"](*wide)
        expected = expected if isinstance(expected, tuple) else (expected,)
        shapes = problem.output_shapes(workload)
        outputs = [
            torch.full(shapes[n], 77).to(dtype_of(s)) for n, s in problem.definition.outputs.items()
        ]
        call(function, [*inputs, *outputs, *problem.axes(workload).values()])
        found = []
        for name, got, want in zip(shapes, outputs, expected, strict=True):
            rule = problem.contract.outputs[name]
            wanted = want.double()
            allowed = rule.rtol * wanted.abs() + rule.atol_rms * wanted.square().mean().sqrt()
            error = (got.double() - wanted).abs()
            wrong = ~(error <= allowed)
            if wrong.any():
                found.append(f"{name} {axes}: {int(wrong.sum())} wrong, largest {error.max():.3e}")
        return found


def dtype_of(spec):
    import torch

    return getattr(torch, spec.dtype.value)


def draw(problem: Problem, workload: Workload, scale: float, seed: int):
    import torch

    generator = torch.Generator().manual_seed(seed)
    values = []
    for name, shape in problem.input_shapes(workload).items():
        spec = problem.definition.inputs[name]
        if shape is None:
            values.append(1e-5)
        elif name == "slots":
            places = problem.axes(workload)["P"]
            values.append(torch.randperm(places, generator=generator)[: shape[0]].contiguous())
        elif name == "labels":
            values.append(
                torch.randint(-1, problem.axes(workload)["V"], shape, generator=generator)
            )
        else:
            values.append((torch.randn(shape, generator=generator) * scale).to(dtype_of(spec)))
    return values


def call(function, arguments):
    def convert(value):
        if isinstance(value, int):
            return ctypes.c_int64(value)
        if isinstance(value, float):
            return ctypes.c_double(value)
        return ctypes.c_void_p(value.data_ptr())

    function.restype = None
    function(*map(convert, arguments))


@pytest.fixture
def bench(tmp_path, monkeypatch):
    # The kernels' threads and torch's would spin against each other on a small machine.
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    return Bench(tmp_path)
