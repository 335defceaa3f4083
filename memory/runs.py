"""Runs, agents and events."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from sqlite_utils import Database

from kernelarc.guard.errors import RequestError, UnknownId
from kernelarc.memory import queries
from kernelarc.memory.connection import Store, insert
from kernelarc.memory.ids import Prefix, number, optional_number, optional_short, short
from kernelarc.memory.rows import Agent, AgentState, Event, Run, RunState


class Runs:
    """Who works, on whose behalf, and what happened. See ``Archive`` for the rules of use."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock

    def start_run(self, spec: Mapping[str, Any]) -> Run:
        """Record a new run; ``spec`` is its configuration, JSON values only, no secrets."""
        row = {
            "spec": json.dumps(spec),
            "state": str(RunState.RUNNING),
            "reason": "",
            "started_at": self._clock(),
        }
        with self._store.write() as db:
            return load_run(db, insert(db, "runs", row))

    def set_run_state(self, run: str, state: RunState, *, reason: str = "") -> Run:
        """Move a run on; ``reason`` says in a sentence why. Any state but running ends it.

        Raises:
            UnknownId: There is no such run.
        """
        row_id = number(Prefix.RUN, run)
        now = self._clock()
        ended = None if state is RunState.RUNNING else now
        with self._store.write() as db:
            load_run(db, row_id)
            db.table("runs").update(
                row_id, {"state": str(state), "reason": reason, "ended_at": ended}
            )
            payload = {"state": str(state), "reason": reason}
            append_event(db, row_id, None, "run", payload, now)
            return load_run(db, row_id)

    def run(self, run: str) -> Run:
        """One run; ``UnknownId`` if there is none of that id."""
        with self._store.read() as db:
            return load_run(db, number(Prefix.RUN, run))

    def runs(self) -> list[Run]:
        """All runs, newest first."""
        with self._store.read() as db:
            return [_as_run(row) for row in db.query(queries.RUN + "ORDER BY id DESC")]

    def ensure_agent(
        self,
        name: str,
        *,
        run: str | None = None,
        kind: str = "local",
        strategy: str | None = None,
        token: str | None = None,
    ) -> Agent:
        """The agent of that name in that run, created if needed.

        Args:
            name: Unique within the run (or among the agents without a run).
            run: Run id; ``None`` for an agent that belongs to none, as ``local`` does.
            kind: ``builtin``, ``llm``, ``command``, ``local``, ...
            strategy: Its angle of attack, if it has a fixed one.
            token: Secret that it will identify itself with. Only its SHA-256 is stored. For an
                agent that exists it replaces the old one; ``None`` keeps that.

        Raises:
            UnknownId: There is no such run.
            RequestError: Another agent has that token.
        """
        run_id = optional_number(Prefix.RUN, run)
        digest = None if token is None else token_digest(token)
        with self._store.write() as db:
            if run_id is not None:
                load_run(db, run_id)
            owner = next(db.query(queries.AGENT_BY_TOKEN, {"digest": digest}), None)
            found = next(db.query(queries.AGENT_BY_NAME, {"run": run_id, "name": name}), None)
            if owner is not None and (found is None or owner["id"] != found["id"]):
                raise RequestError("another agent has that token; make a new random one.")
            if found is None:
                row = {
                    "run_id": run_id,
                    "name": name,
                    "kind": kind,
                    "strategy": strategy,
                    "token_digest": digest,
                    "state": str(AgentState.READY),
                    "created_at": self._clock(),
                }
                return _agent(db, insert(db, "agents", row))
            if digest is not None:
                db.table("agents").update(found["id"], {"token_digest": digest})
            return _agent(db, found["id"])

    def agent(self, agent: str) -> Agent:
        """One agent; ``UnknownId`` if there is none of that id."""
        with self._store.read() as db:
            return _agent(db, number(Prefix.AGENT, agent))

    def agent_by_token(self, token: str) -> Agent | None:
        """The agent that identifies itself with ``token``; ``None`` for none or a revoked one."""
        with self._store.read() as db:
            row = next(db.query(queries.AGENT_BY_TOKEN, {"digest": token_digest(token)}), None)
        if row is None or row["state"] == AgentState.REVOKED:
            return None
        return _as_agent(row)

    def agents(self, run: str | None) -> list[Agent]:
        """The agents of a run (``None``: those without one), in order of creation."""
        run_id = optional_number(Prefix.RUN, run)
        with self._store.read() as db:
            return agents_of(db, run_id)

    def set_agent_state(
        self, agent: str, state: AgentState, *, strategy: str | None = None
    ) -> Agent:
        """Move an agent on, and to another strategy if one is given; ``UnknownId`` if none."""
        row_id = number(Prefix.AGENT, agent)
        changes = {"state": str(state)} | ({} if strategy is None else {"strategy": strategy})
        with self._store.write() as db:
            run_id = run_of(db, row_id)
            db.table("agents").update(row_id, changes)
            append_event(db, run_id, row_id, "agent", changes, self._clock())
            return _agent(db, row_id)

    def add_event(
        self,
        kind: str,
        payload: Mapping[str, Any],
        *,
        run: str | None = None,
        agent: str | None = None,
    ) -> int:
        """Append an event; returns its number.

        Memory itself appends ``submission``, ``verdict``, ``benchmark``, ``promotion``,
        ``insight``, ``job``, ``run`` and ``agent`` with what they are about.

        Args:
            kind: What happened.
            payload: JSON values only, no secrets.
            run: Run id; taken from the agent when left out.
            agent: Agent id.

        Raises:
            UnknownId: There is no such run or agent.
        """
        run_id = optional_number(Prefix.RUN, run)
        agent_id = optional_number(Prefix.AGENT, agent)
        with self._store.write() as db:
            if run_id is not None:
                load_run(db, run_id)
            if agent_id is not None:
                own_run = run_of(db, agent_id)
                run_id = own_run if run_id is None else run_id
            return append_event(db, run_id, agent_id, kind, payload, self._clock())

    def events(self, run: str | None, *, after: int = 0, limit: int = 1000) -> list[Event]:
        """Events in order, for live views: pass the last event's id as ``after`` to go on.

        Args:
            run: Run id; ``None`` for the events of all runs and of none.
            after: Only events with a larger id.
            limit: At most so many.
        """
        run_id = optional_number(Prefix.RUN, run)
        conditions = ["id > :after"] + ([] if run_id is None else ["run_id = :run"])
        sql = queries.where(queries.EVENT, conditions, "ORDER BY id LIMIT :limit")
        with self._store.read() as db:
            rows = list(db.query(sql, {"run": run_id, "after": after, "limit": limit}))
        return [
            Event(
                id=row["id"],
                run=optional_short(Prefix.RUN, row["run_id"]),
                agent=optional_short(Prefix.AGENT, row["agent_id"]),
                kind=row["kind"],
                payload=json.loads(row["payload"]),
                created_at=row["created_at"],
            )
            for row in rows
        ]


