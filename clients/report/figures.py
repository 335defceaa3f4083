"""The plots of a report, as plotly's JSON.

Plain dictionaries: building them needs no plotting library, and the tests validate each
against plotly's own schema. Plotly reads a few HTML tags in labels, so every text goes through
``label``.
"""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from kernelarc.clients.report.data import (
    AttemptFacts,
    InsightFacts,
    ProblemFacts,
    PromotionFacts,
    WorkloadFacts,
)
from kernelarc.clients.text import latency_text, plain, speedup_text

Figure = dict[str, Any]

PALETTE = (
    "#3b82c4",
    "#d97706",
    "#12977a",
    "#b8579b",
    "#6b7fd7",
    "#c2410c",
    "#8a8f1f",
    "#0e9bb3",
    "#a16244",
    "#7c8796",
)
"""Told apart on light and dark ground alike."""

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star")

_LEADER, _REFERENCE, _FLOOR = "#12977a", "#7c8796", "#d97706"
_RESULT_COLOURS = {
    "PROMOTED": "#12977a",
    "BACKUP": "#3b82c4",
    "TIE": "#8fb8dd",
    "PASSED": "#8fb8dd",
    "INCONCLUSIVE": "#b9a77c",
    "UNFINISHED": "#9aa3ad",
}
_REJECTED_COLOUR = "#cf4a3c"
_KIND_COLOURS = {
    "success": "#12977a",
    "failure": "#cf4a3c",
    "hypothesis": "#3b82c4",
    "question": "#d97706",
}
_LOG_FROM = 4.0
"""From which ratio of the largest to the smallest value an axis is logarithmic."""


def label(text: str, *, limit: int = 60) -> str:
    """Text for a plot: one line, cut, with nothing that plotly would read as a tag."""
    return html.escape(plain(text, limit=limit), quote=False)


def leader_over_attempts(problem: ProblemFacts) -> Figure:
    """Speed-up of the leader over the reference by attempt."""
    last = max((attempt.sequence for attempt in problem.attempts), default=0)
    points = [(float(p.attempt), p) for p in problem.promotions]
    return _leader_curve(problem, points, float(last), "Attempt")


def leader_over_time(problem: ProblemFacts, started: datetime, ended: datetime) -> Figure:
    """The same by minutes since the start of the run."""
    points = [((p.time - started).total_seconds() / 60, p) for p in problem.promotions]
    return _leader_curve(
        problem, points, (ended - started).total_seconds() / 60, "Minutes since the start"
    )


def board_timeline(insights: Sequence[InsightFacts], started: datetime) -> Figure:
    """Posts by time and agent; filled marks have a record of the guard behind them."""
    traces = []
    for kind in dict.fromkeys(insight.kind for insight in insights):
        for verified in (True, False):
            posts = [i for i in insights if i.kind == kind and i.verified is verified]
            if posts:
                traces.append(_posts(kind, posts, started, verified=verified))
    agents = sorted({insight.agent for insight in insights})
    return {
        "data": traces,
        "layout": _layout(
            x={"title": {"text": "Minutes since the start"}, "rangemode": "tozero"},
            y=_names_axis(agents),
            height=150 + 34 * len(agents),
        ),
    }


def rejects(problem: ProblemFacts) -> Figure:
    """Rejected attempts by the guard's reason."""
    counts = problem.rejects
    bar = _bar(list(counts), list(counts.values()), "Rejected", _REJECTED_COLOUR)
    bar |= {"text": [str(count) for count in counts.values()], "textposition": "auto"}
    return {
        "data": [bar],
        "layout": _layout(
            x=_count_axis(max(counts.values())),
            y=_names_axis(counts),
            height=120 + 34 * len(counts),
            showlegend=False,
        ),
    }


