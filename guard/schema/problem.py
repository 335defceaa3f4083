"""A problem: definition, workloads and contract, checked against each other."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, model_validator

from kernelarc.guard.schema.base import canonical_bytes
from kernelarc.guard.schema.contract import Contract, OutputTolerance
from kernelarc.guard.schema.definition import AxisVar, Definition, TensorSpec, dimension
from kernelarc.guard.schema.expressions import evaluate_integer, names_in
from kernelarc.guard.schema.workload import CustomInput, ScalarInput, Workload


class Problem(BaseModel):
    """What can be optimised. Immutable; survives ``model_dump_json`` and back."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    definition: Definition
    workloads: tuple[Workload, ...]
    contract: Contract = Contract()
    folder: Path | None = None
    """Where it was read from: safetensors paths are relative to it. Not part of the digest."""

    @property
    def name(self) -> str:
        """The definition's name."""
        return self.definition.name

    @property
    def warnings(self) -> list[str]:
        """Oddities of the files that were tolerated, one sentence each."""
        found = [f"definition.json: {text}" for text in self.definition.warnings()]
        for number, workload in enumerate(self.workloads, start=1):
            found += [f"workload.jsonl, line {number}: {text}" for text in workload.warnings()]
        return found

    @property
    def digest(self) -> str:
        """SHA-256 over definition, workloads and contract, 64 hex digits.

        It is of what the files mean: a default that is written out does not change it.
        """
        content = self.model_dump(mode="json", exclude={"folder"})
        return hashlib.sha256(canonical_bytes(content)).hexdigest()

    def ranked(self, device: str) -> list[Workload]:
        """The workloads that count on a device.

        Args:
            device: ``cpu``, or ``gpu`` (``cuda`` is the same).
        """
        tag = "gpu" if device == "cuda" else device
        tags = self.contract.devices
        return [w for w in self.workloads if tag in tags.get(w.uuid, ("cpu", "gpu"))]

    def workload(self, uuid: str) -> Workload:
        """The workload of that uuid; ``KeyError`` if there is none."""
        for workload in self.workloads:
            if workload.uuid == uuid:
                return workload
        raise KeyError(uuid)

    def axes(self, workload: Workload) -> dict[str, int]:
        """All axes, resolved, in the definition's order; ``ValueError`` if they do not fit."""
        return self.definition.resolve(workload.axes)

    def input_shapes(self, workload: Workload) -> dict[str, tuple[int, ...] | None]:
        """Shapes of the inputs by name, in order; ``None`` is a Python scalar."""
        axes = self.axes(workload)
        return {name: _shape(spec, axes) for name, spec in self.definition.inputs.items()}

    def output_shapes(self, workload: Workload) -> dict[str, tuple[int, ...]]:
        """Shapes of the outputs by name, in order; a scalar output is 0-d."""
        axes = self.axes(workload)
        return {name: _shape(spec, axes) or () for name, spec in self.definition.outputs.items()}

    def tolerance(self, workload: Workload, output: str) -> OutputTolerance:
        """The tolerance for an output: the contract's, else the workload's own."""
        listed = self.contract.outputs.get(output)
        if listed is not None:
            return listed
        own = workload.tolerance
        # A ratio of zero would accept anything; the least that can be asked is one element.
        ratio = max(own.required_matched_ratio, 1e-9)
        return OutputTolerance(
            rtol=own.max_rtol, atol=own.max_atol, atol_rms=0.0, matched_ratio=ratio
        )

    def flops(self, workload: Workload) -> int:
        """Least floating-point operations of a call; 0 if the contract claims none."""
        return evaluate_integer(self.contract.flops, self.axes(workload))

    def moved_bytes(self, workload: Workload) -> int:
        """Least bytes moved by a call: the contract's, else every input and output once."""
        if self.contract.bytes is not None:
            return evaluate_integer(self.contract.bytes, self.axes(workload))
        specs = self.definition.inputs | self.definition.outputs
        shapes = self.input_shapes(workload) | self.output_shapes(workload)
        bits = sum(
            math.prod(shape) * specs[name].dtype.bits
            for name, shape in shapes.items()
            if shape is not None
        )
        return bits // 8

    @model_validator(mode="after")
    def _workloads_fit(self) -> Self:
        if not self.workloads:
            raise ValueError("workload.jsonl: no workload")
        seen: set[str] = set()
        for number, workload in enumerate(self.workloads, start=1):
            if workload.uuid in seen:
                raise ValueError(f"workload.jsonl, line {number}: uuid {workload.uuid!r} again")
            seen.add(workload.uuid)
            try:
                self._check_workload(workload)
            except ValueError as error:
                raise ValueError(f"workload.jsonl, line {number}: {error}") from None
        return self

    def _check_workload(self, workload: Workload) -> None:
        if workload.uuid == "hidden":
            raise ValueError("uuid: 'hidden' is the guard's name for shapes it keeps to itself")
        self.axes(workload)
        expected = self.definition.inputs
        if set(workload.inputs) != set(expected):
            raise ValueError(f"inputs: {list(workload.inputs)} are given, not {list(expected)}")
        for name, given in workload.inputs.items():
            scalar = expected[name].shape is None
            if isinstance(given, CustomInput) or scalar == isinstance(given, ScalarInput):
                continue
            wanted = "a Python scalar" if scalar else "a tensor"
            raise ValueError(f"inputs.{name}: type {given.type!r}, but the input is {wanted}")
        self.flops(workload)
        self.moved_bytes(workload)

    @model_validator(mode="after")
    def _contract_fits(self) -> Self:
        contract, definition = self.contract, self.definition
        variable = [name for name, axis in definition.axes.items() if isinstance(axis, AxisVar)]
        _check_names("devices", contract.devices, [w.uuid for w in self.workloads])
        _check_names("inputs", contract.inputs, definition.inputs)
        _check_names("outputs", contract.outputs, definition.outputs)
        _check_names("shapes", contract.shapes, variable)
        formulas = {"flops": [contract.flops], "bytes": [contract.bytes or "0"]}
        formulas |= {f"inputs.{name}": rule.expressions for name, rule in contract.inputs.items()}
        for field, expressions in formulas.items():
            for expression in expressions:
                _check_names(field, names_in(expression), definition.axes)
        for mutant in contract.mutants:
            try:
                mutant.apply(definition.reference)
            except ValueError as error:
                raise ValueError(f"contract.json: {error}") from None
        return self


def axes_text(axes: Mapping[str, int]) -> str:
    """Axes as they are shown to people: ``M=256, N=1024``."""
    return ", ".join(f"{name}={length}" for name, length in axes.items())


def _shape(spec: TensorSpec, axes: Mapping[str, int]) -> tuple[int, ...] | None:
    return None if spec.shape is None else tuple(dimension(size, axes) for size in spec.shape)


def _check_names(field: str, names: Iterable[str], allowed: Iterable[str]) -> None:
    unknown = [name for name in names if name not in list(allowed)]
    if unknown:
        raise ValueError(f"contract.json, {field}: unknown {unknown}; there are {list(allowed)}")
