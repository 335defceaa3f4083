"""The parameter spaces of the templates, and how each strategy enters them.

Domains and seeds come from what the templates can express; none was tuned to one machine. What
is best on a machine is what the search is for.
"""

from __future__ import annotations

from kernelarc.clients.agents.builtin.space import Angle, Parameter, Space, Value

Part = dict[str, Value]
"""Some values of a point, joined with others by ``|``."""

_THREADS = (
    Parameter("threads", ("one", "all")),
    Parameter("schedule", ("static", "guided", "dynamic"), {"threads": ("all",)}),
    Parameter("chunk", (1, 2, 4, 8, 16, 32), {"schedule": ("guided", "dynamic")}),
)
_MATH = Parameter("math", ("strict", "reciprocal", "relaxed"))
# With exp as a polynomial the split of ln 2 must survive, so no reassociation.
_MATH_WITH_EXP = Parameter("math", ("strict", "reciprocal"))
_DISPATCH = Parameter("dispatch", ("general", "shapes"))
_EXP = Parameter("exp", ("libm", "poly6", "poly5"))
_STYLE = (
    Parameter("style", ("simd", "vector")),
    Parameter("width", (8, 16), {"style": ("vector",)}),
    Parameter("unroll", (1, 2, 4, 8), {"style": ("vector",)}),
)
# One row at a time, since rows differ in alignment.
_STORES = Parameter("stores", ("normal", "stream"), {"style": ("vector",)})
_ALL: Part = {"threads": "all"}


def matmul(epilogue: str) -> Space:
    """Matrix products; ``epilogue`` is ``none``, ``residual`` or ``swiglu``.

    Three kernels: plain loops; register tiles of dot products; panels packed depth-major with a
    register tile of outer products.
    """
    tiles = ("dot", "packed")
    gated = epilogue == "swiglu"
    parameters = [
        Parameter("kernel", ("loops", *tiles)),
        Parameter("width", (8, 16), {"kernel": tiles}),
        Parameter("rows", (1, 2, 3, 4, 6, 8, 12), {"kernel": tiles}),
        Parameter("vectors", (1, 2, 3, 4), {"kernel": tiles}),
        Parameter("unroll", (1, 2, 4), {"kernel": tiles}),
        Parameter("kc", (4096, 1024, 512, 256, 128), {"kernel": ("packed",)}),
        Parameter("mc", (4096, 384, 96, 48, 24), {"kernel": ("packed",)}),
        *_THREADS,
        _DISPATCH,
        _MATH_WITH_EXP if gated else _MATH,
        *([Parameter("fuse", ("after", "epilogue"))] if epilogue != "none" else []),
        *([_EXP] if gated else []),
    ]
    dot: Part = {"kernel": "dot", "rows": 3, "vectors": 4}
    # A gated tile holds a vector of each of the two weights, so as many registers as the other.
    packed: Part = {"kernel": "packed", "rows": 6, "vectors": 1 if gated else 2}
    fused: Part = {} if epilogue == "none" else {"fuse": "epilogue"}
    fast: Part = {"math": "reciprocal", "exp": "poly5"} if gated else {"math": "relaxed"}
    shapes: Part = {"dispatch": "shapes"}
    angles = {
        "vectorise": Angle({"kernel": ("dot",)}, (dot | fused, dot | _ALL)),
        "cache-blocking": Angle(
            {"kernel": ("packed",)},
            (packed | _ALL | {"kc": 256}, packed | fused | _ALL | {"kc": 512, "mc": 96}),
        ),
        "unroll-ilp": Angle(
            {"kernel": tiles, "unroll": (4, 2)},
            (dot | {"unroll": 4, "rows": 2}, packed | fused | _ALL | {"unroll": 4, "rows": 4}),
        ),
        "parallelism": Angle(
            {"threads": ("all",)},
            (_ALL, packed | _ALL | {"schedule": "dynamic", "mc": 48}),
        ),
        "fast-math": Angle(
            {name: (value,) for name, value in fast.items()},
            (fast | _ALL, packed | fused | fast | _ALL),
        ),
        "shape-dispatch": Angle(
            {"dispatch": ("shapes",)}, (dot | shapes | _ALL, packed | fused | shapes | _ALL)
        ),
    }
    if fused:
        gain = fast if gated else {}
        angles["fuse-passes"] = Angle(
            {"fuse": ("epilogue",)}, (fused | _ALL, packed | fused | gain | _ALL)
        )
    return Space(tuple(parameters), angles)


