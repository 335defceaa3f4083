"""Who has to change the approach: a pure function of the attempt history of one problem.

Words
    An attempt is *verified* when its verdict passed, unless its timing was inconclusive: that says
    something about the host and nothing about the approach. It is *near* another when their
    similarity reaches ``duplicate_similarity``, and *novel* when it is near none of the same
    agent's earlier attempts. Only the order of ``sequence`` counts, never the order of the
    arguments.

A pivot
    is an agent's novel attempt under an applicable strategy that this agent had not tried; once
    it had tried all of them, a novel attempt under another strategy than its previous one. With a
    single applicable strategy, novel code alone is a pivot.

The agent rule
    looks at the agent's attempts after its last promotion and from its last pivot on. The agent
    is at a plateau when ``agent_patience`` of them are verified, or when the last
    ``duplicate_streak`` of them are near to earlier attempts of the agent. No attempt of another
    agent matters.

The problem rule
    The problem is at a plateau when ``problem_patience`` attempts of all agents together were
    verified since the last promotion of anyone. It demands one pivot of every agent: an agent
    that pivoted at that moment or later is free until the agent rule holds again.

The demand
    At a plateau the next submission must name one of the options and be near no attempt of
    anyone. The options are the applicable strategies that the agent has not tried, those that
    nobody tried first. When it has tried all, they are all but its current one, least tried first
    (the only one, if there is but one). So there is always a way on, and ``exhausted`` says that
    nothing is left that is new.

Near the roofline
    When a timed attempt of anyone reached ``roofline_stop`` of the physical limit there is nothing
    left to win: no pivot is demanded, and ``near_roofline`` says stop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from kernelarc.guard.errors import PivotRequired
from kernelarc.guard.schema.status import BenchmarkOutcome
from kernelarc.strategies.attempts import Attempt, Diversity, Nearest, diversity, nearest
from kernelarc.strategies.similarity import Fingerprint, similarity

__all__ = [
    "DEFAULT_POLICY",
    "Attempt",
    "Diversity",
    "Nearest",
    "PlateauPolicy",
    "PlateauState",
    "StrategyRecord",
    "admit",
    "assess",
    "diversity",
    "nearest",
]

_BEST_FIRST = (
    BenchmarkOutcome.PROMOTED,
    BenchmarkOutcome.TIE,
    BenchmarkOutcome.BACKUP,
    BenchmarkOutcome.INCONCLUSIVE,
    BenchmarkOutcome.REJECTED,
)
_TIMED = frozenset({BenchmarkOutcome.PROMOTED, BenchmarkOutcome.TIE, BenchmarkOutcome.BACKUP})


@dataclass(frozen=True)
class PlateauPolicy:
    """How much patience the server has."""

    agent_patience: int = 6
    """Verified attempts of one agent without a promotion."""
    problem_patience: int = 24
    """Verified attempts of all agents together without a promotion."""
    duplicate_similarity: float = 0.95
    """From this similarity on two attempts count as the same code; in (0, 1]."""
    duplicate_streak: int = 3
    """Near-duplicates, the same code in another layout included, that one agent may send in a
    row. An identical resubmission is no attempt: the archive does not record it."""
    roofline_stop: float = 0.95
    """Share of the physical limit at which a problem counts as solved; in (0, 1]."""

    def __post_init__(self) -> None:
        """Refuse values under which the rule would hold always or never."""
        for name in ("agent_patience", "problem_patience", "duplicate_streak"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("duplicate_similarity", "roofline_stop"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(f"{name} must be in (0, 1], not {getattr(self, name)}")


DEFAULT_POLICY = PlateauPolicy()


@dataclass(frozen=True)
class StrategyRecord:
    """What one agent did under one strategy."""

    strategy: str
    attempts: int
    promotions: int
    best: BenchmarkOutcome | None
    """``None``: nothing was timed."""


@dataclass(frozen=True)
class PlateauState:
    """Where one agent stands on one problem."""

    scope: Literal["none", "agent", "problem"]
    """Which rule holds; ``agent`` when both do."""
    reason: str
    """One or two sentences for the agent."""
    must_pivot: bool
    """The next submission must name one of ``options`` and be near no earlier attempt."""
    options: tuple[str, ...]
    """What a pivot may go to, best first; also filled when none is demanded."""
    untried: tuple[str, ...]
    """Applicable strategies that this agent has not tried, those that nobody tried first."""
    tried: tuple[StrategyRecord, ...]
    """This agent's record, in the order in which it first tried them."""
    near_roofline: bool
    exhausted: bool
    """This agent has tried every applicable strategy."""


