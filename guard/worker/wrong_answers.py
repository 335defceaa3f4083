"""Answers that no tolerance may accept: constants, copies of inputs, lower precision, mutants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import torch

from kernelarc.guard.schema import Problem
from kernelarc.guard.worker.emulation import with_rounded_inputs, with_rounded_products
from kernelarc.guard.worker.input_set import InputSet
from kernelarc.guard.worker.reference import Reference

Outputs = dict[str, torch.Tensor]


class WrongAnswer(NamedTuple):
    """One way to answer wrongly."""

    name: str
    outputs: Outputs
    """Every output, in its declared dtype."""


class WrongAnswers:
    """Makes the wrong answers of a problem for given inputs.

    Raises:
        InvalidReference: a mutant does not load.
    """

    def __init__(self, problem: Problem, reference: Reference) -> None:
        self._problem = problem
        self._reference = reference
        self._mutants = [
            (mutant.name, reference.mutant(mutant)) for mutant in problem.contract.mutants
        ]

    def make(
        self, inputs: InputSet, expected: Mapping[str, torch.Tensor], honest: Outputs
    ) -> Iterator[WrongAnswer]:
        """All wrong answers for one set of inputs.

        Where a problem has several outputs, constants and copies replace one at a time and the
        others stay right: each tolerance is tested on its own.

        Args:
            inputs: of the call.
            expected: ``Reference.expected(inputs)``.
            honest: ``Reference.as_declared(inputs)``.

        Raises:
            InvalidReference: a mutant or an emulation does not run.
        """
        several = len(honest) > 1
        for output, right in honest.items():
            for name, value in _substitutes(expected[output], right, inputs):
                label = f"{name} in {output}" if several else name
                yield WrongAnswer(label, honest | {output: value})
        for precision in self._problem.contract.precision.forbidden:
            rounded = with_rounded_inputs(self._reference, inputs, precision)
            yield WrongAnswer(f"{precision} inputs", rounded)
            products = with_rounded_products(self._reference, inputs, precision)
            if products is not None:
                yield WrongAnswer(f"{precision} products", products)
        for name, wrong in self._mutants:
            yield WrongAnswer(name, wrong.as_declared(inputs))


def _substitutes(
    expected: torch.Tensor, right: torch.Tensor, inputs: InputSet
) -> Iterator[tuple[str, torch.Tensor]]:
    yield "zeros", torch.zeros_like(right)
    yield "ones", torch.ones_like(right)
    yield "mean", torch.full_like(right, _mean(expected, right.dtype))
    for name, tensor in inputs.tensors.items():
        if tensor.numel() == right.numel():
            yield f"copy:{name}", tensor.reshape(right.shape).to(right.dtype)


def _mean(expected: torch.Tensor, dtype: torch.dtype) -> float | int | bool:
    """Mean of the finite elements, as a value of the output's dtype."""
    finite = expected[expected.isfinite()].double() if expected.is_floating_point() else expected
    mean = float(finite.double().mean()) if finite.numel() else 0.0
    if dtype.is_floating_point:
        return mean
    return mean >= 0.5 if dtype is torch.bool else round(mean)