def rms_norm(*, adds: bool) -> Space:
    """RMS normalisation of rows; with ``adds``, of a sum that is an output too."""
    parameters = (
        *_STYLE,
        _STORES,
        Parameter("rows", (1, 2, 4), {"style": ("vector",), "stores": ("normal",)}),
        Parameter("scale", ("divide", "multiply")),
        *_THREADS,
        _DISPATCH,
        _MATH,
        *([Parameter("fuse", ("after", "row"))] if adds else []),
    )
    vector: Part = {"style": "vector"}
    fused: Part = {"fuse": "row"} if adds else {}
    multiply: Part = {"scale": "multiply"}
    angles = _row_angles(vector, fused | multiply) | {
        "algebraic-rewrite": Angle(
            {"scale": ("multiply",)}, (multiply, multiply | fused | _ALL | vector)
        ),
        "cache-blocking": Angle(
            {"style": ("vector",), "stores": ("normal",), "rows": (2, 4)},
            (vector | fused | {"rows": 2}, vector | fused | multiply | _ALL | {"rows": 4}),
        ),
        "fast-math": Angle(
            {"math": ("relaxed", "reciprocal")},
            ({"math": "relaxed"}, {"math": "reciprocal"} | fused | multiply | _ALL),
        ),
    }
    if adds:
        angles["fuse-passes"] = Angle(
            {"fuse": ("row",)}, (fused, fused | multiply | _ALL, vector | fused | multiply)
        )
    return Space(parameters, angles)


def rms_norm_backward() -> Space:
    """Gradients of an RMS normalisation: one by rows, one by columns."""
    parameters = (
        *_STYLE,
        _STORES,
        Parameter("reduce", ("columns", "buffers")),
        Parameter("block", (16, 32, 64, 128, 256), {"reduce": ("columns",)}),
        Parameter("threads", ("one", "all")),
        Parameter("schedule", ("static",)),
        _DISPATCH,
        _MATH,
    )
    vector: Part = {"style": "vector"}
    once: Part = {"reduce": "buffers"}
    angles = _row_angles(vector, once) | {
        "fuse-passes": Angle({"reduce": ("buffers",)}, (once, once | _ALL, once | vector | _ALL)),
        "cache-blocking": Angle(
            {"reduce": ("columns",), "block": (64, 32, 128, 256)},
            ({"block": 64}, vector | _ALL | {"block": 128}),
        ),
        "fast-math": Angle(
            {"math": ("relaxed", "reciprocal")}, ({"math": "relaxed"} | once | _ALL,)
        ),
    }
    return Space(parameters, angles)


def softmax() -> Space:
    """Softmax of rows, alone or inside cross entropy."""
    parameters = (
        *_STYLE,
        _STORES,
        Parameter("passes", ("three", "online")),
        Parameter("block", (256, 512, 1024, 2048), {"passes": ("online",)}),
        Parameter("scale", ("divide", "multiply"), {"passes": ("three",)}),
        _EXP,
        *_THREADS,
        _DISPATCH,
        _MATH_WITH_EXP,
    )
    vector: Part = {"style": "vector", "exp": "poly6"}
    online: Part = {"passes": "online"}
    multiply: Part = {"passes": "three", "scale": "multiply"}
    fast: Part = {"exp": "poly5", "math": "reciprocal"}
    angles = _row_angles(vector, multiply | {"exp": "poly6"}) | {
        "online-algorithm": Angle(
            {"passes": ("online",)},
            (online | {"exp": "poly6"}, vector | online | _ALL | {"block": 1024}),
        ),
        "algebraic-rewrite": Angle(
            {"passes": ("three",), "scale": ("multiply",)},
            (multiply | {"exp": "poly6"}, vector | multiply | _ALL),
        ),
        "fast-math": Angle(
            {"exp": ("poly5",), "math": ("reciprocal",)}, (fast, fast | multiply | _ALL)
        ),
    }
    return Space(parameters, angles)


