"""A problem's contract in words: what a candidate must accept, return and respect."""

from __future__ import annotations

from kernelarc.guard.schema import AxisConst, AxisExpr, OutputTolerance, Problem, TensorSpec


def axes(problem: Problem) -> dict[str, str]:
    """Each axis with its size or where the size comes from."""
    words = {}
    for name, axis in problem.definition.axes.items():
        if isinstance(axis, AxisConst):
            words[name] = str(axis.value)
        elif isinstance(axis, AxisExpr):
            words[name] = f"= {axis.expression}"
        else:
            words[name] = "given by the workload"
        if axis.description:
            words[name] += f" ({axis.description})"
    return words


def tensors(specs: dict[str, TensorSpec]) -> dict[str, str]:
    """Each tensor as ``float32[M, K]``, with its description; a scalar by its type alone."""
    words = {}
    for name, spec in specs.items():
        shape = "" if spec.shape is None else f"[{', '.join(spec.shape)}]"
        note = f": {spec.description}" if spec.description else ""
        words[name] = f"{spec.dtype}{shape}{note}"
    return words


def tolerances(problem: Problem, device: str) -> dict[str, str]:
    """By output: when an element counts as right."""
    workload = (problem.ranked(device) or problem.workloads)[0]
    return {name: _tolerance(problem.tolerance(workload, name)) for name in _outputs(problem)}


def precision(problem: Problem) -> str:
    """Which arithmetic is demanded, in one sentence."""
    rule = problem.contract.precision
    words = f"The reference is evaluated in float64; accumulate in at least {rule.compute}."
    if rule.forbidden:
        words += f" Arithmetic in {', '.join(rule.forbidden)} fails the tolerance."
    return words


def _outputs(problem: Problem) -> list[str]:
    return list(problem.definition.outputs)


def _tolerance(rule: OutputTolerance) -> str:
    terms = []
    if rule.atol:
        terms.append(f"{rule.atol:g}")
    if rule.atol_rms:
        terms.append(f"{rule.atol_rms:g} rms(expected)")
    if rule.rtol:
        terms.append(f"{rule.rtol:g} |expected|")
    words = f"|error| <= {' + '.join(terms)}" if terms else "exactly equal"
    if rule.matched_ratio < 1:
        words += f" for {rule.matched_ratio:.2%} of the elements"
        if rule.block_rows:
            words += f" in each block of {rule.block_rows} leading rows"
    return words
