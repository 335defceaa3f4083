"""Every error of KernelArc.

::

    KernelArcError
    ├── RequestError          the caller can repair it; the text says how
    │   ├── UnknownProblem        no problem of that name
    │   ├── MalformedProblem      a problem folder does not parse
    │   ├── MalformedSolution     a solution does not parse
    │   ├── UnsupportedLanguage   the language cannot run on this device
    │   ├── UnknownId             no such solution, job, run, insight, ...
    │   ├── NotVerified           ``benchmark`` before ``compile_and_verify`` passed
    │   ├── PivotRequired         a plateau demands another strategy first
    │   └── NotPermitted          the caller may not do this
    ├── GuardUnavailable      nothing was decided; try again later
    │   ├── DeviceBusy            another process holds the device lease
    │   ├── WorkerLost            a judge or zygote process died
    │   ├── SandboxUnavailable    a wall that the configuration demands cannot be raised
    │   └── ToolchainMissing      torch, g++ or triton is not installed
    ├── BoardError            the database
    │   ├── BoardBusy             locked for longer than the time-out
    │   └── BoardSchemaMismatch   written by a newer version
    └── JobCancelled          the caller withdrew the job

A candidate's failure is never an exception: it is an ``EvaluationStatus``. The message of
each of these is safe to show to an agent by definition: no seed, no hidden shape, no path
of the host beyond what the caller named.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, allowed: Iterable[str]) -> str:
    """What to say first of a mistyped name: ``" Did you mean 'top-k'?"``; empty: none is near."""
    plain = {_plain(known): known for known in allowed}
    near = get_close_matches(_plain(name), plain, n=1)
    return f" Did you mean {str(plain[near[0]])!r}?" if near else ""


def _plain(name: str) -> str:
    return name.strip().casefold().replace("_", "-")


class KernelArcError(Exception):
    """Base of all errors; ``str(error)`` is safe to show."""


class RequestError(KernelArcError):
    """The caller asked for something impossible; the text says what is allowed."""


class UnknownProblem(RequestError):
    """No problem of that name."""

    def __init__(self, name: str, known: list[str]) -> None:
        self.name = name
        self.known = known
        super().__init__(
            f"unknown problem {name!r}.{did_you_mean(name, known)} Known problems: "
            f"{', '.join(known)}."
        )


class MalformedProblem(RequestError):
    """A problem folder is missing a file or does not satisfy the schema."""


class MalformedSolution(RequestError):
    """A solution does not satisfy the schema; the text names the field."""


class UnsupportedLanguage(RequestError):
    """The language cannot be judged on this device."""


class UnknownId(RequestError):
    """No such record."""

    def __init__(self, kind: str, value: str, hint: str = "") -> None:
        self.kind = kind
        self.value = value
        super().__init__(f"unknown {kind} {value!r}." + (f" {hint}" if hint else ""))


class NotVerified(RequestError):
    """A solution must pass ``compile_and_verify`` under this guard before it is timed."""


class PivotRequired(RequestError):
    """A plateau: the next submission must name another strategy and be different code."""

    def __init__(self, reason: str, options: list[str]) -> None:
        self.reason = reason
        self.options = options
        super().__init__(
            f"{reason} Submit under one of these strategies instead, with code that is not a "
            f"near-duplicate of an earlier attempt: {', '.join(options)}."
        )


class NotPermitted(RequestError):
    """The caller's identity does not allow this."""


class GuardUnavailable(KernelArcError):
    """The guard could not decide; it is never a verdict on the candidate."""


class DeviceBusy(GuardUnavailable):
    """Another process holds the device."""


class WorkerLost(GuardUnavailable):
    """A trusted worker process died or stopped answering."""


class SandboxUnavailable(GuardUnavailable):
    """A wall that was demanded cannot be raised on this host."""


class ToolchainMissing(GuardUnavailable):
    """A compiler or package that the job needs is not installed."""


class BoardError(KernelArcError):
    """The database could not do it; nothing was half-written."""


class BoardBusy(BoardError):
    """The database stayed locked for longer than the time-out."""


class BoardSchemaMismatch(BoardError):
    """The database was written by a newer version of KernelArc."""


class JobCancelled(KernelArcError):
    """The job was withdrawn before it ended."""
