"""Every built-in problem on the real guard: the reference passes and leads nobody, zeros fail."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from kernelarc.guard import problems
from kernelarc.guard.schema import (
    BenchmarkOutcome,
    EvaluationStatus,
    reference_solution,
    solution_from_source,
)

NAMES = [name for name in problems.names() if problems.get(name).ranked("cpu")]


def zeros(problem):
    names = [*problem.definition.inputs, *problem.definition.outputs]
    body = "\n".join(f"    {name}.zero_()" for name in problem.definition.outputs)
    return solution_from_source(problem, f"def run({', '.join(names)}):\n{body}\n", "pytorch")


def test_there_are_twelve():
    assert len(NAMES) >= 12


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_passes_as_a_solution(judge, name):
    problem = problems.get(name)
    verdict = judge.verify(problem, reference_solution(problem))
    assert verdict.status is EvaluationStatus.PASSED, verdict.message
    assert [e for e in verdict.evaluations if e.axes is None], "no hidden shape was verified"


@pytest.mark.parametrize("name", NAMES)
def test_zeros_fail(judge, name):
    problem = problems.get(name)
    verdict = judge.verify(problem, zeros(problem))
    assert verdict.status is EvaluationStatus.INCORRECT_NUMERICAL, verdict.message


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_reference_is_not_promoted_over_itself(judge, name):
    problem = problems.get(name)
    result = judge.benchmark(problem, reference_solution(problem))
    assert result.status is EvaluationStatus.PASSED, result.reason
    assert result.outcome is not BenchmarkOutcome.PROMOTED
