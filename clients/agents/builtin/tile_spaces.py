"""Spaces of the other templates, and how each strategy enters them."""

from __future__ import annotations

from kernelarc.clients.agents.builtin.domains import (
    ALL,
    DISPATCH,
    EXP,
    MATH,
    MATH_WITH_EXP,
    THREADS,
    Part,
)
from kernelarc.clients.agents.builtin.space import Angle, Parameter, Space


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
        *THREADS,
        DISPATCH,
        MATH_WITH_EXP if gated else MATH,
        *([Parameter("fuse", ("after", "epilogue"))] if epilogue != "none" else []),
        *([EXP] if gated else []),
    ]
    dot: Part = {"kernel": "dot", "rows": 3, "vectors": 4}
    # A gated tile holds a vector of each of the two weights, so as many registers as the other.
    packed: Part = {"kernel": "packed", "rows": 6, "vectors": 1 if gated else 2}
    fused: Part = {} if epilogue == "none" else {"fuse": "epilogue"}
    fast: Part = {"math": "reciprocal", "exp": "poly5"} if gated else {"math": "relaxed"}
    shapes: Part = {"dispatch": "shapes"}
    angles = {
        "vectorise": Angle({"kernel": ("dot",)}, (dot | fused, dot | ALL)),
        "cache-blocking": Angle(
            {"kernel": ("packed",)},
            (packed | ALL | {"kc": 256}, packed | fused | ALL | {"kc": 512, "mc": 96}),
        ),
        "unroll-ilp": Angle(
            {"kernel": tiles, "unroll": (4, 2)},
            (dot | {"unroll": 4, "rows": 2}, packed | fused | ALL | {"unroll": 4, "rows": 4}),
        ),
        "parallelism": Angle(
            {"threads": ("all",)},
            (ALL, packed | ALL | {"schedule": "dynamic", "mc": 48}),
        ),
        "fast-math": Angle(
            {name: (value,) for name, value in fast.items()},
            (fast | ALL, packed | fused | fast | ALL),
        ),
        "shape-dispatch": Angle(
            {"dispatch": ("shapes",)}, (dot | shapes | ALL, packed | fused | shapes | ALL)
        ),
    }
    if fused:
        gain = fast if gated else {}
        angles["fuse-passes"] = Angle(
            {"fuse": ("epilogue",)}, (fused | ALL, packed | fused | gain | ALL)
        )
    return Space(tuple(parameters), angles)


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
        EXP,
        *THREADS,
        DISPATCH,
        MATH_WITH_EXP,
    )
    tile: Part = {"kernel": "tiles", "rows": 4, "vectors": 2, "exp": "poly6"}
    online: Part = {"passes": "online"}
    folded: Part = {"rewrite": "folded"}
    fast: Part = {"exp": "poly5", "math": "reciprocal"}
    shapes: Part = {"dispatch": "shapes"}
    angles = {
        "vectorise": Angle(tiles, (tile, tile | ALL)),
        "online-algorithm": Angle(
            {"passes": ("online",)},
            (online | {"exp": "poly6"}, tile | online | ALL | {"block": 128}),
        ),
        "cache-blocking": Angle(
            {**tiles, "rows": (4, 6, 8, 3, 2), "passes": ("online",)},
            (tile | online | {"block": 64}, tile | online | ALL | {"rows": 6, "block": 256}),
        ),
        "algebraic-rewrite": Angle(
            {"rewrite": ("folded",)}, (folded | {"exp": "poly6"}, tile | folded | ALL)
        ),
        "parallelism": Angle(
            {"threads": ("all",)},
            (ALL | {"exp": "poly6"}, tile | ALL | {"schedule": "dynamic", "chunk": 4}),
        ),
        "unroll-ilp": Angle(
            {**tiles, "unroll": (4, 2)},
            (tile | {"unroll": 4}, tile | ALL | {"unroll": 2, "rows": 6}),
        ),
        "fast-math": Angle(
            {"exp": ("poly5",), "math": ("reciprocal",)}, (fast, tile | fast | folded | ALL)
        ),
        "shape-dispatch": Angle({"dispatch": ("shapes",)}, (shapes | ALL, tile | shapes | ALL)),
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
        EXP,
        *THREADS,
        DISPATCH,
        MATH_WITH_EXP,
    )
    column: Part = {"kernel": "columns", "exp": "poly6", "fuse": "row"}
    fused: Part = {"fuse": "row"}
    fast: Part = {"exp": "poly5", "math": "reciprocal"}
    shapes: Part = {"dispatch": "shapes"}
    stream: Part = {"stores": "stream"}
    angles = {
        "vectorise": Angle(columns, (column, column | ALL | {"steps": 128})),
        "fuse-passes": Angle(
            {"fuse": ("row",)}, (fused | {"exp": "poly6"}, column | ALL | {"steps": 256})
        ),
        "cache-blocking": Angle(
            {**columns, "steps": (128, 64, 256, 32)},
            (column | {"fuse": "after", "steps": 64}, column | ALL | {"steps": 64}),
        ),
        "parallelism": Angle(
            {"threads": ("all",)},
            (ALL | {"exp": "poly6"}, fused | ALL | {"schedule": "guided", "exp": "poly6"}),
        ),
        "unroll-ilp": Angle(
            {**columns, "vectors": (2, 3, 4)},
            (column | {"vectors": 2}, column | ALL | {"vectors": 3, "steps": 128}),
        ),
        "fast-math": Angle(
            {"exp": ("poly5",), "math": ("reciprocal",)}, (fast, fast | fused | ALL)
        ),
        "streaming-stores": Angle(
            {**columns, "stores": ("stream",)},
            (column | stream, column | stream | ALL | {"steps": 128}),
        ),
        "shape-dispatch": Angle(
            {"dispatch": ("shapes",)},
            (fused | shapes | ALL | {"exp": "poly6"}, column | shapes | ALL),
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
        EXP,
        *THREADS,
        DISPATCH,
        # Equal logits must stay equal: no licence to rewrite comparisons or signed zeros.
        Parameter("math", ("strict",)),
    )
    keys: Part = {"select": "keys"}
    lanes: Part = {"select": "lanes", "exp": "poly6"}
    one_pass: Part = {"select": "list"}
    fast: Part = {"exp": "poly5"}
    shapes: Part = {"dispatch": "shapes"}
    angles = {
        "vectorise": Angle({"select": ("lanes",)}, (lanes, lanes | ALL)),
        "online-algorithm": Angle(
            {"select": ("list",)}, (one_pass, one_pass | ALL | {"group": 16, "exp": "poly6"})
        ),
        "algebraic-rewrite": Angle(
            {"select": ("keys",)}, (keys, keys | ALL | {"group": 16, "exp": "poly6"})
        ),
        "parallelism": Angle(
            {"threads": ("all",)}, (ALL | {"group": 16}, one_pass | ALL | {"group": 64})
        ),
        "fast-math": Angle({"exp": ("poly5",)}, (fast, fast | one_pass | ALL)),
        "unroll-ilp": Angle(
            {"select": ("lanes",), "unroll": (2, 4)},
            (lanes | {"unroll": 2}, lanes | ALL | {"unroll": 4}),
        ),
        "shape-dispatch": Angle(
            {"dispatch": ("shapes",)}, (one_pass | shapes | {"group": 16}, lanes | shapes | ALL)
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
        *THREADS,
        DISPATCH,
        MATH,
    )
    vector: Part = {"style": "vector"}
    once: Part = {"append": "map"}
    stream: Part = {"stores": "stream"}
    shapes: Part = {"dispatch": "shapes"}
    angles = {
        "vectorise": Angle({"style": ("vector",)}, (vector, vector | once | ALL)),
        "fuse-passes": Angle({"append": ("map",)}, (once, once | ALL | {"copy": "loop"})),
        "parallelism": Angle({"threads": ("all",)}, (ALL, ALL | {"schedule": "guided"})),
        "unroll-ilp": Angle(
            {"style": ("vector",), "heads": (2, 4)},
            (vector | {"heads": 2}, vector | once | ALL | {"heads": 4}),
        ),
        "streaming-stores": Angle({"stores": ("stream",)}, (stream, stream | once | ALL)),
        "shape-dispatch": Angle({"dispatch": ("shapes",)}, (shapes, shapes | vector | once | ALL)),
    }
    return Space(parameters, angles)
