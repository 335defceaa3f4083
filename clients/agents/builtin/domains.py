"""Parameters that several templates share.

Domains come from what the templates can express; none was tuned to one machine. What is best on
a machine is what the search is for.
"""

from __future__ import annotations

from kernelarc.clients.agents.builtin.space import Parameter, Value

Part = dict[str, Value]
"""Some values of a point, joined with others by ``|``."""

THREADS = (
    Parameter("threads", ("one", "all")),
    Parameter("schedule", ("static", "guided", "dynamic"), {"threads": ("all",)}),
    Parameter("chunk", (1, 2, 4, 8, 16, 32), {"schedule": ("guided", "dynamic")}),
)
"""Threads, and how loops are shared among them."""

ALL: Part = {"threads": "all"}
"""Makes a seed use every core."""

MATH = Parameter("math", ("strict", "reciprocal", "relaxed"))
"""Licence for the compiler; ``relaxed`` is the full fast-math."""

MATH_WITH_EXP = Parameter("math", ("strict", "reciprocal"))
"""No reassociation: exp as a polynomial needs its split of ln 2."""

EXP = Parameter("exp", ("libm", "poly6", "poly5"))
"""The library's exp, or a polynomial of that degree."""

DISPATCH = Parameter("dispatch", ("general", "shapes"))
"""Whether the ranked lengths are compiled in, beside the general path."""

STYLE = (
    Parameter("style", ("simd", "vector")),
    Parameter("width", (8, 16), {"style": ("vector",)}),
    Parameter("unroll", (1, 2, 4, 8), {"style": ("vector",)}),
)
"""Loops for the compiler to vectorise, or explicit vectors."""

STORES = Parameter("stores", ("normal", "stream"), {"style": ("vector",)})
"""Through the cache or around it."""
