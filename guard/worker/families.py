"""How the values of one input are drawn.

Families of inputs, since each kind of wrong kernel survives some of them:

=============  ====================================================================================
normal         random mean and scale in every call, so that the expected value is no answer
large          magnitudes of 2 to 8 times the usual: overflow in narrow types
shifted        whole rows far up or down, where the contract says that only differences count:
               exponentials without a subtracted maximum
small          magnitudes of 1e-3: a left-out epsilon, or zeros under an absolute tolerance
cancelling     sums whose terms cancel: narrow accumulators lose what is left
structured     half of the rows one-hot, repeated, constant or half zero: kernels that exploit
               or assume a distribution
integers       small integers times a power of two: products and sums are exact in any order
=============  ====================================================================================

Which inputs take part is up to the contract: bounded kinds (``uniform``, ``integers``) and inputs
with ``families=False`` are drawn by their rule in every family.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

from kernelarc.guard.errors import MalformedProblem
from kernelarc.guard.schema import InputRule
from kernelarc.guard.schema.expressions import evaluate, evaluate_integer

FAMILIES: tuple[str, ...] = (
    "normal",
    "large",
    "shifted",
    "small",
    "cancelling",
    "structured",
    "integers",
)

MEAN_SPREAD = 0.25
"""``normal``: the mean lies within so many standard deviations of the rule's: enough to make the
expected value useless, too little for it to dominate long sums."""
SCALE_OCTAVES = 1.0
"""``normal``: the scale is the rule's times 2^u with u up to this in either direction."""
LARGE_OCTAVES = (1.0, 3.0)
"""``large``: a factor of 2 to 8 for each input, so up to 64 for a product of two. More would make
the exponentials of an attention so ill-conditioned that honest float32 could not follow."""
SMALL_OCTAVES = (-11.0, -8.0)
RESIDUE = 0.5
"""``cancelling``: what is left of two terms that cancel, relative to one of them. Errors count
two to three times as much as in ``normal``; measured for matrix products of 384 to 4096 terms, so
that even one float32 accumulator per element stays inside a tolerance that bfloat16 misses by far.
"""
_SHAPED = ("normal", "weight")


@dataclass(frozen=True)
class Draw:
    """All that the values of one input depend on."""

    rule: InputRule
    family: str
    shape: tuple[int, ...]
    dtype: torch.dtype
    axes: Mapping[str, int]
    generator: torch.Generator

    @property
    def varies(self) -> bool:
        """Whether the family changes this input."""
        return takes_part(self.rule, self.dtype)

    def uniform(self, low: float, high: float) -> float:
        """A random number from the generator."""
        return low + (high - low) * float(
            torch.rand((), generator=self.generator, device=self.generator.device)
        )

    def normals(self, *shape: int, mean: float = 0.0, scale: float = 1.0) -> torch.Tensor:
        """Normal numbers in the working precision."""
        kind = torch.float64 if self.dtype is torch.float64 else torch.float32
        values = torch.empty(shape or self.shape, dtype=kind, device=self.generator.device)
        return values.normal_(mean, scale, generator=self.generator)

    def integers(self, low: int, high: int) -> torch.Tensor:
        """Integers in [low, high) as working-precision floats."""
        kind = torch.float64 if self.dtype is torch.float64 else torch.float32
        values = torch.empty(self.shape, dtype=kind, device=self.generator.device)
        return values.random_(low, high, generator=self.generator)


def takes_part(rule: InputRule, dtype: torch.dtype) -> bool:
    """Whether the families change an input of that rule and dtype."""
    return rule.families and rule.kind not in ("uniform", "integers") and dtype.is_floating_point


def shifts(rule: InputRule) -> bool:
    """Whether an input of that rule is another one in the family ``shifted``."""
    return rule.families and bool(rule.row_shift or rule.row_end)