def attention() -> Space:
    """Causal attention: query by query, or tiles of queries against blocks of keys."""
    tiles = {"kernel": ("tiles",)}
    parameters = (
        Parameter("kernel", ("rows", "tiles")),
        Parameter("passes", ("full", "online")),
        Parameter("width", (8, 16), tiles),
        Parameter("rows", (1, 2, 3, 4, 6, 8), tiles),
        Parameter("vectors", (1, 2, 4), tiles),
        Parameter("unroll", (1, 2, 4), tiles),
        Parameter("block", (64, 128, 256, 512), {**tiles, "passes": ("online",)}),
        Parameter("rewrite", ("plain", "folded")),
        _EXP,
        *_THREADS,
        _DISPATCH,
        _MATH_WITH_EXP,
    )
    tile: Part = {"kernel": "tiles", "rows": 4, "vectors": 2, "exp": "poly6"}
    online: Part = {"passes": "online"}
    folded: Part = {"rewrite": "folded"}
    fast: Part = {"exp": "poly5", "math": "reciprocal"}
    shapes: Part = {"dispatch": "shapes"}
    angles = {
        "vectorise": Angle(tiles, (tile, tile | _ALL)),
        "online-algorithm": Angle(
            {"passes": ("online",)},
            (online | {"exp": "poly6"}, tile | online | _ALL | {"block": 128}),
        ),
        "cache-blocking": Angle(
            {**tiles, "rows": (4, 6, 8, 3, 2), "passes": ("online",)},
            (tile | online | {"block": 64}, tile | online | _ALL | {"rows": 6, "block": 256}),
        ),
        "algebraic-rewrite": Angle(
            {"rewrite": ("folded",)}, (folded | {"exp": "poly6"}, tile | folded | _ALL)
        ),
        "parallelism": Angle(
            {"threads": ("all",)},
            (_ALL | {"exp": "poly6"}, tile | _ALL | {"schedule": "dynamic", "chunk": 4}),
        ),
        "unroll-ilp": Angle(
            {**tiles, "unroll": (4, 2)},
            (tile | {"unroll": 4}, tile | _ALL | {"unroll": 2, "rows": 6}),
        ),
        "fast-math": Angle(
            {"exp": ("poly5",), "math": ("reciprocal",)}, (fast, tile | fast | folded | _ALL)
        ),
        "shape-dispatch": Angle({"dispatch": ("shapes",)}, (shapes | _ALL, tile | shapes | _ALL)),
    }
    return Space(parameters, angles)


def causal_conv() -> Space:
    """Depthwise causal convolution: by rows, or by columns with their past in registers."""
    columns = {"kernel": ("columns",)}
    parameters = (
        Parameter("kernel", ("rows", "columns")),
        Parameter("width", (8, 16), columns),
        Parameter("vectors", (1, 2, 3, 4), columns),
        Parameter("steps", (4096, 512, 256, 128, 64, 32), columns),
        Parameter("stores", ("normal", "stream"), columns),
        Parameter("fuse", ("after", "row")),
        _EXP,
        *_THREADS,
        _DISPATCH,
        _MATH_WITH_EXP,
    )
    column: Part = {"kernel": "columns", "exp": "poly6", "fuse": "row"}
    fused: Part = {"fuse": "row"}
    fast: Part = {"exp": "poly5", "math": "reciprocal"}
    shapes: Part = {"dispatch": "shapes"}
    stream: Part = {"stores": "stream"}
    angles = {
        "vectorise": Angle(columns, (column, column | _ALL | {"steps": 128})),
        "fuse-passes": Angle(
            {"fuse": ("row",)}, (fused | {"exp": "poly6"}, column | _ALL | {"steps": 256})
        ),
        "cache-blocking": Angle(
            {**columns, "steps": (128, 64, 256, 32)},
            (column | {"fuse": "after", "steps": 64}, column | _ALL | {"steps": 64}),
        ),
        "parallelism": Angle(
            {"threads": ("all",)},
            (_ALL | {"exp": "poly6"}, fused | _ALL | {"schedule": "guided", "exp": "poly6"}),
        ),
        "unroll-ilp": Angle(
            {**columns, "vectors": (2, 3, 4)},
            (column | {"vectors": 2}, column | _ALL | {"vectors": 3, "steps": 128}),
        ),
        "fast-math": Angle(
            {"exp": ("poly5",), "math": ("reciprocal",)}, (fast, fast | fused | _ALL)
        ),
        "streaming-stores": Angle(
            {**columns, "stores": ("stream",)},
            (column | stream, column | stream | _ALL | {"steps": 128}),
        ),
        "shape-dispatch": Angle(
            {"dispatch": ("shapes",)},
            (fused | shapes | _ALL | {"exp": "poly6"}, column | shapes | _ALL),
        ),
    }
    return Space(parameters, angles)