def outcomes_by_strategy(attempts: Sequence[AttemptFacts]) -> Figure:
    """How many attempts each strategy got, and what became of them."""
    results = [(a.strategy, "REJECTED" if a.rejected else a.result) for a in attempts]
    strategies = list(dict.fromkeys(strategy for strategy, _ in results))
    counts = Counter(results)
    order = [*_RESULT_COLOURS, "REJECTED"]
    bars = [
        _bar(
            strategies,
            [counts[strategy, result] for strategy in strategies],
            result,
            _RESULT_COLOURS.get(result, _REJECTED_COLOUR),
        )
        for result in order
        if any(counts[strategy, result] for strategy in strategies)
    ]
    largest = max(Counter(strategy for strategy, _ in results).values())
    return {
        "data": bars,
        "layout": _layout(
            x=_count_axis(largest),
            y=_names_axis(strategies),
            height=170 + 32 * len(strategies),
            barmode="stack",
        ),
    }


def latencies(workloads: Sequence[WorkloadFacts]) -> Figure:
    """Latency of each workload: reference, leader, physical floor."""
    rows = (
        ("Reference", _REFERENCE, "diamond", [w.reference_us for w in workloads]),
        ("Leader", _LEADER, "circle", [w.leader_us for w in workloads]),
        ("Physical floor", _FLOOR, "line-ns-open", [w.floor_us for w in workloads]),
    )
    traces = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": name,
            "x": values,
            "y": [label(w.label) for w in workloads],
            "marker": {"color": colour, "symbol": symbol, "size": 13, "line": {"width": 2}},
            "hovertext": [latency_text(value) for value in values],
            "hoverinfo": "text+name",
        }
        for name, colour, symbol, values in rows
        if any(value is not None for value in values)
    ]
    measured = [value for *_, values in rows for value in values if value is not None]
    return {
        "data": traces,
        "layout": _layout(
            x={"title": {"text": "Latency, µs"}, **_value_axis(measured)},
            y=_names_axis(w.label for w in workloads),
            height=170 + 44 * len(workloads),
        ),
    }


def _leader_curve(
    problem: ProblemFacts,
    points: Sequence[tuple[float, PromotionFacts]],
    end: float,
    x_title: str,
) -> Figure:
    measured = [(x, p) for x, p in points if p.over_reference is not None]
    medians = [p.over_reference.median for _, p in measured if p.over_reference is not None]
    steps: Figure = {
        "type": "scatter",
        "mode": "lines",
        "name": "Leader",
        "x": [0.0, *(x for x, _ in measured), max([end, *(x for x, _ in measured)])],
        "y": [1.0, *medians, medians[-1] if medians else 1.0],
        "line": {"shape": "hv", "width": 2, "color": _REFERENCE},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    strategies = dict.fromkeys(p.strategy for _, p in measured)
    marks = [
        _promotions(strategy, [(x, p) for x, p in measured if p.strategy == strategy], index)
        for index, strategy in enumerate(strategies)
    ]
    floor = problem.floor_speedup
    extremes = [1.0, *medians, *([] if floor is None else [floor])]
    layout = _layout(
        x={"title": {"text": x_title}, "rangemode": "tozero"},
        y={"title": {"text": "Speed-up over the reference"}, **_value_axis(extremes, "x")},
        height=400,
    )
    if floor is not None:
        layout |= _floor_line(floor, logarithmic=layout["yaxis"].get("type") == "log")
    return {"data": [steps, *marks], "layout": layout}


def _promotions(
    strategy: str, points: Sequence[tuple[float, PromotionFacts]], index: int
) -> Figure:
    speedups = [p.over_reference for _, p in points if p.over_reference is not None]
    above = [0.0 if s.high is None else s.high - s.median for s in speedups]
    below = [0.0 if s.low is None else s.median - s.low for s in speedups]
    colour = PALETTE[index % len(PALETTE)]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": label(strategy),
        "x": [x for x, _ in points],
        "y": [s.median for s in speedups],
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": above,
            "arrayminus": below,
            "color": colour,
            "thickness": 1.5,
            "width": 5,
        },
        "marker": {"color": colour, "size": 9, "symbol": SYMBOLS[index % len(SYMBOLS)]},
        "hovertext": [
            f"{speedup_text(s.median, s.low, s.high)}<br>{label(p.agent)}, attempt {p.attempt}"
            f"<br>{label(p.solution_id[:8])}"
            for s, (_, p) in zip(speedups, points, strict=True)
        ],
        "hoverinfo": "text+name",
    }


