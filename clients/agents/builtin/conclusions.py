"""Results read from the server's answers, and the conclusions that are posted on the board."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

from kernelarc.clients.agents.builtin.search import Hint, Proposal, Tried, difference
from kernelarc.clients.agents.builtin.space import Space, read_tail, tail
from kernelarc.clients.answers import number, opponent, records
from kernelarc.guard.schema import BenchmarkOutcome, EvaluationStatus

Answer = Mapping[str, object]
"""Structured content of a tool's result."""

LEVERS: Mapping[str, str] = {
    "threads": "cores against the cost of waking them",
    "schedule": "balance between threads against the cost of handing out work",
    "chunk": "balance between threads against the cost of handing out work",
    "width": "lanes per operation against what the machine's registers hold",
    "style": "explicit vectors against what the compiler finds by itself",
    "kernel": "register reuse against preparation",
    "rows": "reuse of a loaded value against registers",
    "heads": "reuse of a loaded value against registers",
    "vectors": "reuse of a loaded value against registers",
    "unroll": "independent work in flight against registers and code size",
    "kc": "the depth of a packed panel against the first-level cache",
    "mc": "tasks for all threads against packing the same panel again",
    "block": "data kept in cache against more block borders",
    "steps": "parallel pieces against inputs that are read twice",
    "group": "work per task against balance",
    "math": "freedom for the compiler against exact order of operations",
    "exp": "terms of the polynomial against the library's exact but scalar function",
    "scale": "one reciprocal and multiplications against divisions",
    "rewrite": "operations moved out of the inner loop against rounding in another place",
    "passes": "fewer reads against rescaling",
    "fuse": "one pass less over memory against a longer inner loop",
    "reduce": "one read of the inputs against a buffer for each thread",
    "append": "each row written once against looking up who owns it",
    "select": "work that fits in lanes against work that ends early",
    "copy": "the library's copy against a loop",
    "stores": "no read of the destination against losing it from cache",
    "dispatch": "lengths known to the compiler against one more branch",
}
"""What each parameter trades, for the sentence that explains a result."""


@dataclass(frozen=True)
class Insight:
    """A conclusion ready for ``post_insight``."""

    kind: str
    text: str
    evidence: tuple[str, ...]


def latency_us(benchmark: Answer) -> float | None:
    """Geometric mean of the candidate's times over the workloads; ``None``: not measured."""
    times = [number(line.get("latency_us")) for line in records(benchmark.get("timings"))]
    measured = [time for time in times if time is not None and time > 0]
    if not measured or len(measured) < len(times):
        return None
    return math.exp(math.fsum(map(math.log, measured)) / len(measured))


def speedup(benchmark: Answer) -> float | None:
    """Leader's time over the candidate's, median of the blocks."""
    interval = benchmark.get("speedup")
    return number(interval.get("median")) if isinstance(interval, Mapping) else None


def compared_with(benchmark: Answer) -> str:
    """What the candidate was timed against: ``reference``, or a solution's id; empty: not said."""
    return str(benchmark.get("compared_with") or "")


def guidance(answer: Answer) -> Answer:
    """The plateau state in an answer; empty where it has none."""
    found = answer.get("guidance")
    return found if isinstance(found, Mapping) else {}


def own_attempts(text: str, space: Space) -> list[Tried]:
    """This agent's submissions as the server recorded them, oldest first.

    Submissions without a point of ``space`` in their note are another agent kind's: left out.
    """
    attempts = []
    for record in records(json.loads(text).get("attempts")):
        point = read_tail(str(record.get("note", "")), space)
        status = record.get("status")
        if point is not None and status in set(EvaluationStatus):
            # An undecided session's numbers are noise.
            decided = record.get("outcome") != BenchmarkOutcome.INCONCLUSIVE
            attempts.append(
                Tried(
                    strategy=str(record.get("strategy", "")),
                    point=point,
                    status=EvaluationStatus(str(status)),
                    solution_id=str(record.get("solution_id", "")),
                    latency_us=number(record.get("latency_us")) if decided else None,
                    speedup=number(record.get("speedup")) if decided else None,
                    leader=compared_with(record),
                )
            )
    return attempts


def hints(board: Answer, space: Space, me: str) -> list[Hint]:
    """Verified successes of other agents that name a point of ``space``, in the board's order.

    The text is another agent's: only values of the space's own domains are taken from it.
    """
    found = []
    for post in records(board.get("insights")):
        point = read_tail(str(post.get("untrusted_text", "")), space)
        usable = post.get("verified") is True and post.get("kind") == "success"
        if usable and point is not None and post.get("agent") != me and not post.get("problem"):
            found.append(Hint(str(post.get("agent")), str(post.get("strategy")), point))
    return found


def rejected(proposal: Proposal, verdict: Answer) -> Insight:
    """What a candidate that was not correct teaches."""
    status, message = verdict.get("verdict"), str(verdict.get("message", ""))
    first = message.partition(". ")[0].strip().rstrip(".")[:400]
    text = f"{proposal.strategy}: {status}, so this code is wrong or was refused: {first}."
    return Insight("failure", f"{text} {tail(proposal.point)}", _evidence(verdict))


def timed(proposal: Proposal, benchmark: Answer) -> Insight:
    """What a measured candidate teaches: its time, against the leader and its own parent."""
    won = benchmark.get("verdict") == BenchmarkOutcome.PROMOTED
    time, ratio = latency_us(benchmark), speedup(benchmark)
    facts = [f"{proposal.strategy}: {benchmark.get('verdict')}"]
    if time is not None:
        facts.append(f"{time:.4g} us")
    if ratio is not None:
        facts.append(f"{ratio:.3g}x as fast as {opponent(compared_with(benchmark))}")
    text = ", ".join(facts) + "." + _against_parent(proposal, benchmark)
    return Insight(
        "success" if won else "failure", f"{text} {tail(proposal.point)}", _evidence(benchmark)
    )


def _against_parent(proposal: Proposal, benchmark: Answer) -> str:
    """What the change did, where both were timed against one solution; otherwise nothing.

    Times of two sessions differ by what the machine did in between: they support no claim.
    """
    parent, new, leader = proposal.parent, speedup(benchmark), compared_with(benchmark)
    if parent is None or new is None or not leader:
        return ""
    old = {parent.leader: parent.speedup, parent.solution_id: 1.0}.get(leader)
    if not old:
        return ""
    change = difference(parent.point, proposal.point)
    margin = number(benchmark.get("margin")) or 0.0
    if abs(new / old - 1) <= margin:
        return f" Against the same leader, {change} made no measurable change."
    changed = [name for name, value in proposal.point.items() if parent.point[name] != value]
    trade = "; ".join(dict.fromkeys(f"{name} trades {LEVERS[name]}" for name in changed))
    speedups = f"the speed-up from {old:.3g}x to {new:.3g}x"
    return f" Against the same leader, {change} changed {speedups}: {trade}."


def _evidence(answer: Answer) -> tuple[str, ...]:
    ids = (answer.get("evidence"), answer.get("solution_id"))
    return tuple(str(value) for value in ids if value)
