import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from kernelarc.clients.event_lines import line
from kernelarc.clients.live import clock_time, live_view, render
from kernelarc.clients.run_record import RunEvent
from kernelarc.clients.run_view import RunView
from kernelarc.clients.text import plain, speedup_text

HOSTILE = "[bold]x[/nope] \x1b[2J\x1b]0;title\x07 \u202eevil\u200b \x9b31m a\r\nb"

STARTED = RunEvent(
    "",
    "run_started",
    {
        "run": "r_7",
        "problems": ["rmsnorm", "gemm"],
        "agents": {"ada": "ready", "bob": "finished"},
        "minutes": 2.0,
        "elapsed_s": 30.0,
    },
)
WORK = RunEvent(
    "ada",
    "agent_started",
    {"problem": "rmsnorm", "strategy": "vectorise", "attempts": 3, "limit": 9},
)
LEADS = RunEvent(
    "ada",
    "leader",
    {
        "problem": "rmsnorm",
        "solution_id": "0123456789abcdef",
        "strategy": "vectorise",
        "agent": "ada",
        "speedup": 2.5,
        "low": 2.4,
        "high": 2.61,
        "roofline": 0.42,
    },
)
INSIGHT = RunEvent("ada", "step", {"step": "insight", "text": "wider is better", "attempts": 4})


def shown(*events, terminal=False, width=110):
    view = RunView()
    for event in events:
        view.apply(event)
    console = Console(file=io.StringIO(), width=width, force_terminal=terminal)
    console.print(render(view, 15.0))
    return console.file.getvalue()


def test_the_picture_has_the_numbers_with_their_interval():
    picture = shown(STARTED, WORK, LEADS, INSIGHT)
    for text in ("r_7", "00:45 elapsed", "01:15 left", "01234567", "2.50x [2.40, 2.61]", "42%"):
        assert text in picture
    for text in ("4/9", "working", "finished", "wider is better", "the reference"):
        assert text in picture


def test_what_was_not_measured_is_not_invented():
    leader = RunEvent("", "leader", {"problem": "rmsnorm", "solution_id": "ab" * 16})
    picture = shown(STARTED, leader)
    row = next(text for text in picture.splitlines() if "abababab" in text)
    assert "x" not in row.split("│")[4]
    assert "%" not in row


@pytest.mark.parametrize(
    ("opponent", "said"), [("reference", "the reference"), ("ab" * 16, "the leader")]
)
def test_a_line_says_whom_a_speedup_is_over(opponent, said):
    facts = {"step": "benchmark", "status": "PROMOTED", "speedup": 1.5, "compared_with": opponent}
    assert line(RunEvent("ada", "step", facts)).plain == f"ada: PROMOTED, 1.500x {said} ()"


def test_a_narrow_terminal_is_enough():
    assert all(len(row) <= 60 for row in shown(STARTED, WORK, LEADS, width=60).splitlines())


def test_markup_and_control_characters_of_agents_have_no_effect():
    step = RunEvent("ada", "step", {"step": "insight", "text": HOSTILE, "status": HOSTILE})
    picture = shown(STARTED, step)
    assert "[bold]x[/nope]" in picture
    assert not set("\x1b\x07\x9b\u202e\u200b\r") & set(picture)


payloads = st.dictionaries(
    st.sampled_from(["problem", "strategy", "text", "status", "step", "agents", "problems"]),
    st.none() | st.text() | st.floats() | st.lists(st.text()) | st.just("insight"),
)
KINDS = """run_started agent_started step leader reassigned problem_done agent_ended stopping
    run_ended from_the_future"""
kinds = st.sampled_from(re.findall(r"\w+", KINDS))
events = st.builds(RunEvent, agent=st.text(), kind=kinds, payload=payloads)


@given(st.lists(events, max_size=8))
def test_no_event_however_odd_breaks_the_view(happened):
    picture = shown(*happened)
    assert "\x1b" not in picture
    for event in happened:
        text = line(event)
        assert text is None or "\n" not in text.plain


@given(st.text())
def test_plain_text_is_one_short_printable_line(text):
    cleaned = plain(text, limit=20)
    assert len(cleaned) <= 20
    assert cleaned.isprintable()
    assert plain(cleaned, limit=20) == cleaned


def test_lines_leave_out_what_another_line_says():
    passed = RunEvent("ada", "step", {"step": "verdict", "status": "PASSED"})
    failed = RunEvent("ada", "step", {"step": "verdict", "status": "CRASH", "strategy": "tiling"})
    assert line(passed) is None
    assert line(failed).plain == "ada: CRASH (tiling)"
    assert line(LEADS).plain == "ada: leads rmsnorm, 2.50x the reference [2.40, 2.61]"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "00:00"), (-5, "00:00"), (3723.9, "1:02:03"), (59.9, "00:59")]
)
def test_clock_times_are_readable(seconds, text):
    assert clock_time(seconds) == text


def test_a_median_without_bounds_is_shown_without():
    assert speedup_text(1.234, None, 2.0) == "1.23x"


@pytest.mark.anyio
async def test_without_a_terminal_each_noteworthy_event_is_one_line():
    console = Console(file=io.StringIO(), width=80)
    async with live_view(console, clock=lambda: 0.0) as observe:
        for event in (STARTED, WORK, LEADS, INSIGHT):
            observe(event)
    lines = console.file.getvalue().splitlines()
    assert lines == [
        "00:00 run r_7: 2 agents on rmsnorm, gemm",
        "00:00 ada: works on rmsnorm by vectorise, 9 attempts, 3 made",
        "00:00 ada: leads rmsnorm, 2.50x the reference [2.40, 2.61]",
        "00:00 ada: insight: wider is better",
    ]


@pytest.mark.anyio
async def test_on_a_terminal_the_picture_moves_and_stops_before_a_second_signal():
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)
    async with live_view(console) as observe:
        observe(STARTED)
        observe(LEADS)
        observe(RunEvent("", "stopping", {"signal": "SIGINT"}))
        stopped = console.file.getvalue()
        observe(RunEvent("ada", "agent_ended", {"state": "ready", "reason": "interrupted"}))
    assert "2.50x [2.40, 2.61]" in stopped
    assert stopped.rstrip().endswith("stopping (SIGINT); once more to kill")
    assert stopped.rfind("\x1b[?25h") > stopped.rfind("\x1b[?25l")
    assert "ada: ready: interrupted" in console.file.getvalue()[len(stopped) :]
