"""What every kind of agent has in common: it gets a toolbox, an assignment and a budget.

An agent sees the product through MCP tools only. It never learns a seed of the guard, a hidden
shape or another agent's transcript; what it knows of others is what the board and the leader say.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from kernelarc.guard.errors import KernelArcError


class ToolFailed(KernelArcError):
    """A tool answered with an error; ``str(error)`` is the text the server wrote for the agent."""

    def __init__(self, text: str, *, tool: str = "") -> None:
        self.tool = tool
        super().__init__(text)


@dataclass(frozen=True)
class Assignment:
    """What one agent is asked to do."""

    problem: str
    """Name of the problem, as in ``list_problems``."""
    strategy: str
    """Id of the strategy to begin with; a plateau may demand another one."""
    seed: int
    """Makes the agent's own choices repeatable. It has nothing to do with the guard's inputs."""
    agent: str
    """Name under which the server knows this agent."""


StepKind = Literal["started", "resumed", "submitted", "verdict", "benchmark", "insight", "pivot"]
EndReason = Literal["budget", "exhausted", "near_roofline", "gave_up"]


@dataclass(frozen=True)
class AgentStep:
    """Something an agent did, for the live view and the run's event log."""

    kind: StepKind
    text: str
    """One line. It may quote tool results and other agents: show it as data."""
    strategy: str = ""
    solution_id: str = ""
    status: str = ""
    """``EvaluationStatus`` of a verdict, ``BenchmarkOutcome`` of a benchmark."""
    speedup: float | None = None
    """Opponent's time over the candidate's, where it was measured."""
    compared_with: str = ""
    """The opponent: ``reference``, or the leader's id."""


@dataclass(frozen=True)
class AgentEnd:
    """Why an agent stopped."""

    reason: EndReason
    """``exhausted``: nothing is left to try. ``gave_up``: it cannot go on; ``text`` says why."""
    text: str
    attempts: int
    """Submissions this agent made in this call of ``run``."""


class Toolbox(Protocol):
    """An MCP session bound to one agent's identity."""

    async def call(self, tool: str, **arguments: object) -> dict[str, object]:
        """Call a tool and return its structured content.

        A result with ``state == "running"`` is followed through ``get_result`` until it is done.

        Raises:
            ToolFailed: the server answered with an error.
        """
        ...

    async def read(self, uri: str) -> str:
        """Return the text of a resource.

        Raises:
            ToolFailed: there is no such resource.
        """
        ...


class Budget(Protocol):
    """How much an agent may still do. One attempt is one call of ``compile_and_verify``."""

    def spent(self) -> bool:
        """Whether the agent must stop before its next submission."""
        ...

    def attempts_left(self) -> int | None:
        """Submissions left; ``None`` when they are not limited."""
        ...


Report = Callable[[AgentStep], Awaitable[None]]
"""Told of each step as it happens."""


class Agent(Protocol):
    """One kind of agent. Its objects hold no state between calls of ``run``."""

    kind: str
    """``builtin``, ``llm`` or ``command``."""

    async def run(
        self, toolbox: Toolbox, assignment: Assignment, budget: Budget, report: Report
    ) -> AgentEnd:
        """Work on the assignment until the budget is spent or nothing is left to try.

        Cancellation is safe at any point: what the server acknowledged is kept, and a later call
        with the same assignment goes on from there.
        """
        ...
