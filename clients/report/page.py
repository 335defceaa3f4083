"""Builds the report: one HTML file that needs neither a network nor a server."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from kernelarc.clients.report import figures
from kernelarc.clients.report.data import ProblemFacts, ReportData, Speedup
from kernelarc.clients.text import latency_text, plain, speedup_text

TEXT_CHARS = 2000
"""Longest text shown, as long as an insight may be."""


@dataclass(frozen=True)
class Plot:
    """A figure on the page and what it shows, in a sentence."""

    id: str
    figure: figures.Figure
    caption: str


def build_report(data: ReportData) -> str:
    """The report of a run as one self-contained HTML document.

    It carries its style and the plotting library; a content security policy in it keeps a
    browser from fetching anything. All texts are escaped. Without scripts the tables remain.

    Args:
        data: The facts.

    Returns:
        The document, about 5 MB, most of it the plotting library.
    """
    template = _environment().get_template("page.html.j2")
    ended = data.run.ended or _last_moment(data)
    return template.render(
        data=data,
        ended=ended,
        style=Markup(_asset("style.css")),  # noqa: S704  our own file
        library=Markup(_inline_script(get_plotlyjs())),  # noqa: S704  the library's own text
        problems=[
            (problem, _plots(index, problem, data, ended))
            for index, problem in enumerate(data.problems)
        ],
    )


def _plots(index: int, problem: ProblemFacts, data: ReportData, ended: datetime) -> dict[str, Plot]:
    """The plots of one problem for which there is something to show."""
    started = data.run.started
    wanted: list[tuple[str, bool, Callable[[], figures.Figure], str]] = [
        (
            "attempts",
            bool(problem.promotions),
            lambda: figures.leader_over_attempts(problem),
            "Each mark is a new leader, coloured by strategy: the median of the guard's "
            "interleaved blocks with its order-statistic interval.",
        ),
        (
            "time",
            bool(problem.promotions),
            lambda: figures.leader_over_time(problem, started, ended),
            "The same leaders over time.",
        ),
        (
            "latencies",
            any(workload.leader_us or workload.reference_us for workload in problem.workloads),
            lambda: figures.latencies(problem.workloads),
            "Median latency by workload, measured by the judge; the floor is what this device's "
            "measured bandwidth and peak allow.",
        ),
        (
            "strategies",
            bool(problem.attempts),
            lambda: figures.outcomes_by_strategy(problem.attempts),
            "Attempts by strategy and what became of them.",
        ),
        (
            "rejects",
            bool(problem.rejects),
            lambda: figures.rejects(problem),
            "Candidates that the guard refused, by reason.",
        ),
        (
            "board",
            bool(problem.insights),
            lambda: figures.board_timeline(problem.insights, started),
            "Insights posted on the board. Filled marks are supported by a record of the guard.",
        ),
    ]
    return {
        name: Plot(f"plot-{index}-{name}", build(), caption)
        for name, shown, build, caption in wanted
        if shown
    }


def _last_moment(data: ReportData) -> datetime:
    """When something last happened in a run that has not ended."""
    times = [attempt.time for problem in data.problems for attempt in problem.attempts]
    return max([data.run.started, *times])


def _environment() -> Environment:
    environment = Environment(
        loader=DictLoader({"page.html.j2": _asset("page.html.j2")}),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "speedup": _speedup,
        "latency": latency_text,
        "moment": lambda moment: f"{moment:%Y-%m-%d %H:%M:%S} UTC{moment:%z}".replace("+0000", ""),
        "data": _json,
    }
    return environment


def _visible(value: object) -> object:
    """What is put into the page: text loses characters that reorder or hide others."""
    return plain(value, limit=TEXT_CHARS) if type(value) is str else value


def _speedup(speedup: Speedup | None) -> str:
    if speedup is None:
        return "–"
    return speedup_text(speedup.median, speedup.low, speedup.high)


def _json(figure: figures.Figure) -> Markup:
    """JSON for a ``script`` element: nothing in it can end the element."""
    text = json.dumps(figure, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e"))  # noqa: S704


def _inline_script(text: str) -> str:
    """Script text that cannot end its element early."""
    return re.sub(r"</(?=script)", r"<\\/", text, flags=re.IGNORECASE)


def _asset(name: str) -> str:
    return files("kernelarc.clients.report").joinpath(name).read_text(encoding="utf-8")
