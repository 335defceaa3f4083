"""What the screen finds, and what it looks for."""

from __future__ import annotations

from dataclasses import dataclass

from kernelarc.guard.schema.status import EvaluationStatus

NO_PROGRAMS = "the sandbox has no way to start another program or process"
NO_NETWORK = "the sandbox has no network"
NO_FILES = (
    "the sandbox shows nothing of the host's files; the solution gets all its data as arguments"
)


@dataclass(frozen=True)
class ScreenFinding:
    """Something to tell the author."""

    status: EvaluationStatus | None
    """``POLICY`` or ``COMPILE_ERROR``: the solution is rejected. ``None``: a note only."""
    file: str
    line: int | None
    """Counted from 1; ``None`` when it is about the file as a whole."""
    message: str


@dataclass(frozen=True)
class Entry:
    """The function that the runner will call."""

    file: str
    function: str
    parameters: int
    """How many arguments it will be given."""
    signature: str
    """The expected function as source text."""
