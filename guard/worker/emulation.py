"""What a candidate in a forbidden, lower precision would give.

Two kinds, since a problem's tolerance must refuse both: all float inputs rounded to the lower
type and the rest in the declared types, as a kernel that loads narrow copies; and only the
operands of matrix products rounded, as the tensor cores of a GPU do with ``tfloat32``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from kernelarc.guard.worker.input_set import InputSet
from kernelarc.guard.worker.reference import Reference

TFLOAT32_BITS = 10
"""Stored significand bits of tfloat32. Source: NVIDIA, PTX ISA, "Alternate floating-point data
formats": 8 bits of exponent and 10 of significand, rounded to nearest."""
_FLOAT32_BITS = 23

_PRODUCTS: frozenset[Callable[..., Any]] = frozenset(
    (
        torch.matmul, torch.mm, torch.bmm, torch.addmm, torch.baddbmm, torch.einsum, torch.mv,
        torch.addbmm, torch.tensordot, torch.inner,
        torch.Tensor.matmul, torch.Tensor.__matmul__, torch.Tensor.__rmatmul__, torch.Tensor.mm,
        torch.Tensor.bmm, torch.Tensor.addmm, torch.Tensor.baddbmm, torch.Tensor.mv,
        F.linear, F.conv1d, F.conv2d, F.conv3d, F.scaled_dot_product_attention,
    )
)  # fmt: skip


def rounded(tensor: torch.Tensor, precision: str) -> torch.Tensor:
    """A float tensor rounded to a lower precision, in its own dtype.

    Args:
        tensor: any dtype; integers and types that are no wider come back unchanged.
        precision: ``tfloat32`` or the name of a torch float type.
    """
    if not tensor.is_floating_point():
        return tensor
    if precision == "tfloat32":
        return _to_tfloat32(tensor.float()).to(tensor.dtype)
    dtype: torch.dtype = getattr(torch, precision)
    limit = torch.finfo(dtype).max
    return tensor.clamp(-limit, limit).to(dtype).to(tensor.dtype)


def _to_tfloat32(tensor: torch.Tensor) -> torch.Tensor:
    """Round float32 to 10 stored significand bits, ties to even, by integer arithmetic."""
    drop = _FLOAT32_BITS - TFLOAT32_BITS
    bits = tensor.contiguous().view(torch.int32)
    even = (bits >> drop) & 1
    return ((bits + ((1 << (drop - 1)) - 1) + even) & -(1 << drop)).view(torch.float32)


def with_rounded_inputs(
    reference: Reference, inputs: InputSet, precision: str
) -> dict[str, torch.Tensor]:
    """Outputs, in their declared dtypes, when all float inputs were rounded first.

    Raises:
        InvalidReference: as ``Reference.as_declared``.
    """
    tensors = {name: rounded(tensor, precision) for name, tensor in inputs.tensors.items()}
    return reference.as_declared(replace(inputs, tensors=tensors))


def with_rounded_products(
    reference: Reference, inputs: InputSet, precision: str
) -> dict[str, torch.Tensor] | None:
    """Outputs, in their declared dtypes, when the operands of each matrix product are rounded.

    Returns:
        ``None`` if the reference computes no matrix product or convolution.

    Raises:
        InvalidReference: as ``Reference.as_declared``.
    """
    with _RoundedProducts(precision) as mode:
        outputs = reference.as_declared(inputs)
    return outputs if mode.products else None


class _RoundedProducts(TorchFunctionMode):
    """Rounds the tensor operands of matrix products and convolutions; counts them."""

    def __init__(self, precision: str) -> None:
        super().__init__()
        self._precision = precision
        self.products = 0

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,  # noqa: ANN401
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        """Call ``func``, on rounded operands if it is a product."""
        if func not in _PRODUCTS:
            return func(*args, **(kwargs or {}))
        self.products += 1
        return func(*(self._round(value) for value in args), **(kwargs or {}))

    def _round(self, value: Any) -> Any:  # noqa: ANN401
        return rounded(value, self._precision) if isinstance(value, torch.Tensor) else value
