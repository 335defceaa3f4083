"""Who works on what, from which angle.

Strategies are given out so that the team covers different angles: on each problem every agent
begins with a strategy that no other has, as long as there are any, and problems begin at
different places of the list, so that a strategy is not tried everywhere at once.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelarc.clients.agents.base import Assignment, Toolbox
from kernelarc.clients.answers import records
from kernelarc.clients.run_spec import AUTO, AgentSpec, RunSpec
from kernelarc.guard.errors import RequestError


@dataclass(frozen=True)
class Seat:
    """One agent's place in a run."""

    agent: AgentSpec
    assignments: tuple[Assignment, ...]
    """Worked on one after the other; more than one when there are fewer agents than problems."""

    @property
    def pinned(self) -> bool:
        """Whether the strategy was named by the user."""
        return self.agent.strategy != AUTO


class StrategyPool:
    """The strategies of one problem: hands out the one that fewest agents have had."""

    def __init__(self, strategies: Sequence[str], *, start: int = 0) -> None:
        if not strategies:
            raise RequestError("a strategy pool needs at least one strategy.")
        start %= len(strategies)
        self._order = (*strategies[start:], *strategies[:start])
        self._given: Counter[str] = Counter()

    def take(self) -> str:
        """The next strategy: the one given least often, in order."""
        strategy = min(self._order, key=lambda candidate: self._given[candidate])
        self.claim(strategy)
        return strategy

    def take_fresh(self) -> str | None:
        """The next strategy that nobody has had; ``None`` when there is none left."""
        strategy = next((item for item in self._order if not self._given[item]), None)
        if strategy is not None:
            self.claim(strategy)
        return strategy

    def claim(self, strategy: str) -> None:
        """Note that an agent works with ``strategy``, however it came to it."""
        self._given[strategy] += 1


async def survey(toolbox: Toolbox, problems: Sequence[str]) -> dict[str, list[str]]:
    """Ask the server which strategies apply to each problem on its device.

    Raises:
        ToolFailed: the server does not know a problem.
    """
    found: dict[str, list[str]] = {}
    for problem in problems:
        answer = await toolbox.call("get_problem", problem=problem)
        found[problem] = [str(line["id"]) for line in records(answer.get("strategies"))]
    return found


def strategy_pools(
    spec: RunSpec, applicable: Mapping[str, Sequence[str]]
) -> dict[str, StrategyPool]:
    """One pool per problem of the run.

    Args:
        spec: The run.
        applicable: Ids of the strategies that apply to each problem, best first.

    Raises:
        RequestError: no strategy applies to a problem.
    """
    pools: dict[str, StrategyPool] = {}
    for index, problem in enumerate(spec.problems):
        if not applicable.get(problem):
            raise RequestError(
                f"no strategy applies to {problem!r} on the device {spec.device!r}. Add a playbook "
                "for its category or leave the problem out."
            )
        pools[problem] = StrategyPool(applicable[problem], start=index)
    return pools


def assign(
    spec: RunSpec,
    pools: Mapping[str, StrategyPool],
    applicable: Mapping[str, Sequence[str]],
) -> list[Seat]:
    """Give every agent its problems and a strategy for each.

    The result depends on nothing but the arguments, so a resumed run finds the same seats.

    Args:
        spec: The run.
        pools: Fresh pools from ``strategy_pools``; what is given out is noted in them.
        applicable: Ids of the strategies that apply to each problem.

    Returns:
        One seat per agent, in the order of ``spec.agents``. Every problem is in some seat.

    Raises:
        RequestError: an agent names a strategy that does not apply.
    """
    places = {agent.name: _problems_of(index, spec) for index, agent in enumerate(spec.agents)}
    for agent in spec.agents:
        for problem in places[agent.name]:
            _claim_named(agent, problem, pools[problem], applicable[problem])
    return [
        Seat(
            agent=agent,
            assignments=tuple(
                Assignment(
                    problem=problem,
                    strategy=pools[problem].take() if agent.strategy == AUTO else agent.strategy,
                    seed=_seed(spec, agent, problem),
                    agent=agent.name,
                )
                for problem in places[agent.name]
            ),
        )
        for agent in spec.agents
    ]


def _problems_of(index: int, spec: RunSpec) -> list[str]:
    agents, problems = len(spec.agents), spec.problems
    return problems[index::agents] if index < len(problems) else [problems[index % len(problems)]]


def _claim_named(
    agent: AgentSpec, problem: str, pool: StrategyPool, applicable: Sequence[str]
) -> None:
    """Named strategies are taken first, so that the automatic ones go elsewhere."""
    if agent.strategy == AUTO:
        return
    if agent.strategy not in applicable:
        raise RequestError(
            f"agent {agent.name!r}: strategy {agent.strategy!r} does not apply to {problem!r}. "
            f"Use {AUTO!r} or one of: {', '.join(applicable)}."
        )
    pool.claim(agent.strategy)


def _seed(spec: RunSpec, agent: AgentSpec, problem: str) -> int:
    if agent.seed is not None:
        return agent.seed
    digest = hashlib.sha256(f"{spec.seed}\n{agent.name}\n{problem}".encode()).digest()
    return int.from_bytes(digest[:4], "big")
