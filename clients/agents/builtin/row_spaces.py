"""Spaces of the templates that work row by row, and how each strategy enters them."""

from __future__ import annotations

from kernelarc.clients.agents.builtin.domains import (
    ALL,
    DISPATCH,
    EXP,
    MATH,
    MATH_WITH_EXP,
    STORES,
    STYLE,
    THREADS,
    Part,
)
from kernelarc.clients.agents.builtin.space import Angle, Parameter, Space


def rms_norm(*, adds: bool) -> Space:
    """RMS normalisation of rows; with ``adds``, of a sum that is an output too."""
    parameters = (
        *STYLE,
        STORES,
        Parameter("rows", (1, 2, 4), {"style": ("vector",), "stores": ("normal",)}),
        Parameter("scale", ("divide", "multiply")),
        *THREADS,
        DISPATCH,
        MATH,
        *([Parameter("fuse", ("after", "row"))] if adds else []),
    )
    vector: Part = {"style": "vector"}
    fused: Part = {"fuse": "row"} if adds else {}
    multiply: Part = {"scale": "multiply"}
    angles = _row_angles(vector, fused | multiply) | {
        "algebraic-rewrite": Angle(
            {"scale": ("multiply",)}, (multiply, multiply | fused | ALL | vector)
        ),
        "cache-blocking": Angle(
            {"style": ("vector",), "stores": ("normal",), "rows": (2, 4)},
            (vector | fused | {"rows": 2}, vector | fused | multiply | ALL | {"rows": 4}),
        ),
        "fast-math": Angle(
            {"math": ("relaxed", "reciprocal")},
            ({"math": "relaxed"}, {"math": "reciprocal"} | fused | multiply | ALL),
        ),
    }
    if adds:
        angles["fuse-passes"] = Angle(
            {"fuse": ("row",)}, (fused, fused | multiply | ALL, vector | fused | multiply)
        )
    return Space(parameters, angles)


def rms_norm_backward() -> Space:
    """Gradients of an RMS normalisation: one by rows, one by columns."""
    parameters = (
        *STYLE,
        STORES,
        Parameter("reduce", ("columns", "buffers")),
        Parameter("block", (16, 32, 64, 128, 256), {"reduce": ("columns",)}),
        Parameter("threads", ("one", "all")),
        Parameter("schedule", ("static",)),
        DISPATCH,
        MATH,
    )
    vector: Part = {"style": "vector"}
    once: Part = {"reduce": "buffers"}
    angles = _row_angles(vector, once) | {
        "fuse-passes": Angle({"reduce": ("buffers",)}, (once, once | ALL, once | vector | ALL)),
        "cache-blocking": Angle(
            {"reduce": ("columns",), "block": (64, 32, 128, 256)},
            ({"block": 64}, vector | ALL | {"block": 128}),
        ),
        "fast-math": Angle(
            {"math": ("relaxed", "reciprocal")}, ({"math": "relaxed"} | once | ALL,)
        ),
    }
    return Space(parameters, angles)


def softmax() -> Space:
    """Softmax of rows, alone or inside cross entropy."""
    parameters = (
        *STYLE,
        STORES,
        Parameter("passes", ("three", "online")),
        Parameter("block", (256, 512, 1024, 2048), {"passes": ("online",)}),
        Parameter("scale", ("divide", "multiply"), {"passes": ("three",)}),
        EXP,
        *THREADS,
        DISPATCH,
        MATH_WITH_EXP,
    )
    vector: Part = {"style": "vector", "exp": "poly6"}
    online: Part = {"passes": "online"}
    multiply: Part = {"passes": "three", "scale": "multiply"}
    fast: Part = {"exp": "poly5", "math": "reciprocal"}
    angles = _row_angles(vector, multiply | {"exp": "poly6"}) | {
        "online-algorithm": Angle(
            {"passes": ("online",)},
            (online | {"exp": "poly6"}, vector | online | ALL | {"block": 1024}),
        ),
        "cache-blocking": Angle(
            {"style": ("vector",), "passes": ("online",)},
            (vector | online | {"block": 512}, vector | online | ALL | {"block": 256}),
        ),
        "algebraic-rewrite": Angle(
            {"passes": ("three",), "scale": ("multiply",)},
            (multiply | {"exp": "poly6"}, vector | multiply | ALL),
        ),
        "fast-math": Angle(
            {"exp": ("poly5",), "math": ("reciprocal",)}, (fast, fast | multiply | ALL)
        ),
    }
    return Space(parameters, angles)


def _row_angles(vector: Part, better: Part) -> dict[str, Angle]:
    """The strategies that mean the same for every template that works row by row.

    Args:
        vector: Values that choose explicit vectors.
        better: Values that a second seed adds beside threads.
    """
    wide: Part = vector | {"unroll": 4}
    stream: Part = vector | {"stores": "stream"}
    shapes: Part = {"dispatch": "shapes"}
    return {
        "vectorise": Angle({"style": ("vector",)}, (vector, vector | better | ALL)),
        "unroll-ilp": Angle(
            {"style": ("vector",), "unroll": (4, 2, 8)}, (wide, wide | better | ALL)
        ),
        "parallelism": Angle({"threads": ("all",)}, (ALL, better | ALL)),
        "streaming-stores": Angle(
            {"style": ("vector",), "stores": ("stream",)}, (stream, stream | better | ALL)
        ),
        "shape-dispatch": Angle(
            {"dispatch": ("shapes",)}, (better | ALL | shapes, wide | better | ALL | shapes)
        ),
    }
