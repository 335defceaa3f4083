"""Triton on the CPU: its interpreter, for verification only.

The interpreter stores bfloat16 as raw 16-bit integers and computes on those bits, so arithmetic
on bfloat16 is silently wrong (seen in Triton 3.6 to 3.9: ``x * x`` is off by 1e37). A right kernel
would be rejected for it. Arithmetic on bfloat16 is therefore refused with the reason; loads,
stores and casts are right and allowed. This module runs in the untrusted runner: it exists so that
honest authors get a clear message, not to stop anyone.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

# Without a quotation mark: Triton wraps the error by its repr, and the runner looks for this text.
REASON = (
    "bfloat16 arithmetic is refused on the CPU device: the interpreter of Triton computes on the "
    "raw bits and gives wrong numbers. Convert with .to(tl.float32) right after the load and "
    "compute in float32; loads, stores and casts of bfloat16 work."
)

_ARITHMETIC = (
    "create_fadd", "create_fsub", "create_fmul", "create_fdiv", "create_frem", "create_fma",
    "create_dot", "create_maximumf", "create_minimumf", "create_maxnumf", "create_minnumf",
    "create_clampf", "create_fabs", "create_exp", "create_exp2", "create_log", "create_log2",
    "create_sqrt", "create_rsqrt", "create_sin", "create_cos", "create_floor", "create_ceil",
    "create_fcmpOLT", "create_fcmpOGT", "create_fcmpOLE", "create_fcmpOGE", "create_fcmpOEQ",
    "create_fcmpONE", "create_fcmpULT", "create_fcmpUGT", "create_fcmpULE", "create_fcmpUGE",
    "create_fcmpUEQ", "create_fcmpUNE", "create_atomic_rmw",
)  # fmt: skip


class InterpreterUnsupported(RuntimeError):
    """The interpreter cannot do this right."""


def prepare_interpreter() -> None:
    """Switch Triton to its interpreter and refuse bfloat16 arithmetic there.

    Must be called before the candidate imports triton, which reads its environment when it is
    imported; this module itself is imported by the zygote, because the sandbox hides it.
    """
    os.environ["TRITON_INTERPRET"] = "1"
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver, interpreter

    builder = interpreter.InterpreterBuilder
    for name in _ARITHMETIC:
        original = getattr(builder, name, None)
        if original is not None:
            setattr(builder, name, _refusing(original, tl.bfloat16))
    for reduction in ("ReduceOps", "ScanOps"):
        kind = getattr(interpreter, reduction, None)
        if kind is not None:
            kind.apply = _refusing(kind.apply, tl.bfloat16)
    driver.set_active(_HostDriver(GPUTarget("cuda", 90, 32)))


class _HostDriver:
    """Just enough of a driver for ``triton.autotune`` to pick a configuration."""

    def __init__(self, target: object) -> None:
        self._target = target

    def get_benchmarker(self) -> Callable[..., Any]:
        """Autotune gets constant times: it takes the first configuration, nothing is timed here."""

        def benchmark(
            function: Callable[[], None], quantiles: object = None, **_: object
        ) -> object:
            function()
            return [1.0, 1.0, 1.0] if quantiles else 1.0

        return benchmark

    def get_current_target(self) -> object:
        """The target that kernels are specialised for."""
        return self._target


def _refusing(original: Callable[..., Any], bfloat16: object) -> Callable[..., Any]:
    def checked(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401
        if any(_is_bfloat16(a, bfloat16) for a in arguments):
            raise InterpreterUnsupported(REASON)
        return original(*arguments, **options)

    return checked


def _is_bfloat16(value: object, bfloat16: object) -> bool:
    if isinstance(value, (tuple, list)):
        return any(_is_bfloat16(v, bfloat16) for v in value)
    dtype = getattr(value, "dtype", None)
    scalar = getattr(dtype, "scalar", dtype)
    return scalar is not None and scalar == bfloat16
