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


def declaration(signature: str) -> str:
    """The ``extern "C"`` declaration alone: no include, comment or semicolon, on one line."""
    bare = re.sub(r"/\*.*?\*/|//[^\n]*|#[^\n]*", "", signature, flags=re.DOTALL)
    return " ".join(bare.split()).rstrip(";")


def argument_names(signature: str) -> list[str]:
    """The parameter names of a C++ signature, in order."""
    bare = declaration(signature)
    inside = bare[bare.index("(") + 1 : bare.rindex(")")]
    return [re.findall(r"\w+", part)[-1] for part in inside.split(",")]


def check_signature(kernel: Kernel, signature: str) -> None:
    """Refuse a problem whose arguments are not those the kernel was written for.

    Raises:
        RequestError: an argument that the kernel uses is missing, or a tensor is not float32.
    """
    if other := re.search(r"\b(double|uint16_t|uint8_t)\s*\*", declaration(signature)):
        raise RequestError(
            f"the built-in kernels compute on float32 tensors, and this problem has {other[1]}. "
            "Give it to an agent of another kind."
        )
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

    def workshare(collapse: int = 1, schedule: str = "") -> str:
        """The pragma of a parallel loop; ``schedule`` replaces the searched one."""
        if point["threads"] == "one":
            return ""
        if not schedule:
            static = point["schedule"] == "static"
            schedule = "static" if static else f"{point['schedule']}, {point['chunk']}"
        loops = f" collapse({collapse})" if collapse > 1 else ""
        return f"#pragma omp parallel for{loops} schedule({schedule})"

    def dispatch(core: str, arguments: Sequence[str], axes: Sequence[str]) -> str:
        """Calls of ``core``, first for the ranked lengths of ``axes`` where the point says so."""
        general = f"    {core}({', '.join([*arguments, *axes])});"
        if point["dispatch"] != "shapes":
            return general
        wanted = sorted({tuple(shape[axis] for axis in axes) for shape in shapes})
        special = []
        for values in wanted:
            equal = " && ".join(f"{a} == {v}" for a, v in zip(axes, values, strict=True))
            known = ", ".join([*arguments, *(f"Axis<{v}>{{}}" for v in values)])
            special.append(f"    if ({equal}) return {core}({known});")
        return "\n".join([*special, general])

    template = _templates().get_template(f"{kernel.template}.cpp.j2")
    text = template.render(
        p=_with_defaults(point),
        signature=declaration(signature),
        workshare=workshare,
        dispatch=dispatch,
        **kernel.options,
        **kernel.roles,
    )
    return re.sub(r"\n{3,}", "\n\n", text).lstrip()


def _with_defaults(point: Point) -> Mapping[str, object]:
    """The prelude asks for parameters that not every kernel has."""
    return {"exp": "", "fuse": "", "stores": "normal", "width": 8, **point}
