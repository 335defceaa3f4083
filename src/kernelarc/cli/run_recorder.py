"""A run's record, kept in the archive."""

from __future__ import annotations

from collections.abc import Mapping

import anyio.to_thread
from pydantic import JsonValue

from kernelarc.clients.run_record import AgentState, RunState
from kernelarc.memory import rows
from kernelarc.memory.archive import Archive


class ArchiveRecorder:
    """Implements ``clients.run_record.RunRecorder`` over memory."""

    def __init__(self, archive: Archive, run_id: str, agents: Mapping[str, str]) -> None:
        """``agents``: agent id by name."""
        self._archive = archive
        self._run_id = run_id
        self._agents = agents

    async def record_event(self, agent: str, kind: str, payload: Mapping[str, JsonValue]) -> None:
        """Append an event; ``agent`` is empty for the run itself."""
        await anyio.to_thread.run_sync(
            lambda: self._archive.runs.add_event(
                kind, payload, run=self._run_id, agent=self._agents.get(agent)
            )
        )

    async def agent_state(self, agent: str, state: AgentState, *, reason: str) -> None:
        """Note where an agent stands; the reason is in the event that goes with it."""
        del reason
        target = rows.AgentState(state.value)
        await anyio.to_thread.run_sync(
            lambda: self._archive.runs.set_agent_state(self._agents[agent], target)
        )

    async def finish(self, state: RunState, *, reason: str) -> None:
        """Note how this sitting ended."""
        target = rows.RunState(state.value)
        await anyio.to_thread.run_sync(
            lambda: self._archive.runs.set_run_state(self._run_id, target, reason=reason)
        )


def earlier_seconds(archive: Archive, run_id: str) -> float:
    """Time that earlier sittings of a run took, by its events: also of one that was killed."""
    total, begun, last, after = 0.0, None, 0.0, 0
    while events := archive.runs.events(run_id, after=after):
        for event in events:
            if event.kind == "run_started":
                total += last - begun if begun is not None else 0.0
                begun = event.created_at
            last = event.created_at
        after = events[-1].id
    return total + (last - begun if begun is not None else 0.0)