def top_k() -> Space:
    """Selection of the largest eight with a softmax over them."""
    parameters = (
        Parameter("select", ("rounds", "list", "keys", "lanes")),
        Parameter("width", (8, 16), {"select": ("lanes",)}),
        Parameter("unroll", (1, 2, 4), {"select": ("lanes",)}),
        Parameter("group", (1, 4, 16, 64), {"select": ("rounds", "list", "keys")}),
        _EXP,
        *_THREADS,
        _DISPATCH,
        # Equal logits must stay equal: no licence to rewrite comparisons or signed zeros.
        Parameter("math", ("strict",)),
    )
    keys: Part = {"select": "keys"}
    lanes: Part = {"select": "lanes", "exp": "poly6"}
    one_pass: Part = {"select": "list"}
    fast: Part = {"exp": "poly5"}
    shapes: Part = {"dispatch": "shapes"}
    angles = {
        "vectorise": Angle({"select": ("lanes",)}, (lanes, lanes | _ALL)),
        "online-algorithm": Angle(
            {"select": ("list",)}, (one_pass, one_pass | _ALL | {"group": 16, "exp": "poly6"})
        ),
        "algebraic-rewrite": Angle(
            {"select": ("keys",)}, (keys, keys | _ALL | {"group": 16, "exp": "poly6"})
        ),
        "parallelism": Angle(
            {"threads": ("all",)}, (_ALL | {"group": 16}, one_pass | _ALL | {"group": 64})
        ),
        "fast-math": Angle({"exp": ("poly5",)}, (fast, fast | one_pass | _ALL)),
        "unroll-ilp": Angle(
            {"select": ("lanes",), "unroll": (2, 4)},
            (lanes | {"unroll": 2}, lanes | _ALL | {"unroll": 4}),
        ),
        "shape-dispatch": Angle(
            {"dispatch": ("shapes",)}, (one_pass | shapes | {"group": 16}, lanes | shapes | _ALL)
        ),
    }
    return Space(parameters, angles)


def rope_append() -> Space:
    """Rotary embedding of queries and keys, and caches with new rows."""
    parameters = (
        Parameter("style", ("simd", "vector")),
        Parameter("width", (8, 16), {"style": ("vector",)}),
        Parameter("heads", (1, 2, 4), {"style": ("vector",)}),
        Parameter("append", ("scatter", "map")),
        Parameter("stores", ("normal", "stream")),
        Parameter("copy", ("memcpy", "loop"), {"stores": ("normal",)}),
        *_THREADS,
        _DISPATCH,
        _MATH,
    )
    vector: Part = {"style": "vector"}
    once: Part = {"append": "map"}
    stream: Part = {"stores": "stream"}
    shapes: Part = {"dispatch": "shapes"}
    angles = {
        "vectorise": Angle({"style": ("vector",)}, (vector, vector | once | _ALL)),
        "fuse-passes": Angle({"append": ("map",)}, (once, once | _ALL | {"copy": "loop"})),
        "parallelism": Angle({"threads": ("all",)}, (_ALL, _ALL | {"schedule": "guided"})),
        "unroll-ilp": Angle(
            {"style": ("vector",), "heads": (2, 4)},
            (vector | {"heads": 2}, vector | once | _ALL | {"heads": 4}),
        ),
        "streaming-stores": Angle({"stores": ("stream",)}, (stream, stream | once | _ALL)),
        "shape-dispatch": Angle({"dispatch": ("shapes",)}, (shapes, shapes | vector | once | _ALL)),
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
        "vectorise": Angle({"style": ("vector",)}, (vector, vector | better | _ALL)),
        "unroll-ilp": Angle(
            {"style": ("vector",), "unroll": (4, 2, 8)}, (wide, wide | better | _ALL)
        ),
        "parallelism": Angle({"threads": ("all",)}, (_ALL, better | _ALL)),
        "streaming-stores": Angle(
            {"style": ("vector",), "stores": ("stream",)}, (stream, stream | better | _ALL)
        ),
        "shape-dispatch": Angle(
            {"dispatch": ("shapes",)}, (better | _ALL | shapes, wide | better | _ALL | shapes)
        ),
    }
