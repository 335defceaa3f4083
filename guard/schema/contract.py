"""``contract.json``: what SOL-ExecBench's files cannot say about a problem."""

from __future__ import annotations

import ast
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from kernelarc.guard.schema.base import StrictModel
from kernelarc.guard.schema.definition import DType
from kernelarc.guard.schema.expressions import names_in

DeviceTag = Literal["cpu", "gpu"]

InputKind = Literal["normal", "weight", "norm_weight", "positive", "uniform", "integers"]


class InputRule(StrictModel):
    """How one input is drawn."""

    kind: InputKind = "normal"
    """``normal``: N(0, 1). ``weight``: N(0, 1) / sqrt(fan_in). ``norm_weight``: 1 + 0.1 N(0, 1),
    so that leaving the weight out is noticed. ``positive``: |N(0, 1)| + 0.1. ``uniform`` and
    ``integers``: in [low, high). The first four are then scaled and shifted."""
    fan_in: str | None = None
    """For ``weight``: an expression over the axes."""
    mean: float = 0.0
    """Added after scaling."""
    scale: float = 1.0
    low: str | None = None
    """For ``uniform`` and ``integers``: an expression over the axes, included."""
    high: str | None = None
    """As ``low``, excluded."""
    row_shift: float = 0.0
    """Family ``shifted``: so much is added to, or by coin subtracted from, all of a row (the last
    axis). For logits, which only their differences matter of: a float32 exponential without a
    subtracted maximum overflows above 88."""
    row_end: float = 0.0
    """Family ``shifted``: the last element of a row becomes this, or by coin its negative. For
    queries and keys, whose products are then shifted."""
    distinct: bool = False
    """``integers`` without repetition."""
    families: bool = True
    """Whether the values may be replaced by large, small, cancelling, structured or exactly
    representable ones."""

    @property
    def expressions(self) -> list[str]:
        """All expressions of the rule."""
        return [text for text in (self.fan_in, self.low, self.high) if text is not None]

    @model_validator(mode="after")
    def _has_what_the_kind_needs(self) -> Self:
        bounded = self.kind in ("uniform", "integers")
        if bounded and (self.low is None or self.high is None):
            raise ValueError(f"kind {self.kind!r} needs low and high")
        if not bounded and (self.low is not None or self.high is not None):
            raise ValueError(f"kind {self.kind!r} has no low and high")
        if (self.kind == "weight") != (self.fan_in is not None):
            raise ValueError("fan_in is needed by kind 'weight' and by no other")
        if (self.row_shift or self.row_end) and self.kind != "normal":
            raise ValueError("row_shift and row_end are for kind 'normal'")
        if self.distinct and self.kind != "integers":
            raise ValueError("distinct is for kind 'integers'")
        for expression in self.expressions:
            names_in(expression)
        return self


class ShapeRule(StrictModel):
    """From where the size of a ``var`` axis may be drawn for a hidden neighbour shape."""

    low: int = Field(ge=1)
    """Smallest size."""
    high: int = Field(ge=1)
    """Largest size, included."""
    multiple_of: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _has_a_size(self) -> Self:
        if self.high // self.multiple_of * self.multiple_of < self.low:
            raise ValueError(f"no multiple of {self.multiple_of} in [{self.low}, {self.high}]")
        return self


class Mutant(StrictModel):
    """A wrong reference: some term is dropped or changed. The tolerance must refuse it."""

    name: str = Field(min_length=1)
    """For example ``drop:weight``."""
    replace: list[tuple[str, str]] = Field(min_length=1)
    """Text substitutions in the reference, applied in order."""

    def apply(self, reference: str) -> str:
        """The source of the mutant.

        Raises:
            ValueError: a text to replace does not occur exactly once, or the result is not
                Python or equals the reference.
        """
        source = reference
        for old, new in self.replace:
            if source.count(old) != 1:
                raise ValueError(
                    f"mutant {self.name!r}: {old!r} occurs {source.count(old)} times in the "
                    f"reference; it must occur exactly once"
                )
            source = source.replace(old, new)
        if source == reference:
            raise ValueError(f"mutant {self.name!r} changes nothing")
        try:
            ast.parse(source)
        except SyntaxError as error:
            raise ValueError(f"mutant {self.name!r} is not Python: {error}") from None
        return source


class OutputTolerance(StrictModel):
    """When an element matches: ``|error| <= atol + atol_rms * rms + rtol * |expected|``.

    ``rms`` is the root mean square of the finite elements of the expected output.
    """

    rtol: float = Field(ge=0)
    atol_rms: float = Field(ge=0)
    atol: float = Field(default=0.0, ge=0)
    """Absolute part; for problems whose only tolerance is that of their workloads."""
    matched_ratio: float = Field(default=1.0, gt=0, le=1)
    """Least fraction of elements that must match."""
    block_rows: int | None = Field(default=None, ge=1)
    """If given, that fraction must hold in each block of so many leading rows, so that one
    wrong tile cannot hide in a large output."""


class Precision(StrictModel):
    """The arithmetic that a solution must at least use."""

    compute: str = "float32"
    """Type in which sums are accumulated."""
    forbidden: list[str] = Field(default_factory=list)
    """Types whose rounding of the inputs must fail the tolerance: ``float16``, ``bfloat16``,
    ``tfloat32``."""

    @field_validator("forbidden")
    @classmethod
    def _known(cls, forbidden: list[str]) -> list[str]:
        allowed = [*(dtype.value for dtype in DType if dtype.is_float), "tfloat32"]
        unknown = [name for name in forbidden if name not in allowed]
        if unknown:
            raise ValueError(f"unknown {unknown}; allowed: {', '.join(allowed)}")
        return forbidden


class Contract(StrictModel):
    """The side file of a problem. Everything in it has a default: foreign problems have none."""

    format: Literal[1] = 1
    title: str = ""
    summary: str = ""
    """A few sentences for the author of a solution: what is computed and what is hard."""
    category: str = ""
    """``matmul``, ``normalisation``, ``attention``, ...: what insights carry over to."""
    devices: dict[str, list[DeviceTag]] = Field(default_factory=dict)
    """Where a workload (by uuid) is ranked; one that is not listed is ranked everywhere."""
    flops: str = "0"
    """Least floating-point operations of a call, an expression over the axes; 0 claims none."""
    bytes: str | None = None
    """Least bytes moved by a call, if that is not each input and each output once."""
    inputs: dict[str, InputRule] = Field(default_factory=dict)
    """By input; one that is not listed is drawn by the default ``InputRule``."""
    shapes: dict[str, ShapeRule] = Field(default_factory=dict)
    """By ``var`` axis; one that is not listed keeps the size of a workload."""
    outputs: dict[str, OutputTolerance] = Field(default_factory=dict)
    """By output; one that is not listed is held to the tolerance of each workload."""
    precision: Precision = Precision()
    mutants: list[Mutant] = Field(default_factory=list)

    @model_validator(mode="after")
    def _mutants_differ(self) -> Self:
        names = [mutant.name for mutant in self.mutants]
        if len(set(names)) != len(names):
            raise ValueError(f"mutants: names must differ: {names}")
        return self
