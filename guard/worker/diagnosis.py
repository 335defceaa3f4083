"""What a wrong output looks like, in words that point at the bug.

Guesses only: they never decide whether an output is right. ``lower_precision`` decides which of
two failures is reported, and says no more than that the errors have that size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from kernelarc.guard.worker.scan import MARKED_ELEMENTS

UNIT_ROUNDOFF = {
    "bfloat16": 2.0**-8,
    "tfloat32 or float16": 2.0**-11,
    "float32": 2.0**-24,
}
"""Largest relative rounding error: half a unit in the last of 8, 11, 24 significand bits."""
_BELOW = {
    torch.float64: ("float32", "tfloat32 or float16", "bfloat16"),
    torch.float32: ("tfloat32 or float16", "bfloat16"),
}
_MIN_ELEMENTS = 64
_MIN_ROW = 32
"""Fewer values have no distribution to speak of."""


def lower_precision(expected: torch.Tensor, got: torch.Tensor) -> str | None:
    """The arithmetic whose rounding gives errors such as these, if there is one.

    The errors must be of that size in root mean square and at most, be spread over the output,
    and not be systematic: a factor or an offset that is wrong gives errors of any size.

    Args:
        expected: float64.
        got: the output, same shape.

    Returns:
        ``"bfloat16"``, ``"tfloat32 or float16"``, ``"float32"`` or ``None``.
    """
    candidates = _BELOW.get(got.dtype, ())
    if not candidates or got.numel() < _MIN_ELEMENTS:
        return None
    expected, got = _leading_rows(expected), _leading_rows(got)
    error = got.double() - expected
    rms = float(expected.square().mean().sqrt())
    size = float(error.square().mean().sqrt()) / rms if rms else 0.0
    if not 0 < size < 1 or _is_systematic(error, expected):
        return None
    if float((error != 0).double().mean()) < 0.5:
        return None
    largest = float((error.abs() / expected.abs().clamp(min=rms)).max())
    for name in candidates:
        unit = UNIT_ROUNDOFF[name]
        # Rounding both operands of a product gives an rms of about 0.6 units, rounding one value
        # 0.4, and long sums of one sign average some of it away. 1.5 units is half-way, on a
        # logarithmic scale, to what the next coarser arithmetic gives.
        if unit / 16 <= size <= 1.5 * unit and largest <= 8 * unit:
            return name
    return None


def _leading_rows(tensor: torch.Tensor) -> torch.Tensor:
    """As many rows, or as much of a row, as may be diagnosed; errors of rounding are everywhere."""
    if tensor.numel() <= MARKED_ELEMENTS:
        return tensor
    rows = tensor.reshape(-1, tensor.shape[-1])[..., :MARKED_ELEMENTS]
    return rows[: max(1, MARKED_ELEMENTS // rows.shape[-1])]


def _is_systematic(error: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether most of the error is one factor or one offset, of the whole output or of a row."""
    rowless = expected.dim() < 2 or expected.shape[-1] < _MIN_ROW
    width = expected.numel() if rowless else expected.shape[-1]
    error, expected = error.reshape(-1, width), expected.reshape(-1, width)
    total = float(error.square().sum())
    for shape in (expected, torch.ones_like(expected)):
        power = shape.square().sum(-1).clamp_min_(torch.finfo(torch.float64).tiny)
        explained = ((error * shape).sum(-1).square() / power).sum()
        if float(explained) > 0.5 * total:
            return True
    return False


def hint(
    expected: torch.Tensor,
    got: torch.Tensor,
    wrong: torch.Tensor | None,
    inputs: Mapping[str, torch.Tensor] | None,
) -> str | None:
    """One sentence on a recognised pattern, or ``None``.

    Args:
        expected: float64 or integer.
        got: the output, same shape.
        wrong: bool, ``(numel,)``: the mismatched elements; ``None`` if the output is too large.
        inputs: the inputs of the call by name.
    """
    if wrong is None or got.numel() < 2:
        return None
    ref, sol = expected.double(), got.double()
    copied = _copied(got, inputs or {})
    if copied is not None:
        return copied
    for pattern in _PATTERNS:
        text = pattern(ref, sol)
        if text is not None:
            return text
    return _location(wrong, tuple(got.shape))


def _copied(got: torch.Tensor, inputs: Mapping[str, torch.Tensor]) -> str | None:
    for name, tensor in inputs.items():
        if tensor.numel() == got.numel():
            cast = tensor.reshape(got.shape).to(got.dtype)
            if bool((cast == got).all()):
                return f"the output is a copy of the input {name!r}"
    return None


def _constant(ref: torch.Tensor, sol: torch.Tensor) -> str | None:
    low, high = float(sol.min()), float(sol.max())
    if low != high or float(ref.min()) == float(ref.max()):
        return None
    return "the output is all zeros" if low == 0 else f"every element of the output is {low:.4g}"


def _transposed(ref: torch.Tensor, sol: torch.Tensor) -> str | None:
    if ref.dim() < 2 or min(ref.shape[-2:]) < 2:
        return None
    rows, columns = ref.shape[-2:]
    turned = sol.reshape(*ref.shape[:-2], columns, rows).transpose(-1, -2)
    if _near(turned, ref):
        return "the output is the expected one with its last two axes transposed in memory"
    return None


def _scaled(ref: torch.Tensor, sol: torch.Tensor) -> str | None:
    power = float(ref.square().sum())
    factor = float((ref * sol).sum()) / power if power else 0.0
    if factor and abs(factor - 1) > 1e-6 and _near(sol / factor, ref):
        return f"every element is about {factor:.4g} times the expected one: a scale is wrong"
    return None


def _shifted(ref: torch.Tensor, sol: torch.Tensor) -> str | None:
    offset = float((sol - ref).mean())
    if offset and _near(sol - offset, ref, float((sol - ref).abs().mean()) * 1e-3):
        return f"every element is off by about {offset:.4g}: a constant was added or left out"
    return None


_PATTERNS: tuple[Callable[[torch.Tensor, torch.Tensor], str | None], ...] = (
    _constant,
    _transposed,
    _scaled,
    _shifted,
)


def _near(left: torch.Tensor, right: torch.Tensor, distance: float | None = None) -> bool:
    """Equal up to a little of the rms, or to an absolute distance; false with any NaN."""
    if distance is None:
        distance = 1e-4 * float(right.square().mean().sqrt())
    return float((left - right).abs().max()) <= distance


def _location(wrong: torch.Tensor, shape: tuple[int, ...]) -> str | None:
    """Where the wrong elements lie when they do not lie everywhere."""
    width = shape[-1] if len(shape) > 1 else 1
    grid = wrong.reshape(-1, width)
    rows = grid.any(1).nonzero().flatten()
    columns = grid.any(0).nonzero().flatten()
    if int(grid.sum()) < 0.9 * rows.numel() * columns.numel():
        return None
    if rows.numel() < grid.shape[0]:
        part = "" if columns.numel() == width else f" (in {_span(columns, width, 'columns')})"
        return f"only {_span(rows, grid.shape[0], 'rows')}{part} are wrong, the others are right"
    if columns.numel() < width:
        return f"only {_span(columns, width, 'columns')} are wrong, the others are right"
    return None


def _span(where: torch.Tensor, extent: int, noun: str) -> str:
    first, last, count = int(where[0]), int(where[-1]), where.numel()
    if last - first + 1 != count:
        return f"{count} of {extent} {noun} (the first is {first})"
    if last == extent - 1:
        return f"the last {count} of {extent} {noun}"
    if first == 0:
        return f"the first {count} of {extent} {noun}"
    return f"{noun} {first} to {last} of {extent}"