def token_digest(token: str) -> str:
    """SHA-256 of a token, 64 hex digits: what is stored instead of it."""
    return hashlib.sha256(token.encode()).hexdigest()


def append_event(
    db: Database,
    run_id: int | None,
    agent_id: int | None,
    kind: str,
    payload: Mapping[str, Any],
    now: float,
) -> int:
    """Append an event inside an open transaction; returns its number."""
    row = {
        "run_id": run_id,
        "agent_id": agent_id,
        "kind": kind,
        "payload": json.dumps(payload),
        "created_at": now,
    }
    return insert(db, "events", row)


def run_of(db: Database, agent_id: int) -> int | None:
    """Row number of the agent's run; ``UnknownId`` if there is no such agent."""
    row = next(db.query(queries.AGENT + "WHERE id = :id", {"id": agent_id}), None)
    if row is None:
        raise UnknownId("agent", short(Prefix.AGENT, agent_id))
    found: int | None = row["run_id"]
    return found


def agents_of(db: Database, run_id: int | None) -> list[Agent]:
    """The agents of a run, or those without one, inside an open transaction."""
    return [_as_agent(row) for row in db.query(queries.AGENTS_OF_RUN, {"run": run_id})]


def load_run(db: Database, row_id: int) -> Run:
    """A run inside an open transaction; ``UnknownId`` if there is none of that number."""
    row = next(db.query(queries.RUN + "WHERE id = :id", {"id": row_id}), None)
    if row is None:
        raise UnknownId("run", short(Prefix.RUN, row_id))
    return _as_run(row)


def _as_run(row: dict[str, Any]) -> Run:
    return Run(
        id=short(Prefix.RUN, row["id"]),
        spec=json.loads(row["spec"]),
        state=RunState(row["state"]),
        reason=row["reason"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
    )


def _agent(db: Database, row_id: int) -> Agent:
    row = next(db.query(queries.AGENT + "WHERE id = :id", {"id": row_id}), None)
    if row is None:
        raise UnknownId("agent", short(Prefix.AGENT, row_id))
    return _as_agent(row)


def _as_agent(row: dict[str, Any]) -> Agent:
    return Agent(
        id=short(Prefix.AGENT, row["id"]),
        run=optional_short(Prefix.RUN, row["run_id"]),
        name=row["name"],
        kind=row["kind"],
        strategy=row["strategy"],
        state=AgentState(row["state"]),
    )
