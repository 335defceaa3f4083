"""Triton on the CPU device: verified by the interpreter, never timed, bfloat16 refused."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from kernelarc.guard import problems
from kernelarc.guard.schema import (
    BenchmarkOutcome,
    EvaluationStatus,
    load_problem,
    solution_from_source,
)

PROBLEM = problems.get("softmax")

SOFTMAX = """
import torch
import triton
import triton.language as tl


DECORATORS
@triton.jit
def kernel(x, y, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < N
    values = tl.load(x + row * N + columns, mask=mask, other=-float("inf"))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + row * N + columns, values / tl.sum(values, axis=0), mask=mask)


def run(x, y):
    M, N = x.shape
    kernel[(M,)](x, y, N, EXTRA)
"""
PLAIN = SOFTMAX.replace("DECORATORS\n", "").replace("EXTRA", "BLOCK=triton.next_power_of_2(N)")
AUTOTUNED = SOFTMAX.replace(
    "DECORATORS",
    "@triton.autotune([triton.Config({'BLOCK': b}) for b in (8192, 16384)], key=['N'])",
).replace(", EXTRA", "")

BF16 = """
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, N, BLOCK: tl.constexpr):
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < N
    values = tl.load(x + columns, mask=mask)
    tl.store(y + columns, EXPRESSION, mask=mask)


def run(x, y):
    N = x.numel()
    kernel[(triton.cdiv(N, 256),)](x, y, N, BLOCK=256)
"""


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(PLAIN, id="plain"),
        pytest.param(AUTOTUNED, id="autotuned", marks=pytest.mark.slow),
    ],
)
def test_an_honest_kernel_passes_and_is_labelled(judge, source):
    verdict = judge.verify(PROBLEM, solution_from_source(PROBLEM, source, "triton"))
    assert verdict.status is EvaluationStatus.PASSED, verdict.message
    assert "interpreted" in verdict.labels


def test_a_wrong_kernel_fails(judge):
    source = PLAIN.replace("values - tl.max(values, axis=0)", "values * 0.5")
    verdict = judge.verify(PROBLEM, solution_from_source(PROBLEM, source, "triton"))
    assert verdict.status in (EvaluationStatus.INCORRECT_NUMERICAL, EvaluationStatus.NONFINITE)


def test_an_address_outside_is_a_crash_and_not_the_end_of_the_guard(judge):
    source = PLAIN.replace("tl.store(y + row * N", "tl.store(y + (1 << 40) + row * N")
    verdict = judge.verify(PROBLEM, solution_from_source(PROBLEM, source, "triton"))
    assert verdict.status is EvaluationStatus.CRASH, verdict.message
    honest = judge.verify(PROBLEM, solution_from_source(PROBLEM, PLAIN, "triton"))
    assert honest.status is EvaluationStatus.PASSED


def test_it_is_never_timed(judge):
    result = judge.benchmark(PROBLEM, solution_from_source(PROBLEM, PLAIN, "triton"))
    assert result.outcome is BenchmarkOutcome.INCONCLUSIVE
    assert "never timed" in result.reason
    assert result.performance == {}


@pytest.fixture
def bf16_problem(tmp_path):
    reference = "import torch\n\n\ndef run(x):\n    return x * x + x\n"
    definition = {
        "name": "bf16_square",
        "op_type": "elementwise",
        "axes": {"N": {"type": "var"}},
        "inputs": {"x": {"shape": ["N"], "dtype": "bfloat16"}},
        "outputs": {"y": {"shape": ["N"], "dtype": "bfloat16"}},
        "reference": reference,
    }
    workload = {
        "axes": {"N": 1000},
        "inputs": {"x": {"type": "random"}},
        "uuid": "w1",
        "tolerance": {"max_atol": 0.02, "max_rtol": 0.02, "required_matched_ratio": 1.0},
    }
    (tmp_path / "definition.json").write_text(json.dumps(definition))
    (tmp_path / "workload.jsonl").write_text(json.dumps(workload) + "\n")
    return load_problem(tmp_path)


def test_bfloat16_arithmetic_is_refused_with_the_reason(judge, bf16_problem):
    source = BF16.replace("EXPRESSION", "values * values + values")
    verdict = judge.verify(bf16_problem, solution_from_source(bf16_problem, source, "triton"))
    assert verdict.status is EvaluationStatus.POLICY, verdict.message
    assert ".to(tl.float32)" in verdict.message


def test_bfloat16_loads_with_float32_arithmetic_pass(judge, bf16_problem):
    source = BF16.replace(
        "values = tl.load(x + columns, mask=mask)",
        ("values = tl.load(x + columns, mask=mask).to(tl.float32)"),
    ).replace("EXPRESSION", "(values * values + values).to(tl.bfloat16)")
    verdict = judge.verify(bf16_problem, solution_from_source(bf16_problem, source, "triton"))
    assert verdict.status is EvaluationStatus.PASSED, verdict.message
