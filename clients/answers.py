"""The few facts that the orchestrator takes out of tool results.

Results come from a server that may be newer than this client: what is missing or of another
shape reads as "not said", never as an error.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


def records(value: object) -> list[Mapping[str, object]]:
    """The objects in a JSON array; empty when it is none."""
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return []
    return [item for item in value if isinstance(item, Mapping)]


def number(value: object) -> float | None:
    """A finite JSON number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def opponent(compared_with: object) -> str:
    """In words, whom a result's ``compared_with`` means."""
    return "the reference" if compared_with == "reference" else "the leader"


@dataclass(frozen=True)
class LeaderFacts:
    """The leader of a problem as a tool result tells it."""

    solution_id: str
    strategy: str | None = None
    agent: str | None = None
    speedup: float | None = None
    """Reference time over leader time, median."""
    low: float | None = None
    high: float | None = None
    """Bounds of that median, where the result has them."""
    roofline: float | None = None
    """Geometric mean over the workloads of floor / latency."""


def promoted_leader(result: Mapping[str, object]) -> LeaderFacts | None:
    """The new leader, when ``result`` is a benchmark that made one."""
    if result.get("verdict") != "PROMOTED":
        return None
    interval = result.get("speedup_over_reference")
    bounds = interval if isinstance(interval, Mapping) else {}
    shares = [number(line.get("roofline_fraction")) for line in records(result.get("timings"))]
    measured = [share for share in shares if share is not None and share > 0]
    return LeaderFacts(
        solution_id=str(result.get("solution_id", "")),
        speedup=number(bounds.get("median")),
        low=number(bounds.get("low")),
        high=number(bounds.get("high")),
        roofline=_geometric_mean(measured) if measured and len(measured) == len(shares) else None,
    )


def current_leader(answer: Mapping[str, object]) -> LeaderFacts | None:
    """The leader in the answer of ``get_leader``; ``None`` while it is the reference."""
    line = answer.get("leader")
    if not isinstance(line, Mapping):
        return None
    return LeaderFacts(
        solution_id=str(line.get("solution_id", "")),
        strategy=_text(line.get("strategy")),
        agent=_text(line.get("agent")),
        speedup=number(line.get("speedup_over_reference")),
    )


def near_roofline(result: Mapping[str, object]) -> bool:
    """Whether the guidance of ``result`` says that the leader is near the physical floor."""
    guidance = result.get("guidance")
    return isinstance(guidance, Mapping) and guidance.get("near_roofline") is True


def submitted(history: str) -> set[str]:
    """Ids of the solutions that the text of an ``attempts`` resource lists.

    Args:
        history: JSON: an array, or an object with the array under ``attempts``.
    """
    try:
        content = json.loads(history)
    except ValueError:
        return set()
    attempts = records(content.get("attempts") if isinstance(content, Mapping) else content)
    return {str(attempt["solution_id"]) for attempt in attempts if "solution_id" in attempt}


def _geometric_mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
