"""One pass over an output: which elements are right, and how the others are wrong.

Works on chunks, so that the temporaries stay small and, on a CPU, in cache. A chunk without a
wrong element costs nine vectorised passes; only chunks with one are looked at more closely.
Everything is computed in float64 (integers: exactly).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch

from kernelarc.guard.worker.tolerance import Tolerance

CPU_CHUNK = 1 << 18
CUDA_CHUNK = 1 << 22
"""Elements per chunk: 2 MiB and 32 MiB for each of at most six float64 temporaries."""
SHOWN = 3
"""Elements of each kind that are shown in a message."""
MARKED_ELEMENTS = 1 << 21
"""Outputs up to this size get a map of their wrong elements and are diagnosed from it; that takes
up to a dozen float64 copies, 16 MiB each."""

_PROMOTABLE = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


@dataclass
class Findings:
    """What a scan saw. Positions are flat, row-major."""

    total: int
    rms: float
    """Root mean square of the finite expected elements."""
    max_abs: float = 0.0
    """Largest error of the elements where both sides are finite."""
    max_rel: float = 0.0
    """Largest of error / max(|expected|, rms)."""
    mismatched: int = 0
    unwritten: int = 0
    """Mismatched elements that hold, bit for bit, what the output was filled with."""
    nonfinite: int = 0
    """Mismatched elements whose class (finite, +inf, -inf, NaN) differs from the expected."""
    excess: float = 0.0
    """Largest error / allowed error."""
    densest_block: int = 0
    """Mismatched elements in the worst block, where the tolerance forgives any."""
    first: list[int] = field(default_factory=list)
    first_unwritten: list[int] = field(default_factory=list)
    first_nonfinite: list[int] = field(default_factory=list)
    wrong: torch.Tensor | None = None
    """Bool, ``(total,)``: the mismatched elements; absent when all are right or too many."""


def root_mean_square(values: torch.Tensor) -> float:
    """Root mean square of the finite elements of a float64 tensor; 0 when there are none."""
    if values.numel() == 0:
        return 0.0
    norm = float(torch.linalg.vector_norm(values))
    if math.isfinite(norm):
        return norm / math.sqrt(values.numel())
    square, count = 0.0, 0
    for chunk in torch.split(values.flatten(), _chunk(values)):
        finite = chunk[chunk.isfinite()]
        square += float(finite.square().sum())
        count += finite.numel()
    return math.sqrt(square / count) if count else 0.0


def scan_floats(
    expected: torch.Tensor, got: torch.Tensor, poison: torch.Tensor | None, tolerance: Tolerance
) -> Findings:
    """Compare a floating-point output with its reference.

    Args:
        expected: float64, any shape.
        got: the output, any float dtype, same shape.
        poison: what ``got`` was filled with before the call, same dtype and shape.
        tolerance: the rule for this output.
    """
    scan = _Scan(expected, got, poison, tolerance)
    atol, rtol, rms = scan.atol, tolerance.rtol, scan.findings.rms
    for start, ref, sol in scan.chunks():
        error = torch.sub(_promotable(sol), ref).abs_()
        size = ref.abs()
        margin = float(torch.sub(error, size, alpha=rtol).max())
        # Any NaN or infinity on either side makes the comparison false.
        if not margin <= atol:
            scan.examine(start, ref, sol, error, size)
            continue
        largest = float(error.max())
        if largest > 0:
            scan.record(largest, float(error.div_(size.clamp_min_(rms)).max()))
    return scan.finish()


def scan_exact(expected: torch.Tensor, got: torch.Tensor, poison: torch.Tensor | None) -> Findings:
    """Compare an integer or bool output: every element must be equal, nothing goes through float.

    A bool is compared as the byte it is, so that a 2 written by C++ is not a ``True``.
    """
    if got.dtype is torch.bool:
        expected, got = expected.view(torch.uint8), got.view(torch.uint8)
        poison = None if poison is None else poison.view(torch.uint8)
    scan = _Scan(expected, got, poison, Tolerance(rtol=0.0, atol_rms=0.0))
    for start, ref, sol in scan.chunks():
        wrong = ref != sol
        if wrong.any():
            size = ref.double().abs()
            error = torch.sub(sol.double(), ref.double()).abs_()
            scan.record(float(error.max()), float((error / size.clamp_min_(1)).max()))
            scan.mark(start, wrong, sol)
            scan.findings.excess = math.inf
    return scan.finish()


class _Scan:
    """Accumulates findings over the chunks of one output."""

    def __init__(
        self,
        expected: torch.Tensor,
        got: torch.Tensor,
        poison: torch.Tensor | None,
        tolerance: Tolerance,
    ) -> None:
        rms = root_mean_square(expected) if expected.is_floating_point() else 0.0
        self.findings = Findings(total=got.numel(), rms=rms)
        self.atol = tolerance.atol(rms)
        self._tolerance = tolerance
        self._expected, self._got = expected.flatten(), got.flatten()
        self._poison = None if poison is None else _bits(poison.flatten())
        width = got.shape[-1] if got.dim() > 1 else 1
        self._block = tolerance.block_elements(max(1, width))
        self._blocks: torch.Tensor | None = None
        if tolerance.matched_ratio < 1:
            count = math.ceil(self.findings.total / self._block)
            self._blocks = torch.zeros(count, dtype=torch.int64, device=got.device)

    def chunks(self) -> list[tuple[int, torch.Tensor, torch.Tensor]]:
        size = _chunk(self._got)
        starts = range(0, self.findings.total, size)
        return [
            (start, self._expected[start : start + size], self._got[start : start + size])
            for start in starts
        ]

    def record(self, absolute: float, relative: float) -> None:
        self.findings.max_abs = max(self.findings.max_abs, absolute)
        self.findings.max_rel = max(self.findings.max_rel, relative)

    def examine(
        self,
        start: int,
        ref: torch.Tensor,
        sol: torch.Tensor,
        error: torch.Tensor,
        size: torch.Tensor,
    ) -> None:
        """Take apart a chunk in which something may be wrong."""
        value = sol.double()
        finite = error.isfinite()
        allowed = size.mul(self._tolerance.rtol).add_(self.atol)
        # inf <= inf holds, hence the test for finiteness.
        right = (finite & (error <= allowed)) | (ref == value) | (ref.isnan() & value.isnan())
        wrong = right.logical_not_()
        error.masked_fill_(~finite, 0.0)
        relative = error / size.clamp_min_(self.findings.rms)
        self.record(float(error.max()), float(relative.nan_to_num_(0.0, math.inf).max()))
        if not wrong.any():
            return
        ratio = (error / allowed).nan_to_num_(0.0, math.inf)
        self.findings.excess = max(self.findings.excess, float(ratio.max()))
        self.mark(start, wrong, sol)
        # A wrong element whose error is not finite has another class than the expected one:
        # equal infinities and equal NaN are right, and finite differences of float64 are finite.
        special = wrong.logical_and_(~finite)
        self.findings.nonfinite += int(special.sum())
        _extend(self.findings.first_nonfinite, special, start)

    def mark(self, start: int, wrong: torch.Tensor, sol: torch.Tensor) -> None:
        """Count mismatched elements, given as a mask of the chunk that begins at ``start``."""
        found = self.findings
        stop = start + wrong.numel()
        found.mismatched += int(wrong.sum())
        _extend(found.first, wrong, start)
        if found.wrong is None and found.total <= MARKED_ELEMENTS:
            found.wrong = torch.zeros(found.total, dtype=torch.bool, device=sol.device)
        if found.wrong is not None:
            found.wrong[start:stop] = wrong
        if self._blocks is not None:
            blocks = (wrong.nonzero().flatten() + start) // self._block
            self._blocks.index_add_(0, blocks, torch.ones_like(blocks))
        if self._poison is not None:
            stale = (_bits(sol) == self._poison[start:stop]).logical_and_(wrong)
            found.unwritten += int(stale.sum())
            _extend(found.first_unwritten, stale, start)

    def finish(self) -> Findings:
        if self._blocks is not None and self._blocks.numel():
            self.findings.densest_block = int(self._blocks.max())
        return self.findings


def _chunk(tensor: torch.Tensor) -> int:
    return CPU_CHUNK if tensor.device.type == "cpu" else CUDA_CHUNK


def _promotable(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor that arithmetic with float64 accepts; the 8-bit floats are not promoted by torch."""
    return tensor if tensor.dtype in _PROMOTABLE else tensor.double()


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """The same bytes as integers, so that equal NaN are equal and -0 differs from 0."""
    kinds = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return tensor.contiguous().view(kinds[tensor.element_size()])


def _extend(shown: list[int], mask: torch.Tensor, start: int) -> None:
    if len(shown) < SHOWN and mask.any():
        shown += (mask.nonzero().flatten()[: SHOWN - len(shown)] + start).tolist()
