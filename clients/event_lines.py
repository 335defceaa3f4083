"""One line per noteworthy event, for logs and wherever the output is no terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import JsonValue
from rich.text import Text

from kernelarc.clients.answers import number, opponent
from kernelarc.clients.run_record import RunEvent
from kernelarc.clients.text import plain

Payload = Mapping[str, JsonValue]


def line(event: RunEvent) -> Text | None:
    """The event in one line without markup; ``None`` when it is not worth one.

    A passed verification is not: its benchmark follows.
    """
    tell = _TELL.get(event.kind)
    said = tell(event.payload) if tell is not None else None
    if said is None:
        return None
    return Text(plain(f"{event.agent}: {said}" if event.agent else said, limit=400))


def _run_started(payload: Payload) -> str:
    problems, agents = payload.get("problems"), payload.get("agents")
    names = ", ".join(map(str, problems)) if isinstance(problems, list) else ""
    count = len(agents) if isinstance(agents, dict) else 0
    return f"run {payload.get('run')}: {count} agents on {names}"


def _agent_started(payload: Payload) -> str:
    limit = number(payload.get("limit"))
    left = "" if limit is None else f", {int(limit)} attempts"
    done = int(number(payload.get("attempts")) or 0)
    made = f", {done} made" if done else ""
    return f"works on {payload.get('problem')} by {payload.get('strategy')}{left}{made}"


def _step(payload: Payload) -> str | None:
    step, status = payload.get("step"), payload.get("status", "")
    if step == "verdict" and status == "PASSED":
        return None
    if step in ("verdict", "benchmark"):
        speedup = number(payload.get("speedup"))
        than = opponent(payload.get("compared_with"))
        measured = "" if speedup is None else f", {speedup:.3f}x {than}"
        return f"{status}{measured} ({payload.get('strategy', '')})"
    if step in ("pivot", "insight"):
        return f"{step}: {payload.get('text', '')}"
    return None


def _leader(payload: Payload) -> str:
    speedup = number(payload.get("speedup"))
    measured = "" if speedup is None else f", {speedup:.2f}x the reference"
    low, high = number(payload.get("low")), number(payload.get("high"))
    interval = "" if low is None or high is None else f" [{low:.2f}, {high:.2f}]"
    return f"leads {payload.get('problem')}{measured}{interval}"


_TELL: dict[str, Callable[[Payload], str | None]] = {
    "run_started": _run_started,
    "agent_started": _agent_started,
    "step": _step,
    "leader": _leader,
    "reassigned": lambda payload: f"moves on to {payload.get('strategy')}",
    "problem_done": lambda payload: f"{payload.get('problem')} is done: {payload.get('reason')}",
    "agent_ended": lambda payload: f"{payload.get('state')}: {payload.get('reason')}",
    "stopping": lambda payload: f"stopping ({payload.get('signal')}); once more to kill",
    "run_ended": lambda payload: f"run {payload.get('state')}: {payload.get('reason')}",
}
