"""Hidden shapes: near the ranked ones, never timed, to catch kernels that fit those only."""

from __future__ import annotations

import hashlib
import math
import random

from kernelarc.guard.schema import Problem, ShapeRule, Workload

MAX_ELEMENTS = 1 << 20
"""Inputs and outputs of a hidden shape together, so that its float64 reference stays cheap."""
_ATTEMPTS_PER_SHAPE = 64


def neighbour_shapes(
    problem: Problem, workload: Workload, *, seed: bytes, count: int
) -> list[dict[str, int]]:
    """Draw axis values near a workload's that no workload of the problem has.

    Each axis with a shape rule gets one of: its own size, one more, one less, an odd or a prime
    size near it or near half of it, the smallest size or one more; always allowed by the rule.
    Axes without a rule keep their size.

    Args:
        problem: whose contract says which axes may vary.
        workload: the ranked workload to start from.
        seed: secret bytes; equal seeds give equal shapes.
        count: how many are wanted.

    Returns:
        At most ``count`` different assignments of the ``var`` axes. Fewer, or none, if the rules
        leave no other shape with at most ``MAX_ELEMENTS`` elements.
    """
    rules = {name: rule for name, rule in problem.contract.shapes.items() if name in workload.axes}
    if not rules or workload.is_custom:
        return []
    chance = random.Random(hashlib.sha256(seed + b"neighbours").digest())  # noqa: S311
    options = {name: candidates(workload.axes[name], rule) for name, rule in rules.items()}
    ranked = [w.axes for w in problem.workloads]
    found: list[dict[str, int]] = []
    for _ in range(_ATTEMPTS_PER_SHAPE * count):
        if len(found) == count:
            break
        axes = workload.axes | {name: chance.choice(sizes) for name, sizes in options.items()}
        if axes not in ranked and axes not in found and _fits(problem, workload, axes):
            found.append(axes)
    return found


def at_shape(workload: Workload, axes: dict[str, int]) -> Workload:
    """The workload at other axis values."""
    return workload.model_copy(update={"axes": axes})


def elements(problem: Problem, workload: Workload) -> int:
    """Elements of all inputs and outputs of a workload."""
    shapes = [*problem.input_shapes(workload).values(), *problem.output_shapes(workload).values()]
    return sum(math.prod(shape) for shape in shapes if shape is not None)


def candidates(size: int, rule: ShapeRule) -> list[int]:
    """The sizes that an axis may take, ascending; at least one."""
    step = rule.multiple_of
    low, high = math.ceil(rule.low / step), rule.high // step
    near = min(max(size // step, low), high)
    wanted = {near, near - 1, near + 1, low, low + 1}
    for start in (near, near // 2, low):
        wanted |= {start | 1, _prime_from(start)}
    return sorted(step * n for n in wanted if low <= n <= high)


def _prime_from(start: int) -> int:
    """The smallest prime that is at least ``start``."""
    n = max(2, start)
    while any(n % d == 0 for d in range(2, math.isqrt(n) + 1)):
        n += 1
    return n


def _fits(problem: Problem, workload: Workload, axes: dict[str, int]) -> bool:
    """Whether the sizes go together (expression axes may not come out integral) and are cheap."""
    try:
        return elements(problem, at_shape(workload, axes)) <= MAX_ELEMENTS
    except ValueError:
        return False