def assess(
    attempts: Sequence[Attempt],
    *,
    agent: str,
    applicable: Sequence[str],
    policy: PlateauPolicy = DEFAULT_POLICY,
) -> PlateauState:
    """Where ``agent`` stands after ``attempts``.

    Args:
        attempts: All attempts of all agents at one problem, in any order.
        agent: The agent that asks; it may have none yet.
        applicable: Ids of the strategies that fit the problem and device, without repetition.
        policy: The patience.
    """
    history = sorted(attempts, key=lambda attempt: attempt.sequence)
    own = [attempt for attempt in history if attempt.agent == agent]
    tried = {attempt.strategy for attempt in own}
    team = Counter(attempt.strategy for attempt in history)
    by_novelty = sorted(applicable, key=lambda strategy: team[strategy])  # stable
    untried = tuple(strategy for strategy in by_novelty if strategy not in tried)

    near_roofline = any(_reached(attempt, policy.roofline_stop) for attempt in history)
    scope, reason, demanded = _plateau(history, own, applicable, policy)
    if near_roofline:
        reason = (
            f"An attempt reached {policy.roofline_stop:.0%} of the physical limit of this "
            "problem. Stop: no approach has anything left to win here."
        )
    return PlateauState(
        scope=scope,
        reason=reason,
        must_pivot=demanded and bool(applicable) and not near_roofline,
        options=untried or _other_than_current(by_novelty, own),
        untried=untried,
        tried=_records(own),
        near_roofline=near_roofline,
        exhausted=bool(applicable) and not untried,
    )


def _counts(attempt: Attempt) -> bool:
    """Whether an attempt uses up patience when it is not promoted."""
    return attempt.passed and attempt.outcome is not BenchmarkOutcome.INCONCLUSIVE


def admit(
    attempts: Sequence[Attempt],
    *,
    agent: str,
    strategy: str | None,
    fingerprint: Fingerprint,
    applicable: Sequence[str],
    policy: PlateauPolicy = DEFAULT_POLICY,
) -> None:
    """Refuse a submission that ignores a demanded pivot; anything else is let through.

    While no pivot is demanded even an identical resubmission is welcome: it answers from the
    stored verdict.

    Raises:
        PivotRequired: A pivot is demanded, and ``strategy`` is none of the options or the code is
            near an earlier attempt of anyone.
    """
    state = assess(attempts, agent=agent, applicable=applicable, policy=policy)
    if not state.must_pivot:
        return
    if strategy not in state.options:
        raise PivotRequired(f"{state.reason} {_refusal(strategy, state)}", list(state.options))
    like = nearest(attempts, fingerprint)
    if like is not None and like.similarity >= policy.duplicate_similarity:
        why = (
            f"This code is {like.similarity:.0%} similar to solution {like.solution_id}, which "
            f"{like.agent} tried under {like.strategy}."
        )
        raise PivotRequired(f"{state.reason} {why}", list(state.options))


def _refusal(strategy: str | None, state: PlateauState) -> str:
    """Why ``strategy`` is none of the options."""
    if not strategy:
        return "You named no strategy."
    if strategy not in {record.strategy for record in state.tried}:
        return f"{strategy!r} is no strategy for this problem."
    if state.exhausted:
        return f"{strategy!r} is what you are doing already."
    return f"You have tried {strategy!r} already."


