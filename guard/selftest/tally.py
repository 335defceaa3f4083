"""Rows of the selftest, and what they add up to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict

from kernelarc.guard.schema import EvaluationStatus
from kernelarc.guard.selftest.sample import Kind

PASSED = EvaluationStatus.PASSED.value


class Row(BaseModel):
    """What the guard said of one sample."""

    model_config = ConfigDict(frozen=True)

    name: str
    kind: Kind
    expected: list[str]
    """Statuses, or outcomes of a benchmark, that are right."""
    got: str | None
    """A status, an outcome, or the class of an error; ``None``: it was skipped."""
    as_expected: bool
    skipped: str | None = None
    """Why it was not judged."""
    message: str = ""
    """What the guard said of it."""
    left: list[str] = []
    """What remained of it on the host; empty as it should be."""
    seconds: float = 0.0

    @property
    def accepted(self) -> bool:
        """Whether the guard took the sample for right."""
        return self.got in (PASSED, "PROMOTED", "BACKUP", "TIE")


class Tally(BaseModel):
    """The rows counted."""

    model_config = ConfigDict(frozen=True)

    samples: int
    as_expected: int
    false_accepts: int
    """Adversarial ones that were accepted and must not be."""
    false_rejects: int
    """Honest ones that were not accepted."""
    left_something: int
    skipped: int
    skipped_for: dict[str, int]
    """Number by reason."""
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether every row that was judged is as expected, and at least one was."""
        return self.samples > self.skipped and self.as_expected + self.skipped == self.samples


def count(rows: Iterable[Row], seconds: float) -> Tally:
    """Add up rows; ``seconds`` is the time of the whole."""
    rows = list(rows)
    wrong = [row for row in rows if not row.as_expected and row.skipped is None]
    unexpected = [row for row in wrong if row.got not in row.expected]
    return Tally(
        samples=len(rows),
        as_expected=sum(row.as_expected for row in rows),
        false_accepts=sum(r.kind == "adversarial" and r.accepted for r in unexpected),
        false_rejects=sum(r.kind == "honest" and not r.accepted for r in unexpected),
        left_something=sum(bool(row.left) for row in rows),
        skipped=sum(row.skipped is not None for row in rows),
        skipped_for=dict(Counter(row.skipped for row in rows if row.skipped is not None)),
        seconds=round(seconds, 1),
    )
