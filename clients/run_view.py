"""The state of a run as its events tell it: what a live view shows."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from kernelarc.clients.answers import number
from kernelarc.clients.run_record import AgentState, RunEvent

BOARD_LINES = 5


@dataclass
class ProblemView:
    """One problem. ``None``: not measured, or not heard of."""

    leader: str = ""
    """Solution id; empty while the reference leads."""
    strategy: str = ""
    agent: str = ""
    speedup: float | None = None
    """Reference time over leader time, median."""
    low: float | None = None
    high: float | None = None
    roofline: float | None = None
    """Floor over latency, geometric mean over the workloads."""
    done: str = ""
    """Why nobody works on it any more."""


@dataclass
class AgentView:
    """One agent."""

    state: str = AgentState.READY.value
    problem: str = ""
    strategy: str = ""
    attempts: int = 0
    limit: int | None = None
    last: str = ""
    """Status of the last verdict or benchmark, or how the agent ended."""


@dataclass(frozen=True)
class Post:
    """An insight as its author reported it."""

    agent: str
    text: str


@dataclass
class RunView:
    """Everything that is shown; ``apply`` keeps it up to date."""

    run: str = ""
    minutes: float | None = None
    elapsed_s: float = 0.0
    """Wall-clock time of earlier sittings."""
    problems: dict[str, ProblemView] = field(default_factory=dict)
    agents: dict[str, AgentView] = field(default_factory=dict)
    board: deque[Post] = field(default_factory=lambda: deque(maxlen=BOARD_LINES))
    closing: str = ""
    """Why the run ends or has ended."""

    def apply(self, event: RunEvent) -> None:
        """Take note of an event; kinds of a newer orchestrator are passed over."""
        payload = event.payload
        match event.kind:
            case "run_started":
                self._begin(payload)
            case "leader":
                self._lead(_problem(self, payload), payload)
            case "agent_started" | "reassigned":
                self._assign(event.agent, payload)
            case "step":
                self._step(event.agent, payload)
            case "problem_done":
                _problem(self, payload).done = _text(payload, "reason")
            case "agent_ended":
                agent = _agent(self, event.agent)
                agent.state, agent.last = _text(payload, "state"), _text(payload, "reason")
            case "stopping":
                self.closing = f"stopping ({_text(payload, 'signal')}); once more to kill"
            case "run_ended":
                self.closing = f"{_text(payload, 'state')}: {_text(payload, 'reason')}"

    def _begin(self, payload: Mapping[str, JsonValue]) -> None:
        self.run = _text(payload, "run")
        self.minutes = number(payload.get("minutes"))
        self.elapsed_s = number(payload.get("elapsed_s")) or 0.0
        problems, agents = payload.get("problems"), payload.get("agents")
        if isinstance(problems, list):
            self.problems = {str(name): ProblemView() for name in problems}
        if isinstance(agents, dict):
            self.agents = {name: AgentView(state=str(state)) for name, state in agents.items()}

    def _lead(self, problem: ProblemView, payload: Mapping[str, JsonValue]) -> None:
        problem.leader = _text(payload, "solution_id")
        problem.strategy = _text(payload, "strategy")
        problem.agent = _text(payload, "agent")
        problem.speedup = number(payload.get("speedup"))
        problem.low, problem.high = number(payload.get("low")), number(payload.get("high"))
        problem.roofline = number(payload.get("roofline"))

    def _assign(self, name: str, payload: Mapping[str, JsonValue]) -> None:
        agent = _agent(self, name)
        agent.state = AgentState.WORKING.value
        agent.problem = _text(payload, "problem")
        agent.strategy = _text(payload, "strategy")
        self._count(agent, payload)

    def _step(self, name: str, payload: Mapping[str, JsonValue]) -> None:
        agent = _agent(self, name)
        agent.strategy = _text(payload, "strategy") or agent.strategy
        agent.last = _text(payload, "status") or agent.last
        self._count(agent, payload)
        if payload.get("step") == "insight":
            self.board.append(Post(name, _text(payload, "text")))

    def _count(self, agent: AgentView, payload: Mapping[str, JsonValue]) -> None:
        attempts, limit = number(payload.get("attempts")), number(payload.get("limit"))
        agent.attempts = agent.attempts if attempts is None else int(attempts)
        agent.limit = agent.limit if limit is None else int(limit)


def _problem(view: RunView, payload: Mapping[str, JsonValue]) -> ProblemView:
    return view.problems.setdefault(_text(payload, "problem"), ProblemView())


def _agent(view: RunView, name: str) -> AgentView:
    return view.agents.setdefault(name, AgentView())


def _text(payload: Mapping[str, JsonValue], key: str) -> str:
    value = payload.get(key)
    return value if isinstance(value, str) else ""
