"""What must work from the installed package, wherever it lies."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import resources

import pytest

from kernelarc.guard import problems
from kernelarc.strategies import catalogue


def test_the_data_files_are_there():
    assert len([n for n in problems.names() if problems.get(n).ranked("cpu")]) >= 12
    assert len(catalogue.load().ids()) >= 10
    assert resources.files("kernelarc").joinpath("py.typed").is_file()


def test_a_solution_is_judged_end_to_end(tmp_path):
    pytest.importorskip("torch")
    source = tmp_path / "kernel.py"
    source.write_text(
        "import torch\n\n\ndef run(x, weight, eps, y):\n"
        "    y.copy_(x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "kernelarc.cli", "eval", "rmsnorm", str(source), "--json",
         "--no-benchmark", "--isolation", "none", "--home", str(tmp_path / "home")],
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    assert answer["status"] == "PASSED"
    assert answer["benchmark"] is None
    assert answer["isolation"]["level"] in ("full", "reduced", "none")
