"""A problem whose reference cannot be trusted judges nobody: its own status, never the author's."""

import pytest

from kernelarc.guard import problems
from kernelarc.guard.schema import EvaluationStatus as S
from kernelarc.guard.schema import Problem, reference_solution

pytestmark = pytest.mark.torch

RMSNORM = problems.get("rmsnorm")
NORM = "x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight"


def with_reference(line):
    source = f"import torch\n\n\ndef run(x, weight, eps):\n    {line}\n"
    definition = RMSNORM.definition.model_copy(update={"reference": source})
    contract = RMSNORM.contract.model_copy(update={"mutants": []})
    return Problem(definition=definition, workloads=RMSNORM.workloads, contract=contract)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"return {NORM} + torch.randn_like(x)", "called twice with the same inputs"),
        (f"return {NORM} / 0", "NaN and infinities are not accepted"),
        (f"return ({NORM})[:1]", "has shape"),
        ("raise ValueError('not today')", "run() raised ValueError: not today"),
    ],
)
def test_a_reference_that_cannot_be_trusted_is_named(judge, line, words):
    problem = with_reference(line)
    verdict = judge.verify(problem, reference_solution(RMSNORM))
    assert verdict.status is S.INVALID_REFERENCE
    assert words in verdict.message


def test_noise_from_a_fixed_seed_is_a_function_of_the_inputs(judge):
    noise = "torch.randn(x.shape, generator=torch.Generator().manual_seed(1))"
    problem = with_reference(f"return {NORM} + 0 * {noise}")
    assert judge.verify(problem, reference_solution(problem)).status is S.PASSED


def test_a_reference_that_fails_only_while_timing_rejects_with_its_own_status(judge):
    # It is right at first; a benchmark draws inputs dozens of times.
    problem = with_reference(
        "count = run.__dict__.setdefault('calls', [])\n    count.append(1)\n"
        f"    return {NORM} / (1 if len(count) < 20 else 0)"
    )
    solution = reference_solution(RMSNORM)
    result = judge.benchmark(problem, solution, None)
    assert result.status is S.INVALID_REFERENCE
    assert result.outcome == "REJECTED"
