"""Compares the outputs of a call with the reference and says what is wrong.

In this order, since each explains the next: shape, dtype, elements never written, elements of
another class (finite, +inf, -inf, NaN), elements outside the tolerance. Of the last, errors that
look like arithmetic of a lower precision are reported as such.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from kernelarc.guard.schema import Correctness, EvaluationStatus, Problem, Workload
from kernelarc.guard.worker.diagnosis import hint, lower_precision
from kernelarc.guard.worker.scan import SHOWN, Findings, scan_exact, scan_floats
from kernelarc.guard.worker.tolerance import CAP_FACTOR, Tolerance, tolerance_for

EXACT = Tolerance(rtol=0.0, atol_rms=0.0)


@dataclass(frozen=True)
class Mismatch:
    """Why an output was refused."""

    status: EvaluationStatus
    message: str
    """For the author: output, counts, errors, first elements, a hint. Repeats byte for byte for
    equal values; the caller adds the axes."""


@dataclass(frozen=True)
class Comparison:
    """The result of comparing all outputs of one call."""

    correctness: Correctness
    failure: Mismatch | None
    """Of the first output, in the definition's order, that was refused."""

    @property
    def passed(self) -> bool:
        """Whether every output is right."""
        return self.failure is None


def compare(
    problem: Problem,
    workload: Workload,
    expected: Mapping[str, torch.Tensor],
    got: Mapping[str, torch.Tensor],
    poison: Mapping[str, torch.Tensor] | None = None,
    *,
    inputs: Mapping[str, torch.Tensor] | None = None,
) -> Comparison:
    """Compare the outputs of one call with the reference.

    Needs less than 256 MiB beyond its arguments, whatever their size.

    Args:
        problem: whose contract has the tolerances.
        workload: whose tolerance applies where the contract has none.
        expected: as ``Reference.expected`` gives them: floats in float64, integers and bools in
            their declared dtype.
        got: the outputs, contiguous, on the same device.
        poison: what the outputs were filled with before the call.
        inputs: the call's inputs, to recognise an output that is a copy of one.
    """
    correctness = Correctness()
    failure: Mismatch | None = None
    for name in problem.definition.outputs:
        tolerance = tolerance_for(problem, workload, name)
        part, wrong = _compare_output(
            _Output(name, expected[name], got.get(name), (poison or {}).get(name)),
            tolerance,
            problem.definition.outputs[name].dtype.value,
            inputs,
        )
        correctness = merge(correctness, part)
        failure = failure or wrong
    return Comparison(correctness, failure)


def merge(left: Correctness, right: Correctness) -> Correctness:
    """The largest errors and the summed counts of two."""
    return Correctness(
        max_absolute_error=_larger(left.max_absolute_error, right.max_absolute_error),
        max_relative_error=_larger(left.max_relative_error, right.max_relative_error),
        mismatched=left.mismatched + right.mismatched,
        total=left.total + right.total,
    )


def _larger(left: float | None, right: float | None) -> float | None:
    return max((v for v in (left, right) if v is not None), default=None)


@dataclass(frozen=True)
class _Output:
    name: str
    expected: torch.Tensor
    got: torch.Tensor | None
    poison: torch.Tensor | None


def _compare_output(
    output: _Output,
    tolerance: Tolerance,
    dtype: str,
    inputs: Mapping[str, torch.Tensor] | None,
) -> tuple[Correctness, Mismatch | None]:
    expected, got = output.expected, output.got
    total = expected.numel()
    misfit = _misfit(output, dtype)
    if got is None or misfit is not None:
        return Correctness(mismatched=total, total=total), misfit
    if expected.is_floating_point():
        findings = scan_floats(expected, got, output.poison, tolerance)
    else:
        tolerance = EXACT
        findings = scan_exact(expected, got, output.poison)
    correctness = Correctness(
        max_absolute_error=_finite(findings.max_abs),
        max_relative_error=_finite(findings.max_rel),
        mismatched=findings.mismatched,
        total=total,
    )
    return correctness, _judge(output.name, expected, got, findings, tolerance, inputs)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _misfit(output: _Output, dtype: str) -> Mismatch | None:
    """A missing output, or one of another shape or dtype than the definition's."""
    got, expected = output.got, output.expected
    if got is None:
        text = f"output {output.name!r} is missing; every output of the definition is required"
        return Mismatch(EvaluationStatus.INCORRECT_SHAPE, text)
    if got.shape != expected.shape:
        text = f"output {output.name!r} has shape {list(got.shape)}, not {list(expected.shape)}"
        return Mismatch(EvaluationStatus.INCORRECT_SHAPE, text)
    found = str(got.dtype).removeprefix("torch.")
    if found != dtype:
        text = f"output {output.name!r} has dtype {found}, not {dtype}"
        return Mismatch(EvaluationStatus.INCORRECT_DTYPE, text)
    return None


