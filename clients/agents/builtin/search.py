"""What to try next: a pure function of the seed, the agent's own attempts and the board.

A strategy's seeds come first. Then what others report as verified successes is carried over, and
then the parameters around the fastest correct points are refined one coordinate at a time: words
first, then numbers in steps that halve. When a strategy has nothing new, or the server demands a
pivot, the next strategy is the one tried least; a run that is repeated repeats its choices.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Literal

from kernelarc.clients.agents.base import Assignment
from kernelarc.clients.agents.builtin.space import Point, Space, describe, structure
from kernelarc.guard.schema import EvaluationStatus

REFINED = 3
"""How many of a strategy's fastest points are refined."""


@dataclass(frozen=True)
class Tried:
    """One of this agent's own submissions."""

    strategy: str
    point: Point
    status: EvaluationStatus | None
    """``None``: the server refused it, so nothing was judged."""
    solution_id: str = ""
    latency_us: float | None = None
    """Geometric mean over the ranked workloads; ``None`` when it was not timed."""
    speedup: float | None = None
    """Over ``leader``, measured side by side; ``None`` when nothing was decided."""
    leader: str = ""
    """What it was timed against: ``reference``, or the id of a solution."""

    @property
    def passed(self) -> bool:
        """Whether the guard found it correct."""
        return self.status is EvaluationStatus.PASSED


@dataclass(frozen=True)
class Hint:
    """Another agent's verified success, as its insight tells it."""

    agent: str
    strategy: str
    point: Point


@dataclass(frozen=True)
class Proposal:
    """The next submission."""

    strategy: str
    point: Point
    origin: Literal["seed", "hint", "step"]
    reason: str
    """One sentence for the note."""
    parent: Tried | None = None
    """The own attempt it was derived from."""


def propose(
    space: Space,
    history: Sequence[Tried],
    assignment: Assignment,
    board: Sequence[Hint] = (),
    options: Sequence[str] = (),
) -> Proposal | None:
    """The next point, or ``None`` when nothing untried is left.

    Args:
        space: Of the problem's kernel.
        history: Own submissions, oldest first, those of earlier runs included.
        assignment: Gives the seed and the strategy to begin with.
        board: Others' verified successes, the most useful first.
        options: Strategies among which a demanded pivot must choose; empty: no pivot is due.

    Returns:
        A point of the space inside its strategy, whose values were not submitted before.
    """
    tried = {describe(attempt.point) for attempt in history}
    structures = {structure(attempt.point) for attempt in history}
    strategies = _order(space, history, assignment, options)
    # A pivot must be new code, and other numbers alone are not: new structures go first.
    for shunned in (structures, set()) if options else (set(),):
        for strategy in strategies:
            for proposal in _candidates(space, history, assignment, board, strategy):
                point = proposal.point
                if describe(point) not in tried and structure(point) not in shunned:
                    return proposal
    return None


def _order(
    space: Space, history: Sequence[Tried], assignment: Assignment, options: Sequence[str]
) -> list[str]:
    """Strategies in the order in which they are asked for a point."""
    attempts = [attempt.strategy for attempt in history]
    judged = [attempt.strategy for attempt in history if attempt.status is not None]
    current = judged[-1] if judged else assignment.strategy

    def rank(strategy: str) -> tuple[bool, int, bytes]:
        stays = not options and strategy == current
        return not stays, attempts.count(strategy), _shuffle(assignment.seed, strategy)

    return sorted((s for s in space.angles if not options or s in options), key=rank)


def _candidates(
    space: Space,
    history: Sequence[Tried],
    assignment: Assignment,
    board: Sequence[Hint],
    strategy: str,
) -> Iterator[Proposal]:
    times = _times(history)
    own = [n for n, a in enumerate(history) if a.strategy == strategy and a.passed]
    fastest = [history[n] for n in sorted(own, key=times.__getitem__)[:REFINED]]
    seeds = space.seeds(strategy)
    for point in seeds:
        yield Proposal(strategy, point, "seed", f"a starting point of {strategy}.")
    yield from _from_board(space, fastest, board, strategy)
    for attempt in fastest:
        for point in _steps(space, strategy, attempt.point, assignment.seed):
            change = difference(attempt.point, point)
            yield Proposal(strategy, point, "step", f"refines {change}.", attempt)
    if not fastest:
        for seed in seeds:
            for point in _steps(space, strategy, seed, assignment.seed):
                change = difference(seed, point)
                yield Proposal(strategy, point, "step", f"a seed of {strategy} with {change}.")


def _from_board(
    space: Space, fastest: Sequence[Tried], board: Sequence[Hint], strategy: str
) -> Iterator[Proposal]:
    """Others' successes inside this strategy: whole, then one value at a time on the own best."""
    for hint in board:
        whole = space.project(strategy, hint.point)
        if whole is not None:
            reason = f"takes over what {hint.agent} found with {hint.strategy}."
            yield Proposal(strategy, whole, "hint", reason)
    for attempt in fastest[:1]:
        for hint in board:
            for name, value in hint.point.items():
                point = space.complete({**attempt.point, name: value})
                if point != attempt.point and space.fits(strategy, point):
                    reason = f"adds {name}={value}, which worked for {hint.agent}."
                    yield Proposal(strategy, point, "hint", reason, attempt)


def difference(old: Point, new: Point) -> str:
    """The values that changed: ``unroll 1 -> 4, threads one -> all``."""
    changed = [f"{name} {old[name]} -> {new[name]}" for name in new if old[name] != new[name]]
    return ", ".join(changed) or "nothing"


def _times(history: Sequence[Tried]) -> list[float]:
    """The time of each attempt, microseconds, as far as it serves to rank them.

    A machine drifts between sessions by more than most refinements gain. Attempts timed against
    the same leader, or against leaders that were timed against the same one, form a chain, and
    inside a chain only the speed-ups count: those were measured side by side. Latencies say how
    chains compare, averaged over all of a chain.
    """
    links: list[tuple[str, float] | None] = []
    of_solution: dict[str, tuple[str, float]] = {}
    first_times: dict[str, list[float]] = defaultdict(list)
    for attempt in history:
        link = None
        if attempt.leader and attempt.speedup:
            first, gain = of_solution.get(attempt.leader, (attempt.leader, 1.0))
            link = first, gain * attempt.speedup
            of_solution.setdefault(attempt.solution_id, link)
            if attempt.latency_us:
                first_times[first].append(attempt.latency_us * link[1])
        links.append(link)
    return [
        geometric_mean(first_times[link[0]]) / link[1]
        if link and first_times[link[0]]
        else attempt.latency_us or float("inf")
        for attempt, link in zip(history, links, strict=True)
    ]


def _steps(space: Space, strategy: str, point: Point, seed: int) -> Iterator[Point]:
    """Neighbours ring by ring; agents with different seeds walk a ring in other orders."""
    for ring in space.steps(strategy, point):
        yield from sorted(ring, key=lambda neighbour: _shuffle(seed, describe(neighbour)))


def _shuffle(seed: int, text: str) -> bytes:
    return hashlib.sha256(f"{seed}/{text}".encode()).digest()