def values(draw: Draw) -> torch.Tensor:
    """The values of one input.

    Returns:
        A contiguous tensor of the declared shape and dtype, on the generator's device.

    Raises:
        MalformedProblem: the rule does not suit the dtype or shape.
    """
    if draw.rule.kind == "integers":
        return _bounded_integers(draw)
    if not draw.dtype.is_floating_point:
        return _plain_integers(draw)
    if draw.rule.kind == "uniform":
        return _uniform(draw).to(draw.dtype)
    scale, mean = _scale_and_mean(draw)
    if draw.varies and draw.family == "integers":
        drawn = _small_integers(draw, scale)
    else:
        drawn = _BASES[draw.rule.kind](draw, scale, mean)
        if draw.varies and draw.rule.kind in _SHAPED:
            drawn = _shaped(draw, drawn, scale)
    # The 8-bit floats have no infinity: what is out of range would become NaN.
    limit = torch.finfo(draw.dtype).max
    if limit < torch.finfo(torch.float16).max or draw.dtype is torch.float16:
        drawn.clamp_(-limit, limit)
    return drawn.to(draw.dtype)


def _scale_and_mean(draw: Draw) -> tuple[float, float]:
    rule = draw.rule
    scale, mean = rule.scale, rule.mean
    if rule.kind == "weight":
        assert rule.fan_in is not None
        scale /= math.sqrt(max(1.0, float(evaluate(rule.fan_in, draw.axes))))
    if not draw.varies or rule.kind == "norm_weight":
        return scale, mean
    low, high = {
        "normal": (-SCALE_OCTAVES, SCALE_OCTAVES),
        "large": LARGE_OCTAVES if rule.kind != "weight" else (0.0, 0.0),
        "small": SMALL_OCTAVES if rule.kind != "weight" else (0.0, 0.0),
    }.get(draw.family, (0.0, 0.0))
    scale *= 2.0 ** draw.uniform(low, high)
    if draw.family == "normal" and rule.kind == "normal":
        mean += scale * draw.uniform(-MEAN_SPREAD, MEAN_SPREAD)
    return scale, mean


def _normal(draw: Draw, scale: float, mean: float) -> torch.Tensor:
    return draw.normals(mean=mean, scale=scale)


def _around_one(draw: Draw, scale: float, mean: float) -> torch.Tensor:
    return draw.normals(mean=scale + mean, scale=0.1 * scale)


def _positive(draw: Draw, scale: float, mean: float) -> torch.Tensor:
    return draw.normals(scale=scale).abs_().add_(0.1 * scale + mean)


_BASES: dict[str, Callable[[Draw, float, float], torch.Tensor]] = {
    "normal": _normal,
    "weight": _normal,
    "norm_weight": _around_one,
    "positive": _positive,
}


def _uniform(draw: Draw) -> torch.Tensor:
    assert draw.rule.low is not None
    assert draw.rule.high is not None
    low, high = (float(evaluate(e, draw.axes)) for e in (draw.rule.low, draw.rule.high))
    return draw.normals(0).new_empty(draw.shape).uniform_(low, high, generator=draw.generator)


def _bounded_integers(draw: Draw) -> torch.Tensor:
    rule = draw.rule
    assert rule.low is not None
    assert rule.high is not None
    low, high = (evaluate_integer(e, draw.axes) for e in (rule.low, rule.high))
    count = math.prod(draw.shape)
    if high <= low or (rule.distinct and high - low < count):
        raise MalformedProblem(
            f"an input of {count} {'distinct ' if rule.distinct else ''}integers cannot be drawn "
            f"from [{rule.low}, {rule.high}) = [{low}, {high})"
        )
    device = draw.generator.device
    if rule.distinct:
        order = torch.randperm(high - low, generator=draw.generator, device=device)
        return (order[:count] + low).reshape(draw.shape).to(draw.dtype)
    drawn = torch.randint(low, high, draw.shape, generator=draw.generator, device=device)
    return drawn.to(draw.dtype)