def _judge(
    name: str,
    expected: torch.Tensor,
    got: torch.Tensor,
    findings: Findings,
    tolerance: Tolerance,
    inputs: Mapping[str, torch.Tensor] | None,
) -> Mismatch | None:
    if findings.mismatched == 0:
        return None
    if _is_stale(findings, got.dtype):
        return Mismatch(EvaluationStatus.STALE_OUTPUT, _stale_text(name, got, findings))
    if findings.nonfinite:
        shown = _shown(findings.first_nonfinite, expected, got)
        text = (
            f"output {name!r}: {findings.nonfinite} of {findings.total} elements are infinite or "
            f"NaN where the expected ones are not, or the other way round; first: {shown}"
        )
        return Mismatch(EvaluationStatus.NONFINITE, text)
    reason = _refusal(findings, tolerance, got)
    if reason is None:
        return None
    text = f"output {name!r}: {reason}; {_errors(findings)}; first: "
    text += _shown(findings.first, expected, got)
    precision = lower_precision(expected, got) if expected.is_floating_point() else None
    if precision is not None:
        text += (
            f"; the errors are of the size that {precision} arithmetic gives: keep products and "
            f"sums in the precision of the problem"
        )
        return Mismatch(EvaluationStatus.PRECISION, text)
    pattern = hint(expected, got, findings.wrong, inputs)
    return Mismatch(
        EvaluationStatus.INCORRECT_NUMERICAL, text if pattern is None else f"{text}; {pattern}"
    )


def _is_stale(findings: Findings, dtype: torch.dtype) -> bool:
    """Whether the elements that hold the poison are more than wrong values hit by chance."""
    if findings.unwritten == 0:
        return False
    if dtype is torch.bool:
        return findings.unwritten == findings.mismatched > SHOWN
    # Poison spans at least 1/4 of a byte's values; 20 bits bound what counts as chance.
    chance = 2.0 ** -min(dtype.itemsize * 8 - 2, 20)
    return findings.unwritten > 8 * chance * findings.mismatched


def _refusal(findings: Findings, tolerance: Tolerance, got: torch.Tensor) -> str | None:
    """Why the mismatched elements are too many, too close together or too far off."""
    wrong, total = findings.mismatched, findings.total
    text = f"{wrong} of {total} elements ({100 * wrong / total:.3g} %) are "
    text += "not equal" if tolerance is EXACT else f"off by more than {tolerance}"
    if wrong > tolerance.allowed(total):
        share = tolerance.matched_ratio
        return text if share == 1 else f"{text}, where {100 * (1 - share):.3g} % may be"
    width = got.shape[-1] if got.dim() > 1 else 1
    block = min(tolerance.block_elements(width), total)
    if findings.densest_block > tolerance.allowed(block):
        return f"{text}, {findings.densest_block} of them in one block of {block} elements"
    if findings.excess > CAP_FACTOR:
        return f"{text}, and some by more than {CAP_FACTOR:g} times that"
    if findings.max_abs > tolerance.max_error:
        return f"{text}, and some by more than the cap of {tolerance.max_error:.3g}"
    return None


def _stale_text(name: str, got: torch.Tensor, findings: Findings) -> str:
    positions = [list(_index(flat, got)) for flat in findings.first_unwritten]
    return (
        f"output {name!r}: {findings.unwritten} of {findings.total} elements were never written "
        f"(they still hold the random bytes that the output was filled with before the call); "
        f"the first are at {', '.join(map(str, positions))}. Write every element in every call; "
        f"check the grid or loop bounds and the masks of stores"
    )


def _errors(findings: Findings) -> str:
    relative = f"{findings.max_rel:.3g}" if math.isfinite(findings.max_rel) else "infinite"
    return f"largest absolute error {findings.max_abs:.3g}, relative {relative}"


def _shown(positions: list[int], expected: torch.Tensor, got: torch.Tensor) -> str:
    """A few elements, to four digits, so that a verdict repeats byte for byte."""
    ref, sol = expected.flatten(), got.flatten()
    if sol.dtype is torch.bool:
        ref, sol = ref.view(torch.uint8), sol.view(torch.uint8)
    return ", ".join(
        f"{list(_index(flat, got))} got {_number(sol[flat])} expected {_number(ref[flat])}"
        for flat in positions
    )


def _number(value: torch.Tensor) -> str:
    number = value.item()
    return f"{number:.4g}" if isinstance(number, float) else str(number)


def _index(flat: int, tensor: torch.Tensor) -> tuple[int, ...]:
    index: list[int] = []
    for size in reversed(tensor.shape):
        flat, position = divmod(flat, size)
        index.append(position)
    return tuple(reversed(index))
