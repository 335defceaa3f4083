"""Triton's interpreter as the runner prepares it, in a process of its own: it changes triton."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from kernelarc.guard.worker.interpreter import REASON

PREPARED = """
from kernelarc.guard.worker.interpreter import REASON, prepare_interpreter
prepare_interpreter()
import torch
import triton
import triton.language as tl

DECORATOR
@triton.jit
def kernel(x, y, N, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    mask = columns < N
    values = tl.load(x + columns, mask=mask, other=0.0)
    tl.store(y + columns, EXPRESSION, mask=mask)

x = torch.arange(5, dtype=torch.DTYPE) + 1
y = torch.zeros_like(x)
"""
CALL = "kernel[(1,)](x, y, 5, BLOCK=8)\nprint(y.tolist())\n"
REFUSED = """
try:
    kernel[(1,)](x, y, 5, BLOCK=8)
except Exception as error:
    print(type(error).__name__, REASON in str(error))
"""


@pytest.fixture
def prepared(tmp_path):
    """``prepared(expression, rest)``: what a script prints that defines such a kernel."""

    def run(expression, rest=CALL, *, dtype="float32", decorator=""):
        # A file: triton reads a kernel's source.
        path = tmp_path / "script.py"
        text = PREPARED.replace("EXPRESSION", expression).replace("DTYPE", dtype)
        path.write_text(text.replace("DECORATOR", decorator) + rest)
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        environment.pop("TRITON_INTERPRET", None)
        done = subprocess.run(
            [sys.executable, path], capture_output=True, text=True, env=environment, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


def test_a_kernel_in_float32_is_right(prepared):
    assert prepared("tl.exp(values * 0.0) + values") == "[2.0, 3.0, 4.0, 5.0, 6.0]"


def test_bfloat16_that_is_converted_first_is_right(prepared):
    shown = prepared("(values.to(tl.float32) * 2.0).to(tl.bfloat16)", dtype="bfloat16")
    assert shown == "[2.0, 4.0, 6.0, 8.0, 10.0]"


def test_bfloat16_that_is_only_moved_is_right(prepared):
    assert prepared("values", dtype="bfloat16") == "[1.0, 2.0, 3.0, 4.0, 5.0]"


@pytest.mark.parametrize(
    "expression",
    [
        "values * values",
        "values + tl.sum(values, axis=0)",
        "tl.cumsum(values, 0)",
    ],
)
def test_arithmetic_on_bfloat16_is_refused_with_the_reason(prepared, expression):
    name, told = prepared(expression, REFUSED, dtype="bfloat16").split()
    assert name in ("InterpreterUnsupported", "InterpreterError")
    assert told == "True"
    assert ".to(tl.float32)" in REASON


def test_autotune_takes_the_first_configuration_and_times_nothing(prepared):
    decorator = "@triton.autotune([triton.Config({'BLOCK': b}) for b in (8, 16)], key=['N'])"
    rest = "kernel[(1,)](x, y, 5)\nprint(kernel.best_config.kwargs, y.tolist())\n"
    shown = prepared("values", rest, decorator=decorator)
    assert shown == "{'BLOCK': 8} [1.0, 2.0, 3.0, 4.0, 5.0]"


def test_a_benchmark_of_the_candidates_own_gets_constant_times(prepared):
    rest = (
        "from triton.runtime import driver\n"
        "measure = driver.active.get_benchmarker()\n"
        "print(measure(lambda: print('called')), measure(lambda: None, quantiles=(0.5,)))\n"
        "print(driver.active.get_current_target().backend)\n"
    )
    assert prepared("values", rest).split("\n") == ["called", "1.0 [1.0, 1.0, 1.0]", "cuda"]
