"""Closed sets of outcomes."""

from __future__ import annotations

from enum import StrEnum


class EvaluationStatus(StrEnum):
    """How one evaluation, or a whole verdict, ended.

    The first nine are SOL-ExecBench's, with the same spelling; the rest are ours and map
    onto those when a trace is written (``TRACE_STATUS``).
    """

    PASSED = "PASSED"
    INCORRECT_SHAPE = "INCORRECT_SHAPE"
    INCORRECT_DTYPE = "INCORRECT_DTYPE"
    INCORRECT_NUMERICAL = "INCORRECT_NUMERICAL"
    COMPILE_ERROR = "COMPILE_ERROR"
    RUNTIME_ERROR = "RUNTIME_ERROR"
    TIMEOUT = "TIMEOUT"
    INVALID_REFERENCE = "INVALID_REFERENCE"
    REWARD_HACK = "REWARD_HACK"
    STALE_OUTPUT = "STALE_OUTPUT"
    NONFINITE = "NONFINITE"
    PRECISION = "PRECISION"
    INPUT_MUTATED = "INPUT_MUTATED"
    OUT_OF_BOUNDS = "OUT_OF_BOUNDS"
    NONDETERMINISTIC = "NONDETERMINISTIC"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    CRASH = "CRASH"
    PROTOCOL = "PROTOCOL"
    SANDBOX = "SANDBOX"
    POLICY = "POLICY"
    TIMING_MISMATCH = "TIMING_MISMATCH"
    BELOW_ROOFLINE = "BELOW_ROOFLINE"


class BenchmarkOutcome(StrEnum):
    """How a benchmark of a verified solution ended."""

    PROMOTED = "PROMOTED"
    """Faster than the leader beyond doubt: it is the leader now."""
    BACKUP = "BACKUP"
    """Correct, not faster: kept."""
    TIE = "TIE"
    """Correct, and the difference is inside the noise."""
    INCONCLUSIVE = "INCONCLUSIVE"
    """The device was too noisy, throttled or shared: nothing was decided."""
    REJECTED = "REJECTED"
    """It failed while it was timed; ``status`` says how."""


_S = EvaluationStatus

TRACE_STATUS: dict[EvaluationStatus, EvaluationStatus] = {
    _S.STALE_OUTPUT: _S.INCORRECT_NUMERICAL,
    _S.NONFINITE: _S.INCORRECT_NUMERICAL,
    _S.PRECISION: _S.INCORRECT_NUMERICAL,
    _S.NONDETERMINISTIC: _S.INCORRECT_NUMERICAL,
    _S.INPUT_MUTATED: _S.REWARD_HACK,
    _S.OUT_OF_BOUNDS: _S.RUNTIME_ERROR,
    _S.OUT_OF_MEMORY: _S.RUNTIME_ERROR,
    _S.CRASH: _S.RUNTIME_ERROR,
    _S.PROTOCOL: _S.REWARD_HACK,
    _S.SANDBOX: _S.REWARD_HACK,
    _S.POLICY: _S.REWARD_HACK,
    _S.TIMING_MISMATCH: _S.REWARD_HACK,
    _S.BELOW_ROOFLINE: _S.REWARD_HACK,
}
"""Our statuses as SOL-ExecBench's, for written traces; its own nine map to themselves."""


def trace_status(status: EvaluationStatus) -> EvaluationStatus:
    """The SOL-ExecBench status under which ``status`` is written to a trace."""
    return TRACE_STATUS.get(status, status)
