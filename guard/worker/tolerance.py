"""How far an output may be from its reference.

An element is right when ``|got - expected| <= atol + rtol * |expected|``, where ``atol`` is a
multiple of the root mean square (rms) of the expected output: the rule means the same for an
output of order 1e-6 as for one of order 1e6, so an answer of zeros cannot hide in it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

from kernelarc.guard.schema import OutputTolerance, Problem, ToleranceSpec, Workload

CAP_FACTOR = 10.0
"""An element outside the tolerance that the matched ratio forgives may exceed it this many
times: rounding has thin tails, a lost element is off by its own size."""
MIN_BLOCK_ROWS = 16
MIN_BLOCK_ELEMENTS = 4096
"""Default block in which the matched ratio must hold: at least so many rows and elements, which
is of the size of one tile of a kernel, and large enough for a ratio of 0.99 to mean something."""


@dataclass(frozen=True)
class Tolerance:
    """The rule for one output."""

    rtol: float
    """Times |expected|."""
    atol_rms: float
    """Times the rms of the expected output."""
    atol_fixed: float = 0.0
    """Added to the absolute term, in the output's unit; a contract may ask for it."""
    matched_ratio: float = 1.0
    """Least fraction of right elements, in the whole output and in every block of it."""
    block_rows: int | None = None
    """Rows of such a block; ``None``: chosen from the row width."""
    atol_limit: float = math.inf
    """Upper limit of the absolute term, in the output's unit."""
    max_error: float = math.inf
    """Largest absolute error of any element, in the output's unit."""

    @classmethod
    def of_contract(cls, declared: OutputTolerance) -> Self:
        """As the problem's contract says."""
        return cls(
            rtol=declared.rtol,
            atol_rms=declared.atol_rms,
            atol_fixed=declared.atol,
            matched_ratio=declared.matched_ratio,
            block_rows=declared.block_rows,
        )

    @classmethod
    def of_workload(cls, declared: ToleranceSpec) -> Self:
        """From SOL-ExecBench's tolerance, which is absolute.

        Its ``max_atol`` is meant for outputs of order one. It becomes a multiple of the rms, and
        stays the upper limit: never wider than theirs, and narrower for small outputs, where
        theirs accepts zeros.
        """
        return cls(
            rtol=declared.max_rtol,
            atol_rms=declared.max_atol,
            matched_ratio=declared.required_matched_ratio,
            atol_limit=declared.max_atol,
            max_error=math.inf if declared.max_error_cap is None else declared.max_error_cap,
        )

    def atol(self, rms: float) -> float:
        """The absolute term for an expected output of that rms, in the output's unit."""
        return min(self.atol_rms * rms, self.atol_limit) + self.atol_fixed

    def allowed(self, elements: int) -> int:
        """How many of so many elements may be outside."""
        # The small term undoes the rounding of 1 - ratio: 100 elements at 0.99 allow one.
        return math.floor(elements * (1 - self.matched_ratio) + 1e-9)

    def block_elements(self, width: int) -> int:
        """Elements of a block, for rows of ``width`` elements."""
        rows = self.block_rows or max(MIN_BLOCK_ROWS, math.ceil(MIN_BLOCK_ELEMENTS / width))
        return rows * width

    def __str__(self) -> str:
        absolute = f"{self.atol_rms:.3g} * rms(expected)"
        if math.isfinite(self.atol_limit):
            absolute = f"min({absolute}, {self.atol_limit:.3g})"
        if self.atol_fixed:
            absolute += f" + {self.atol_fixed:.3g}"
        return f"{absolute} + {self.rtol:.3g} * |expected|"


def tolerance_for(problem: Problem, workload: Workload, output: str) -> Tolerance:
    """The rule for one output: the contract's, or else derived from the workload's tolerance."""
    declared = problem.contract.outputs.get(output)
    if declared is not None:
        return Tolerance.of_contract(declared)
    return Tolerance.of_workload(workload.tolerance)
