"""Draws the inputs of a call: fresh, unpredictable, and repeatable from a secret seed."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping

import torch

from kernelarc.guard.errors import MalformedProblem
from kernelarc.guard.schema import DType, InputRule, Problem, Workload
from kernelarc.guard.worker.families import FAMILIES, Draw, shifts, takes_part, values
from kernelarc.guard.worker.input_set import InputSet, Scalar, torch_dtype
from kernelarc.guard.worker.neighbours import neighbour_shapes
from kernelarc.guard.worker.reference import InvalidReference, Reference

SEED_BYTES = 32
_PROBE_SEED = bytes(SEED_BYTES)
"""For finding out which families a problem can take: nothing secret depends on it."""

__all__ = ["FAMILIES", "InputSet", "draw", "families_for", "neighbour_shapes"]


def draw(
    problem: Problem,
    workload: Workload,
    *,
    family: str,
    seed: bytes,
    device: str = "cpu",
) -> InputSet:
    """Draw the inputs of one call.

    Args:
        problem: whose contract says how each input is drawn.
        workload: shapes and scalars.
        family: one of ``families_for(problem, workload)``.
        seed: 32 secret bytes. Equal seeds give equal values, bit for bit, on one device type.
        device: where the tensors are made.

    Raises:
        MalformedProblem: an input cannot be drawn as the problem says.
        InvalidReference: the problem's own input function failed.
    """
    if family not in FAMILIES:
        raise ValueError(f"unknown family {family!r}; there are {', '.join(FAMILIES)}")
    if len(seed) != SEED_BYTES:
        raise ValueError(f"a seed has {SEED_BYTES} bytes, not {len(seed)}")
    if workload.is_custom:
        return _draw_custom(problem, workload, family, seed, device)
    axes, shapes = problem.axes(workload), problem.input_shapes(workload)
    scalars = workload.scalars
    tensors = {}
    for name in problem.definition.inputs:
        if name in scalars:
            continue
        shape = shapes[name]
        if workload.inputs[name].type != "random" or shape is None:
            raise MalformedProblem(
                f"{problem.name}: input {name!r} of workload {workload.uuid} is "
                f"{workload.inputs[name].type!r}; this guard draws 'random' tensors, takes "
                f"'scalar' numbers and calls 'custom' functions. Values from safetensors files "
                f"never change, so that a candidate could know the answer: give the problem a "
                f"custom_inputs_entrypoint instead"
            )
        tensors[name] = values(
            Draw(
                rule=rule_for(problem, name),
                family=family,
                shape=shape,
                dtype=torch_dtype(problem, name),
                axes=axes,
                generator=_generator(seed, name, device),
            )
        )
    return InputSet(tensors, dict(scalars), family, workload)


def families_for(problem: Problem, workload: Workload, device: str = "cpu") -> list[str]:
    """The families in which a workload can be judged, in the order of ``FAMILIES``.

    Left out are those that would change no input, and those in which the reference has no finite
    result in the declared dtype (large values in float16). ``normal`` is always there: a
    reference that fails on it is an error, which ``Reference.expected`` reports.
    """
    if workload.is_custom or not _any_takes_part(problem):
        return ["normal"]
    reference = Reference(problem)
    shifted = any(shifts(rule_for(problem, name)) for name in problem.definition.inputs)
    wanted = [f for f in FAMILIES if f != "shifted" or shifted]
    return [
        f for f in wanted if f == "normal" or _is_judged(reference, problem, workload, f, device)
    ]


def rule_for(problem: Problem, name: str) -> InputRule:
    """The contract's rule for an input.

    For a problem whose contract has no rules it is guessed from name, shape and dtype. The guess
    follows SOL-ExecBench, but never makes an input that a solution could leave out:
    weights of a normalisation are around one, not one.
    """
    rules = problem.contract.inputs
    if rules:
        return rules.get(name, InputRule())
    spec = problem.definition.inputs[name]
    lowered = name.lower()
    if not spec.dtype.is_float or spec.shape is None:
        return InputRule()
    if spec.dtype in (DType.FLOAT8_E4M3FN, DType.FLOAT8_E5M2):
        return InputRule(families=False)
    if any(word in lowered for word in ("rstd", "invstd", "variance", "scale")):
        return InputRule(kind="positive")
    if ("norm" in lowered and "weight" in lowered) or lowered in ("gamma", "ln_w", "rms_w"):
        return InputRule(kind="norm_weight")
    named = lowered.startswith(("weight", "w_")) or lowered.endswith(("weight", "_w", "_proj"))
    if named and len(spec.shape) >= 2:
        return InputRule(kind="weight", fan_in=spec.shape[-1])
    return InputRule()


def _any_takes_part(problem: Problem) -> bool:
    return any(
        takes_part(rule_for(problem, name), torch_dtype(problem, name))
        for name, spec in problem.definition.inputs.items()
        if spec.shape is not None
    )


def _is_judged(
    reference: Reference, problem: Problem, workload: Workload, family: str, device: str
) -> bool:
    inputs = draw(problem, workload, family=family, seed=_PROBE_SEED, device=device)
    try:
        reference.expected(inputs)
    except InvalidReference:
        return False
    return True


def _generator(seed: bytes, name: str, device: str) -> torch.Generator:
    generator = torch.Generator(device=device)
    generator.manual_seed(_number(seed, name))
    return generator


def _number(seed: bytes, purpose: str) -> int:
    """A 63-bit number for one purpose; nothing of one tells another."""
    digest = hashlib.sha256(seed + purpose.encode()).digest()
    return int.from_bytes(digest[:8], "little") >> 1


def _draw_custom(
    problem: Problem, workload: Workload, family: str, seed: bytes, device: str
) -> InputSet:
    """Call the problem's own input function under a seeded, restored random state."""
    entry = problem.definition.custom_inputs_entrypoint
    if entry is None:
        raise MalformedProblem(
            f"{problem.name}: workload {workload.uuid} has custom inputs, but the definition has "
            f"no custom_inputs_entrypoint"
        )
    make = Reference(problem).function(entry)
    python_state = random.getstate()
    devices = [] if device == "cpu" else [torch.device(device)]
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(_number(seed, "torch"))
        random.seed(_number(seed, "python"))
        try:
            made = make(problem.axes(workload), torch.device(device))
        finally:
            random.setstate(python_state)
    return _checked(problem, workload, family, made)


def _checked(problem: Problem, workload: Workload, family: str, made: object) -> InputSet:
    """What an input function returned, with the declared names, shapes and dtypes."""
    names = list(problem.definition.inputs)
    entry = problem.definition.custom_inputs_entrypoint
    if not isinstance(made, Mapping) or set(made) != set(names):
        found = list(made) if isinstance(made, Mapping) else type(made).__name__
        raise MalformedProblem(f"{problem.name}: {entry}() returned {found}, not {names}")
    tensors: dict[str, torch.Tensor] = {}
    scalars: dict[str, Scalar] = {}
    for name, shape in problem.input_shapes(workload).items():
        value = made[name]
        if shape is None:
            scalars[name] = value.item() if isinstance(value, torch.Tensor) else value
            continue
        dtype = torch_dtype(problem, name)
        if not isinstance(value, torch.Tensor) or value.shape != shape or value.dtype != dtype:
            found = (
                f"{value.dtype} {tuple(value.shape)}"
                if isinstance(value, torch.Tensor)
                else type(value).__name__
            )
            raise MalformedProblem(
                f"{problem.name}: {entry}() made {name!r} as {found}, declared {dtype} {shape}"
            )
        tensors[name] = value.detach().contiguous()
    return InputSet(tensors, scalars, family, workload)
