"""What a run is asked to do. Stored with the run, so that it can be resumed and repeated."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

AUTO = "auto"
"""Stands for "whichever strategy nobody has yet"."""

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
AgentKind = Literal["builtin", "llm", "command"]


class Spec(BaseModel):
    """Base of the parts of a run's specification."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class AgentSpec(Spec):
    """One agent of the team."""

    name: Name
    """Unique in the run; shown on the board."""
    kind: AgentKind = "builtin"
    """``builtin``: search without a model. ``llm``: a model behind an API. ``command``: a program
    that speaks MCP."""
    strategy: str = AUTO
    """Id of the strategy to begin with, or ``auto``. A named one is kept: only a plateau, never
    the orchestrator, moves the agent on."""
    seed: int | None = None
    """Of the agent's own choices; derived from the run's seed when absent."""
    options: dict[str, JsonValue] = Field(default_factory=dict)
    """For the kind: the model's name, the command line, ..."""


class Budgets(Spec):
    """When to stop. At least one must be set."""

    attempts: Annotated[int, Field(ge=1)] | None = 40
    """Submissions of each agent to each of its problems."""
    minutes: Annotated[float, Field(gt=0)] | None = 30.0
    """Wall-clock minutes of the whole run, earlier sittings included."""

    @model_validator(mode="after")
    def _ends(self) -> Self:
        if self.attempts is None and self.minutes is None:
            raise ValueError("a run needs an end: set attempts, minutes or both")
        return self


class BoardSpec(Spec):
    """How much agents learn from each other."""

    cap: Annotated[int, Field(ge=0)] | None = None
    """Insights of a problem that an agent may see; absent: all, 0: none (every agent alone)."""


class PlateauSpec(Spec):
    """When the server demands another strategy. Absent: the server's own rule."""

    agent_patience: Annotated[int, Field(ge=1)] | None = None
    """Verified attempts of one agent without a promotion."""
    problem_patience: Annotated[int, Field(ge=1)] | None = None
    """Verified attempts of all agents without a promotion."""
    duplicate_similarity: Annotated[float, Field(gt=0, le=1)] | None = None
    """From which similarity on two sources are near-duplicates."""
    duplicate_streak: Annotated[int, Field(ge=1)] | None = None
    """Near-duplicates in a row."""
    roofline_stop: Annotated[float, Field(gt=0, le=1)] | None = None
    """Share of the roofline at which the problem counts as done."""


class RunSpec(Spec):
    """A whole run."""

    problems: Annotated[list[str], Field(min_length=1)]
    """Names of problems, each once."""
    agents: Annotated[list[AgentSpec], Field(min_length=1)]
    budgets: Budgets = Field(default_factory=Budgets)
    seed: int = 0
    """Of the agents' choices and the assignment. The guard's inputs do not depend on it."""
    device: str = "cpu"
    """``cpu`` or ``cuda``."""
    board: BoardSpec = Field(default_factory=BoardSpec)
    plateau: PlateauSpec = Field(default_factory=PlateauSpec)

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        for what, names in (
            ("problem", self.problems),
            ("agent", [agent.name for agent in self.agents]),
        ):
            repeated = sorted(name for name, count in Counter(names).items() if count > 1)
            if repeated:
                raise ValueError(f"each {what} once: {', '.join(repeated)} is repeated")
        return self


def team(count: int, *, kind: AgentKind = "builtin") -> list[AgentSpec]:
    """``count`` agents of one kind, ``builtin-1``, ``builtin-2``, ...; strategies automatic."""
    return [AgentSpec(name=f"{kind}-{number}", kind=kind) for number in range(1, count + 1)]
