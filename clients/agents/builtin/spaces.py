"""The parameter spaces of the templates, and how each strategy enters them.

Domains and seeds come from what the templates can express; none was tuned to one machine. What
is best on a machine is what the search is for.
"""

from __future__ import annotations

from kernelarc.clients.agents.builtin.space import Angle, Parameter, Space

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
_WIDTH = Parameter("width", (8, 16))


def matmul_space(epilogue: str) -> Space:
    """Matrix products; ``epilogue`` is ``none``, ``residual`` or ``swiglu``.

    Three kernels: plain loops, register tiles of dot products, packed panels with a register
    tile of outer products.
    """
    tiles = ("dot", "packed")
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
        _MATH_WITH_EXP if epilogue == "swiglu" else _MATH,
    ]
    if epilogue != "none":
        parameters.append(Parameter("fuse", ("after", "epilogue")))
    if epilogue == "swiglu":
        parameters.append(_EXP)
    extra = {} if epilogue == "none" else {"fuse": "epilogue"}
    # A swiglu tile has two weights, so it holds one vector of each.
    vectors = 1 if epilogue == "swiglu" else 2
    fast = {"exp": "poly5"} if epilogue == "swiglu" else {}
    dot = {"kernel": "dot", "rows": 3, "vectors": 4}
    packed = {"kernel": "packed", "rows": 6, "vectors": vectors}
    angles = {
        "vectorise": Angle({"kernel": ("dot",)}, (dot | extra, dot | {"threads": "all"})),
        "cache-blocking": Angle(
            {"kernel": ("packed",)},
            (
                packed | {"kc": 256, "threads": "all"},
                packed | extra | {"kc": 512, "mc": 96, "threads": "all"},
            ),
        ),
        "unroll-ilp": Angle(
            {"kernel": tiles, "unroll": (2, 4)},
            (
                dot | {"unroll": 4, "rows": 2},
                packed | extra | {"unroll": 4, "rows": 4, "threads": "all"},
            ),
        ),
        "parallelism": Angle(
            {"threads": ("all",)},
            (
                {"threads": "all"},
                packed | {"threads": "all", "schedule": "dynamic", "mc": 48},
            ),
        ),
        "fast-math": Angle(
            {"math": ("reciprocal",) if fast else ("relaxed",)},
            (
                {"math": "reciprocal" if fast else "relaxed", "threads": "all"} | fast,
                packed | extra | fast | {"math": "reciprocal", "threads": "all"}
                if fast
                else packed | extra | {"math": "relaxed", "threads": "all"},
            ),
        ),
        "shape-dispatch": Angle(
            {"dispatch": ("shapes",)},
            (
                dot | {"dispatch": "shapes", "threads": "all"},
                packed | extra | {"dispatch": "shapes", "threads": "all"},
            ),
        ),
    }
    if epilogue != "none":
        angles["fuse-passes"] = Angle(
            {"fuse": ("epilogue",)},
            (extra | {"threads": "all"}, packed | extra | fast | {"threads": "all"}),
        )
    return Space(tuple(parameters), angles)