def _plateau(
    history: Sequence[Attempt],
    own: Sequence[Attempt],
    applicable: Sequence[str],
    policy: PlateauPolicy,
) -> tuple[Literal["none", "agent", "problem"], str, bool]:
    """The scope, its reason, and whether a pivot is demanded."""
    start, pivot = _window(own, applicable, policy)
    verified = sum(_counts(attempt) for attempt in own[start:])
    streak = _duplicate_streak(own, start, policy)
    if verified >= policy.agent_patience:
        return "agent", f"None of your last {verified} verified attempts was promoted.", True
    if streak >= policy.duplicate_streak:
        return "agent", f"Your last {streak} attempts are near-duplicates of earlier ones.", True
    moment = _problem_moment(history, policy)
    if moment is not None:
        reason = (
            f"No attempt of any agent was promoted in the last {policy.problem_patience} or more "
            "verified ones."
        )
        if pivot is not None and pivot.sequence >= moment:
            return (
                "problem",
                f"{reason} You have changed your approach since: go on with it.",
                False,
            )
        return "problem", reason, True
    used = f"{verified} of {policy.agent_patience} verified attempts without a promotion"
    return "none", f"No plateau: you have used {used}.", False


def _window(
    own: Sequence[Attempt], applicable: Sequence[str], policy: PlateauPolicy
) -> tuple[int, Attempt | None]:
    """Index into ``own`` where patience starts to count, and the last pivot."""
    after_promotion = max((i + 1 for i, attempt in enumerate(own) if attempt.promoted), default=0)
    changes = reversed(_changes(own, applicable))
    pivot = next((i for i in changes if _novel(own, i, policy)), None)
    if pivot is None:
        return after_promotion, None
    return max(after_promotion, pivot), own[pivot]


def _changes(own: Sequence[Attempt], applicable: Sequence[str]) -> list[int]:
    """Indices at which the strategy changed to one that a pivot may go to."""
    seen: set[str] = set()
    changes = []
    for i, attempt in enumerate(own):
        exhausted = seen.issuperset(applicable)
        elsewhere = i == 0 or attempt.strategy != own[i - 1].strategy or len(applicable) == 1
        is_new = attempt.strategy not in seen
        if attempt.strategy in applicable and (is_new or (exhausted and elsewhere)):
            changes.append(i)
        seen.add(attempt.strategy)
    return changes


def _novel(own: Sequence[Attempt], index: int, policy: PlateauPolicy) -> bool:
    """Whether attempt ``index`` is near none of the agent's earlier ones."""
    code = own[index].fingerprint
    return all(
        similarity(earlier.fingerprint, code) < policy.duplicate_similarity
        for earlier in reversed(own[:index])
    )


def _duplicate_streak(own: Sequence[Attempt], start: int, policy: PlateauPolicy) -> int:
    """Near-duplicates at the end of ``own[start:]``, counted up to ``duplicate_streak``."""
    last = own[start:][-policy.duplicate_streak :]
    streak = 0
    for index in range(len(own) - 1, len(own) - 1 - len(last), -1):
        if _novel(own, index, policy):
            break
        streak += 1
    return streak


def _problem_moment(history: Sequence[Attempt], policy: PlateauPolicy) -> int | None:
    """Sequence number of the attempt with which the problem's patience ran out."""
    verified = 0
    moment = None
    for attempt in history:
        if attempt.promoted:
            verified, moment = 0, None
        elif _counts(attempt):
            verified += 1
            if verified == policy.problem_patience:
                moment = attempt.sequence
    return moment


def _reached(attempt: Attempt, stop: float) -> bool:
    fraction = attempt.roofline_fraction
    return attempt.outcome in _TIMED and fraction is not None and fraction >= stop


def _other_than_current(strategies: Sequence[str], own: Sequence[Attempt]) -> tuple[str, ...]:
    others = tuple(s for s in strategies if not own or s != own[-1].strategy)
    return others or tuple(strategies)


def _records(own: Sequence[Attempt]) -> tuple[StrategyRecord, ...]:
    by_strategy: dict[str, list[Attempt]] = {}
    for attempt in own:
        by_strategy.setdefault(attempt.strategy, []).append(attempt)
    return tuple(
        StrategyRecord(
            strategy=strategy,
            attempts=len(group),
            promotions=sum(attempt.promoted for attempt in group),
            best=_best(group),
        )
        for strategy, group in by_strategy.items()
    )


def _best(group: Sequence[Attempt]) -> BenchmarkOutcome | None:
    outcomes = [attempt.outcome for attempt in group if attempt.outcome is not None]
    return min(outcomes, key=_BEST_FIRST.index, default=None)
