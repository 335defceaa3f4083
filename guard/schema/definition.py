"""``definition.json``: the contract of a problem, in SOL-ExecBench's form."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from kernelarc.guard.schema.base import DatasetModel
from kernelarc.guard.schema.expressions import evaluate_integer, names_in

AxisSize = Annotated[int, Field(ge=0, strict=True)]


class DType(StrEnum):
    """Element types."""

    FLOAT64 = "float64"
    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT8_E4M3FN = "float8_e4m3fn"
    FLOAT8_E5M2 = "float8_e5m2"
    FLOAT4_E2M1 = "float4_e2m1"
    FLOAT4_E2M1FN_X2 = "float4_e2m1fn_x2"
    INT64 = "int64"
    INT32 = "int32"
    INT16 = "int16"
    INT8 = "int8"
    BOOL = "bool"

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point type."""
        return self.value.startswith("float") or self is DType.BFLOAT16

    @property
    def bits(self) -> int:
        """Size of one element of the shape, in bits; a bool takes a byte."""
        if self is DType.BOOL:
            return 8
        digits = self.value.removeprefix("b").removeprefix("float").removeprefix("int")
        return int(digits.partition("_")[0])


class AxisConst(DatasetModel):
    """A size that is the same in every workload."""

    type: Literal["const"]
    value: AxisSize
    description: str | None = None


class AxisVar(DatasetModel):
    """A size that each workload gives."""

    type: Literal["var"]
    description: str | None = None


class AxisExpr(DatasetModel):
    """A size computed from constants, variables and earlier expressions."""

    type: Literal["expr"]
    expression: str
    description: str | None = None


Axis = Annotated[AxisConst | AxisVar | AxisExpr, Field(discriminator="type")]


class TensorSpec(DatasetModel):
    """One input or output."""

    shape: list[str] | None = None
    """Axis names or digits (``"128"``); ``[]`` is a 0-d tensor, ``None`` a Python scalar."""
    dtype: DType
    description: str | None = None


class Definition(DatasetModel):
    """What a solution must compute. The order of inputs and outputs is the calling convention."""

    name: str = Field(min_length=1)
    op_type: str | None = None
    axes: dict[str, Axis]
    custom_inputs_entrypoint: str | None = None
    """Top-level function of ``reference`` that makes the inputs, if they are not plain."""
    inputs: dict[str, TensorSpec]
    outputs: dict[str, TensorSpec] = Field(min_length=1)
    reference: str
    """Python source with a top-level ``run(*inputs)`` that returns the outputs."""
    description: str | None = None
    hf_id: str | None = None

    def resolve(self, given: Mapping[str, int]) -> dict[str, int]:
        """Every axis of the definition, in its order.

        Args:
            given: values of the ``var`` axes; a constant may be repeated with its own value.

        Raises:
            ValueError: names the axis that is missing, unknown, contradictory, or whose
                expression is not a non-negative integer.
        """
        unknown = [name for name in given if name not in self.axes]
        if unknown:
            raise ValueError(f"axes: unknown {unknown}; the definition has {list(self.axes)}")
        known: dict[str, int] = {}
        for name, axis in self.axes.items():
            if isinstance(axis, AxisConst):
                known[name] = axis.value
            elif isinstance(axis, AxisVar):
                if name not in given:
                    raise ValueError(
                        f"axes: no value for {name!r}, which the definition has as var"
                    )
                known[name] = given[name]
        for name, axis in self.axes.items():
            if isinstance(axis, AxisExpr):
                known[name] = evaluate_integer(axis.expression, known)
                if known[name] < 0:
                    raise ValueError(f"axes: {name!r} = {axis.expression} is {known[name]}")
        contradicted = [name for name, value in given.items() if known[name] != value]
        if contradicted:
            name = contradicted[0]
            raise ValueError(f"axes: {name!r} is {known[name]} by definition, not {given[name]}")
        return {name: known[name] for name in self.axes}

    @field_validator("axes")
    @classmethod
    def _expressions_use_earlier_axes(cls, axes: dict[str, Axis]) -> dict[str, Axis]:
        known = {name for name, axis in axes.items() if not isinstance(axis, AxisExpr)}
        for name, axis in axes.items():
            if isinstance(axis, AxisExpr):
                unknown = sorted(names_in(axis.expression) - known)
                if unknown:
                    raise ValueError(
                        f"axis {name!r} = {axis.expression} uses {unknown}; known there are the "
                        f"const and var axes and earlier expressions: {sorted(known)}"
                    )
                known.add(name)
        return axes

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        clash = sorted(set(self.inputs) & set(self.outputs))
        if clash:
            raise ValueError(f"{clash} are both inputs and outputs; give the outputs other names")
        clash = sorted(set(self.inputs) & set(self.axes))
        if clash:
            raise ValueError(f"{clash} are both inputs and axes; give the inputs other names")
        for name, spec in (self.inputs | self.outputs).items():
            for size in spec.shape or ():
                if not _is_digits(size) and size not in self.axes:
                    raise ValueError(
                        f"{name}.shape: {size!r} is neither digits nor an axis; "
                        f"axes: {list(self.axes)}"
                    )
        return self

    @model_validator(mode="after")
    def _reference_fits(self) -> Self:
        functions = _top_level_functions(self.reference)
        run = functions.get("run")
        if run is None:
            raise ValueError("reference: no top-level function run()")
        parameters = [argument.arg for argument in (*run.args.posonlyargs, *run.args.args)]
        if parameters != list(self.inputs):
            raise ValueError(
                f"reference: run() takes {parameters}, but the inputs are {list(self.inputs)}; "
                f"they must be equal in name and order"
            )
        entry = self.custom_inputs_entrypoint
        if entry is not None and entry not in functions:
            raise ValueError(f"custom_inputs_entrypoint: reference has no function {entry!r}")
        return self


def dimension(size: str, axes: Mapping[str, int]) -> int:
    """The extent of one entry of a shape: an axis name or digits."""
    return int(size) if _is_digits(size) else axes[size]


def _is_digits(size: str) -> bool:
    return size.isascii() and size.isdigit()


def _top_level_functions(source: str) -> dict[str, ast.FunctionDef]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError(f"reference is not Python: {error}") from None
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
