"""What a run leaves behind while it goes on: states and events.

The orchestrator knows neither a database nor a screen. It tells a ``RunRecorder`` what must
survive a crash, and an ``Observer`` what is worth showing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from pydantic import JsonValue


class AgentState(StrEnum):
    """Where an agent of a run stands."""

    READY = "ready"
    """Not started, or interrupted: a resumed run starts it."""
    WORKING = "working"
    FINISHED = "finished"
    """It ended by itself or used its budget; a resumed run leaves it alone."""
    FAILED = "failed"
    """It raised; a resumed run gives it another chance."""


class RunState(StrEnum):
    """Where a run stands."""

    RUNNING = "running"
    INTERRUPTED = "interrupted"
    """Stopped by a signal; may be resumed."""
    FINISHED = "finished"
    FAILED = "failed"
    """Every agent failed."""


@dataclass(frozen=True)
class RunEvent:
    """Something that happened.

    Kinds: ``run_started``, ``agent_started``, ``step`` (an ``AgentStep``, its kind under
    ``step``), ``leader``, ``reassigned``, ``problem_done``, ``agent_ended``, ``stopping``,
    ``run_ended``.
    """

    agent: str
    """Name of the agent; empty for the run itself."""
    kind: str
    payload: Mapping[str, JsonValue]
    """Texts in it may be an agent's own words: show them as data."""


Observer = Callable[[RunEvent], None]
"""Told of each event in the event loop's thread; must return at once."""


class RunRecorder(Protocol):
    """Keeps a run's record. Each call returns when what it was told survives a crash."""

    async def record_event(self, agent: str, kind: str, payload: Mapping[str, JsonValue]) -> None:
        """Append an event; ``agent`` is empty for the run itself."""
        ...

    async def agent_state(self, agent: str, state: AgentState, *, reason: str) -> None:
        """Note where an agent stands."""
        ...

    async def finish(self, state: RunState, *, reason: str) -> None:
        """Note how the run, or this sitting of it, ended."""
        ...
