"""Shows a run while it goes on: tables that update in a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from kernelarc.clients.event_lines import line
from kernelarc.clients.run_record import Observer, RunEvent
from kernelarc.clients.run_view import AgentView, ProblemView, RunView
from kernelarc.clients.text import plain, safe, speedup_text

FRAMES_PER_S = 2
"""Pictures a second: the clock in them is in seconds."""

_GOOD = frozenset({"PASSED", "PROMOTED"})
_NEUTRAL = frozenset({"BACKUP", "TIE", "INCONCLUSIVE"})

Clock = Callable[[], float]


@contextlib.asynccontextmanager
async def live_view(console: Console, *, clock: Clock = time.monotonic) -> AsyncIterator[Observer]:
    """Shows what the yielded observer is told.

    On a terminal the picture is redrawn twice a second until the run is being stopped; from
    then on, and wherever the output is no terminal, each noteworthy event is a line.

    Args:
        console: Where to show it.
        clock: Monotonic seconds.
    """
    begun = clock()

    def write(event: RunEvent) -> None:
        if (text := line(event)) is not None:
            console.print(Text(f"{clock_time(clock() - begun)} ") + text, soft_wrap=True)

    if not console.is_terminal:
        yield write
        return

    view = RunView()
    # Events arrive in the event loop's thread, pictures are drawn in the one of ``Live``: the
    # lock keeps a picture from being drawn of a view that is half-way through an event.
    lock = threading.Lock()

    def picture() -> RenderableType:
        with lock:
            return render(view, clock() - begun)

    with Live(console=console, refresh_per_second=FRAMES_PER_S, get_renderable=picture) as live:

        def observe(event: RunEvent) -> None:
            with lock:
                view.apply(event)
            if event.kind == "stopping":
                # A second signal kills at once: the terminal must be in order by then.
                live.stop()
            if not live.is_started:
                write(event)

        yield observe


def render(view: RunView, sitting_s: float) -> RenderableType:
    """The whole picture.

    Args:
        view: The state of the run.
        sitting_s: Seconds since this sitting began.
    """
    parts: list[RenderableType] = [_headline(view, sitting_s), _problems(view), _agents(view)]
    if view.board:
        parts.append(_board(view))
    return Group(*parts)


def clock_time(seconds: float) -> str:
    """``1:02:03`` or ``02:03``; negative times are shown as zero."""
    minutes, second = divmod(max(0, int(seconds)), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute:02}:{second:02}"


def _headline(view: RunView, sitting_s: float) -> Text:
    elapsed = view.elapsed_s + sitting_s
    text = Text.assemble("Run ", safe(view.run, "bold"), f"   {clock_time(elapsed)} elapsed")
    if view.minutes is not None:
        text.append(f", {clock_time(view.minutes * 60 - elapsed)} left")
    if view.closing:
        text.append("   ").append_text(safe(view.closing, "yellow"))
    return text


def _problems(view: RunView) -> Table:
    table = Table(title="Problems", title_justify="left", expand=True)
    table.add_column("Problem")
    table.add_column("Leader", no_wrap=True)
    table.add_column("By")
    table.add_column("Over reference", justify="right", no_wrap=True)
    table.add_column("Of roofline", justify="right")
    for name, problem in view.problems.items():
        table.add_row(safe(name), *_problem_cells(problem))
    return table


def _problem_cells(problem: ProblemView) -> tuple[Text, ...]:
    if not problem.leader:
        return (Text("the reference", "dim"), Text(), Text("1.00x", "dim"), Text("–", "dim"))
    by = " · ".join(filter(None, (problem.agent, problem.strategy)))
    share = "–" if problem.roofline is None else f"{problem.roofline:.0%}"
    return (
        safe(problem.leader[:8], "bold green"),
        safe(by),
        Text(speedup_text(problem.speedup, problem.low, problem.high)),
        Text(share + (" done" if problem.done else "")),
    )


def _agents(view: RunView) -> Table:
    table = Table("Agent", "Problem", "Strategy", title="Agents", title_justify="left", expand=True)
    table.add_column("Attempts", justify="right", no_wrap=True)
    table.add_column("Last")
    table.add_column("State")
    for name, agent in view.agents.items():
        table.add_row(safe(name), *_agent_cells(agent))
    return table


def _agent_cells(agent: AgentView) -> tuple[Text, ...]:
    attempts = str(agent.attempts) if agent.limit is None else f"{agent.attempts}/{agent.limit}"
    return (
        safe(agent.problem),
        safe(agent.strategy),
        Text(attempts),
        safe(agent.last, _style(agent.last), limit=60),
        safe(agent.state, "red" if agent.state == "failed" else ""),
    )


def _board(view: RunView) -> Panel:
    posts = [safe(post.agent, "cyan") + Text(f" {plain(post.text)}") for post in view.board]
    return Panel(Group(*posts), title="Board", title_align="left")


def _style(status: str) -> str:
    if status in _GOOD:
        return "green"
    return "yellow" if status in _NEUTRAL else ""