def _plain_integers(draw: Draw) -> torch.Tensor:
    """Integers without a rule, in SOL-ExecBench's ranges; bools are fair coins."""
    low, high = -1024, 1024
    if draw.dtype is torch.bool:
        low, high = 0, 2
    elif draw.dtype is torch.int8:
        low, high = -128, 128
    device = draw.generator.device
    drawn = torch.randint(low, high, draw.shape, generator=draw.generator, device=device)
    return drawn.to(draw.dtype)


_INTEGER_RANGES = {
    "normal": (-3, 5),
    "weight": (-2, 3),
    "norm_weight": (1, 3),
    "positive": (1, 9),
}


def _small_integers(draw: Draw, scale: float) -> torch.Tensor:
    """Integers times the power of two next to the scale: exact, and of the usual magnitude."""
    step = 2.0 ** round(math.log2(scale)) if scale > 0 else 1.0
    offset = round(draw.rule.mean / step) * step
    return draw.integers(*_INTEGER_RANGES[draw.rule.kind]).mul_(step).add_(offset)


def _shaped(draw: Draw, drawn: torch.Tensor, scale: float) -> torch.Tensor:
    if draw.family == "cancelling":
        return _cancelling(draw, drawn)
    if draw.family == "shifted" and drawn.dim():
        return _shifted(draw, drawn)
    if draw.family == "structured" and drawn.dim() and drawn.shape[-1] > 1:
        return _structured(draw, drawn, scale)
    return drawn


def _cancelling(draw: Draw, drawn: torch.Tensor) -> torch.Tensor:
    """Make the second half of the summed axis (nearly) repeat the first.

    Inputs repeat with the opposite sign along their last axis, weights with the same sign along
    the axis of the fan-in: so the halves of a plain sum cancel, and those of a product too.
    """
    weight = draw.rule.kind == "weight"
    axis = _fan_in_axis(draw) if weight else len(draw.shape) - 1
    half = draw.shape[axis] // 2 if draw.shape else 0
    if half == 0:
        return drawn
    first, second = drawn.narrow(axis, 0, half), drawn.narrow(axis, half, half)
    second.mul_(RESIDUE).add_(first, alpha=1.0 if weight else -1.0)
    return drawn


def _fan_in_axis(draw: Draw) -> int:
    assert draw.rule.fan_in is not None
    fan_in = evaluate(draw.rule.fan_in, draw.axes)
    matching = [axis for axis, size in enumerate(draw.shape) if size == fan_in]
    return matching[-1] if matching else len(draw.shape) - 1


def _shifted(draw: Draw, drawn: torch.Tensor) -> torch.Tensor:
    """Move every row up or down, by coin, as the rule says."""
    rule = draw.rule
    rows = drawn.view(-1, drawn.shape[-1])
    coins = torch.empty(rows.shape[0], 1, dtype=drawn.dtype, device=drawn.device)
    signs = coins.random_(0, 2, generator=draw.generator).mul_(2).sub_(1)
    if rule.row_shift:
        rows.add_(signs, alpha=rule.row_shift)
    if rule.row_end:
        # Multiples of 1/8, and the large one last: most sums are exact then. Else its size would
        # cost the small ones the digits that an honest float32 is judged by.
        rows.mul_(8).round_().div_(8)
        rows[:, -1:] = signs * rule.row_end
    return drawn


def _structured(draw: Draw, drawn: torch.Tensor, scale: float) -> torch.Tensor:
    """Give every other row a structure; the rest stays, so that the output's scale does too."""
    width = drawn.shape[-1]
    rows = drawn.view(-1, width)[::2]
    pattern = int(draw.uniform(0, 4))
    if pattern == 0:
        hot = torch.randint(
            0, width, (rows.shape[0], 1), generator=draw.generator, device=drawn.device
        )
        rows.zero_().scatter_(1, hot, 2 * scale)
    elif pattern == 1:
        rows.copy_(rows[:1].clone().expand_as(rows))
    elif pattern == 2:
        rows.copy_(rows[:, :1].clone().expand_as(rows))
    else:
        rows[:, width // 2 :] = 0
    return drawn
