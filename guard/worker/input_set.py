"""The inputs of one call."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from kernelarc.guard.errors import MalformedProblem
from kernelarc.guard.schema import Problem, Workload
from kernelarc.guard.worker.buffers import TORCH_DTYPES

Scalar = bool | int | float


@dataclass(frozen=True)
class InputSet:
    """Inputs of one call, by name, in the definition's order within each dict."""

    tensors: dict[str, torch.Tensor]
    """Contiguous, in the declared dtypes."""
    scalars: dict[str, Scalar]
    family: str
    workload: Workload
    """Whose axes the shapes come from."""


def torch_dtype(problem: Problem, name: str) -> torch.dtype:
    """The torch dtype of an input or output.

    Raises:
        MalformedProblem: the dtype cannot be held in a plain buffer (packed 4-bit floats).
    """
    specs = problem.definition.inputs | problem.definition.outputs
    dtype = specs[name].dtype.value
    if dtype not in TORCH_DTYPES:
        raise MalformedProblem(
            f"{problem.name}: {name!r} has dtype {dtype}, which this guard cannot judge yet; "
            f"it can judge {', '.join(TORCH_DTYPES)}"
        )
    return TORCH_DTYPES[dtype]
