"""The right answer: a problem's reference, evaluated in the judge.

Problem authors are trusted; their ``run`` is executed here. Nothing of a candidate is.

The expected result is computed in float64: float inputs are cast to it (which is exact), and
casts of the reference to float32, float16 or bfloat16 become casts to float64, so that a
reference written for one precision is evaluated exactly all the same. Casts to 8-bit floats stay:
there the rounding is part of what is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import ModuleType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from kernelarc.guard.schema import Mutant, Problem
from kernelarc.guard.worker.input_set import InputSet, torch_dtype

_NARROW = (torch.float32, torch.float16, torch.bfloat16)
_AUTHOR_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)
"""What a mistake in a reference raises; torch's own errors are RuntimeErrors."""
_NARROWING_CALLS = (torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16)


class InvalidReference(ValueError):
    """The reference does not give what its definition promises; ``INVALID_REFERENCE``."""


class Reference:
    """A problem's reference, compiled once into a private namespace.

    Raises:
        InvalidReference: the source does not run.
    """

    def __init__(self, problem: Problem, source: str | None = None) -> None:
        self._problem = problem
        self._module = _load(problem.name, source or problem.definition.reference)
        # A -inf is a legitimate result (log-sum-exp of an empty row) where a workload says so.
        self._allows_negative_inf = any(w.tolerance.allow_negative_inf for w in problem.workloads)

    def expected(self, inputs: InputSet) -> dict[str, torch.Tensor]:
        """The right outputs, in the definition's order.

        Returns:
            Floats in float64, integers and bools in their declared dtype; contiguous, sharing no
            memory with the inputs.

        Raises:
            InvalidReference: it raised, or its outputs do not have the declared number, shapes or
                kinds, hold NaN or infinities, or do not fit in the declared dtype.
        """
        tensors = {
            name: tensor.to(torch.float64, copy=True)
            if tensor.dtype in (*_NARROW, torch.float64)
            else tensor.clone()
            for name, tensor in inputs.tensors.items()
        }
        with _float64_default(), _Widened():
            values = self._run(tensors, inputs)
        outputs = {}
        for name, value in values.items():
            self._check_shape(name, value, inputs)
            outputs[name] = self._widest(name, value)
        return outputs

    def as_declared(self, inputs: InputSet) -> dict[str, torch.Tensor]:
        """What the reference gives as a solution: evaluated in the declared dtypes.

        Raises:
            InvalidReference: it raised, or an output has another shape or dtype than declared.
        """
        tensors = {name: tensor.clone() for name, tensor in inputs.tensors.items()}
        values = self._run(tensors, inputs)
        for name, value in values.items():
            self._check_shape(name, value, inputs)
            declared = torch_dtype(self._problem, name)
            if value.dtype is not declared:
                raise self._invalid(f"output {name!r} has dtype {value.dtype}, not {declared}")
        return {name: value.contiguous() for name, value in values.items()}

    def mutant(self, mutant: Mutant) -> Reference:
        """The reference with a mutant's text substitutions.

        Raises:
            InvalidReference: a text to replace does not occur exactly once, or the result does
                not load.
        """
        try:
            source = mutant.apply(self._problem.definition.reference)
        except ValueError as error:
            raise self._invalid(str(error)) from None
        return Reference(self._problem, source)

    def function(self, name: str) -> Callable[..., Any]:
        """A top-level function of the reference, such as the custom input maker.

        Raises:
            InvalidReference: there is none of that name.
        """
        found = getattr(self._module, name, None)
        if not callable(found):
            raise self._invalid(f"it has no function {name!r}")
        return found  # type: ignore[no-any-return]

    def _run(self, tensors: dict[str, torch.Tensor], inputs: InputSet) -> dict[str, torch.Tensor]:
        given = tensors | inputs.scalars
        arguments = [given[name] for name in self._problem.definition.inputs]
        try:
            result = self.function("run")(*arguments)
        except _AUTHOR_ERRORS as error:
            raise self._invalid(f"run() raised {type(error).__name__}: {error}") from error
        return self._named(result)

    def _named(self, result: object) -> dict[str, torch.Tensor]:
        """The outputs by name; ``run`` may return a tensor, a sequence, a dict or a number."""
        names = list(self._problem.definition.outputs)
        if isinstance(result, dict):
            if set(result) != set(names):
                raise self._invalid(f"run() returned {list(result)}, the outputs are {names}")
            values = [result[name] for name in names]
        else:
            values = list(result) if isinstance(result, tuple | list) else [result]
        if len(values) != len(names):
            raise self._invalid(f"run() returned {len(values)} values, the outputs are {names}")
        return {name: torch.as_tensor(v).detach() for name, v in zip(names, values, strict=True)}

    def _check_shape(self, name: str, value: torch.Tensor, inputs: InputSet) -> None:
        declared = self._problem.output_shapes(inputs.workload)[name]
        if tuple(value.shape) != declared:
            raise self._invalid(f"output {name!r} has shape {tuple(value.shape)}, not {declared}")

    def _widest(self, name: str, value: torch.Tensor) -> torch.Tensor:
        """Checked and in the form in which outputs are compared."""
        declared = torch_dtype(self._problem, name)
        if value.is_floating_point() != declared.is_floating_point:
            raise self._invalid(f"output {name!r} is {value.dtype}, declared {declared}")
        if not declared.is_floating_point:
            exact = value.to(declared)
            if not torch.equal(exact.to(value.dtype), value):
                raise self._invalid(f"output {name!r} does not fit in {declared}")
            return exact.contiguous()
        wide = value.to(torch.float64).contiguous()
        self._check_finite(name, wide, declared)
        return wide

    def _check_finite(self, name: str, value: torch.Tensor, declared: torch.dtype) -> None:
        if self._allows_negative_inf:
            value = value[value != -torch.inf]
        if value.numel() == 0:
            return
        low, high = (float(v) for v in value.aminmax())
        limit = torch.finfo(declared).max
        # False for NaN as well.
        if not (low >= -limit and high <= limit):
            raise self._invalid(
                f"output {name!r} holds {low:.4g} to {high:.4g}; {declared} ends at {limit:.4g}, "
                f"and NaN and infinities are not accepted"
            )

    def _invalid(self, reason: str) -> InvalidReference:
        return InvalidReference(f"reference of {self._problem.name!r}: {reason}")


@lru_cache(maxsize=64)
def _load(name: str, source: str) -> ModuleType:
    module = ModuleType(f"reference_{name}")
    try:
        # The author of a problem is trusted with the judge, like a plug-in.
        exec(compile(source, f"<reference of {name}>", "exec"), module.__dict__)  # noqa: S102
    except _AUTHOR_ERRORS as error:
        reason = f"{type(error).__name__}: {error}"
        raise InvalidReference(f"reference of {name!r} does not load: {reason}") from error
    return module


@contextmanager
def _float64_default() -> Iterator[None]:
    """Tensors made from Python floats are float64 meanwhile."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


class _Widened(TorchFunctionMode):
    """Turns every request for a narrower float type, in a cast or a factory, into float64."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,  # noqa: ANN401
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        """Call ``func`` with its dtypes widened."""
        if func in _NARROWING_CALLS:
            func = torch.Tensor.double
        wide = {name: _widen(value) for name, value in (kwargs or {}).items()}
        return func(*(_widen(value) for value in args), **wide)


def _widen(value: Any) -> Any:  # noqa: ANN401
    return torch.float64 if isinstance(value, torch.dtype) and value in _NARROW else value
