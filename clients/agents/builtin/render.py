"""Points to C++: fills a kernel's template for one problem's signature and ranked shapes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

import jinja2

from kernelarc.clients.agents.builtin.kernels import Kernel
from kernelarc.clients.agents.builtin.space import Point
from kernelarc.guard.errors import RequestError

Shapes = Sequence[Mapping[str, int]]
"""Axis values of each ranked workload."""


@cache
def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("kernelarc.clients.agents.builtin"),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 -- the output is C++, not HTML
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def argument_names(signature: str) -> list[str]:
    """The parameter names of a C++ signature, in order."""
    inside = signature[signature.index("(") + 1 : signature.rindex(")")]
    return [re.findall(r"\w+", part)[-1] for part in inside.split(",") if part.strip()]


def check_signature(kernel: Kernel, signature: str) -> None:
    """Refuse a problem whose arguments are not those the kernel was written for.

    Raises:
        RequestError: an argument that the kernel uses is missing.
    """
    known = set(argument_names(signature))
    used = {name for role in kernel.roles.values() for name in re.findall(r"[A-Za-z_]\w*", role)}
    if missing := sorted(used - known - {"nullptr"}):
        raise RequestError(
            f"the built-in kernel {kernel.template!r} needs the arguments {', '.join(missing)}, "
            f"which this problem does not have (it has {', '.join(sorted(known))}). "
            "Give this problem to an agent of another kind."
        )


def render(kernel: Kernel, point: Point, signature: str, shapes: Shapes = ()) -> str:
    """The source of one point.

    Args:
        kernel: Template, parameter space and argument names of the problem.
        point: A complete point of the kernel's space.
        signature: The problem's ``extern "C" void run(...)``, without a body.
        shapes: Ranked axis values; used where the point specialises on them.

    Returns:
        One translation unit that implements the signature for any axis values.
    """

    def workshare(collapse: int = 1) -> str:
        if point["threads"] == "one":
            return ""
        chunk = "" if point["schedule"] == "static" else f", {point['chunk']}"
        loops = f" collapse({collapse})" if collapse > 1 else ""
        return f"#pragma omp parallel for{loops} schedule({point['schedule']}{chunk})"

    def dispatch(core: str, arguments: Sequence[str], axes: Sequence[str]) -> str:
        general = f"    {core}({', '.join([*arguments, *axes])});"
        if point["dispatch"] != "shapes":
            return general
        wanted = sorted({tuple(shape[axis] for axis in axes) for shape in shapes})
        special = [
            f"    if ({' && '.join(f'{a} == {v}' for a, v in zip(axes, values, strict=True))})\n"
            f"        return {core}({', '.join([*arguments, *(f'Axis<{v}>{{}}' for v in values)])});"
            for values in wanted
        ]
        return "\n".join([*special, general])

    template = _templates().get_template(f"{kernel.template}.cpp.j2")
    text = template.render(
        p=_with_defaults(point),
        signature=signature.strip().rstrip(";"),
        workshare=workshare,
        dispatch=dispatch,
        **kernel.options,
        **kernel.roles,
    )
    return re.sub(r"\n{3,}", "\n\n", text).lstrip()


def _with_defaults(point: Point) -> Mapping[str, object]:
    """The prelude asks for parameters that not every kernel has."""
    return {"exp": "", "fuse": "", "stores": "normal", "width": 8, **point}