def _floor_line(floor: float, *, logarithmic: bool) -> Figure:
    line = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": floor, "y1": floor}
    note = {
        "xref": "paper",
        "x": 0.01,
        "xanchor": "left",
        "y": math.log10(floor) if logarithmic else floor,
        "yanchor": "top",
        "showarrow": False,
        "text": f"physical floor: {floor:.2f}x",
        "font": {"color": _FLOOR, "size": 12},
    }
    return {
        "shapes": [{**line, "line": {"color": _FLOOR, "dash": "dash", "width": 1.5}}],
        "annotations": [note],
    }


def _posts(
    kind: str, posts: Sequence[InsightFacts], started: datetime, *, verified: bool
) -> Figure:
    colour = _KIND_COLOURS.get(kind, PALETTE[-1])
    return {
        "type": "scatter",
        "mode": "markers",
        "name": label(kind) + (" (verified)" if verified else ""),
        "x": [(post.time - started).total_seconds() / 60 for post in posts],
        "y": [label(post.agent) for post in posts],
        "marker": {
            "color": colour,
            "size": 11,
            "symbol": "circle" if verified else "circle-open",
            "line": {"color": colour, "width": 2},
        },
        "hovertext": [label(post.text, limit=90) for post in posts],
        "hoverinfo": "text+name",
    }


def _bar(names: Iterable[str], values: Sequence[float], name: str, colour: str) -> Figure:
    return {
        "type": "bar",
        "orientation": "h",
        "name": label(name),
        "x": list(values),
        "y": [label(text) for text in names],
        "marker": {"color": colour},
        "hoverinfo": "x+name",
    }


def _count_axis(largest: int) -> Figure:
    """Whole numbers only: a tick at 0.5 attempts means nothing."""
    return {"title": {"text": "Attempts"}, **({"dtick": 1} if largest <= 8 else {})}


def _names_axis(names: Iterable[str]) -> Figure:
    """One row per name, the first on top, with half a row of space at either end."""
    rows = list(dict.fromkeys(map(label, names)))
    return {
        "type": "category",
        "categoryorder": "array",
        "categoryarray": rows,
        "range": [len(rows) - 0.5, -0.5],
    }


def _value_axis(values: Sequence[float], unit: str = "") -> Figure:
    """Logarithmic when the values are far apart, with ticks at 1, 2 and 5."""
    positive = [value for value in values if value > 0]
    if not positive or max(positive) / min(positive) <= _LOG_FROM:
        return {"type": "linear", "ticksuffix": unit}
    low, high = math.log10(min(positive)), math.log10(max(positive))
    ticks = [
        step * 10.0**decade
        for decade in range(math.floor(low) - 1, math.ceil(high) + 1)
        for step in (1, 2, 5)
    ]
    return {
        "type": "log",
        "tickmode": "array",
        "tickvals": ticks,
        "ticktext": [f"{tick:,g}{unit}" for tick in ticks],
    }


def _layout(
    *, x: Figure, y: Figure, height: int, showlegend: bool = True, barmode: str | None = None
) -> Figure:
    layout: Figure = {
        "height": height,
        "margin": {"l": 56, "r": 16, "t": 16, "b": 56},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 13},
        "xaxis": {"zeroline": False, "automargin": True, **x},
        "yaxis": {"zeroline": False, "automargin": True, **y},
        "showlegend": showlegend,
        "legend": {
            "orientation": "h",
            "traceorder": "normal",
            "yanchor": "bottom",
            "y": 1.02,
            "x": 0,
        },
        "hoverlabel": {"align": "left"},
    }
    if barmode is not None:
        layout["barmode"] = barmode
    return layout
