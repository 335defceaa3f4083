"""Traces are SOL-ExecBench's: its nine statuses only, with the parts that each demands."""

from typing import Any

import pytest
from pydantic import ValidationError

from kernelarc.guard.schema import EvaluationStatus, Trace, trace_status

CORRECTNESS = {"max_relative_error": 0.5, "max_absolute_error": 1e-3}
PERFORMANCE = {"latency_ms": 1.5, "reference_latency_ms": 3.0, "speedup_factor": 2.0}


def _trace(workload: dict[str, Any], status: str, **parts: object) -> dict[str, Any]:
    evaluation = {
        "status": status,
        "environment": {"hardware": "cpu", "libs": {"torch": "2.9"}},
        "timestamp": "2026-11-30T12:00:00",
        "log": "",
    }
    return {
        "definition": "scale_rows",
        "workload": workload,
        "solution": "s",
        "evaluation": evaluation | parts,
    }


def test_a_trace_is_written_as_it_was_read(workload: dict[str, Any]) -> None:
    data = _trace(workload, "PASSED", correctness=CORRECTNESS, performance=PERFORMANCE)
    assert Trace.model_validate(data).to_json() == data
    data = {"definition": "scale_rows", "workload": workload}
    assert Trace.model_validate(data).to_json() == data


@pytest.mark.parametrize("status", list(EvaluationStatus))
def test_every_status_of_ours_becomes_one_that_a_trace_accepts(
    workload: dict[str, Any], status: EvaluationStatus
) -> None:
    written = trace_status(status)
    parts: dict[str, object] = {}
    if written in ("PASSED", "INCORRECT_NUMERICAL"):
        parts["correctness"] = CORRECTNESS
    if written == "PASSED":
        parts["performance"] = PERFORMANCE
    assert Trace.model_validate(_trace(workload, written, **parts)).evaluation is not None
    if written is not status:
        with pytest.raises(ValidationError, match=f"write {written}"):
            Trace.model_validate(_trace(workload, status, **parts))


@pytest.mark.parametrize(
    ("status", "parts"),
    [
        ("PASSED", {"correctness": CORRECTNESS}),
        ("PASSED", {"performance": PERFORMANCE}),
        ("INCORRECT_NUMERICAL", {}),
        ("INCORRECT_NUMERICAL", {"correctness": CORRECTNESS, "performance": PERFORMANCE}),
        ("TIMEOUT", {"correctness": CORRECTNESS}),
    ],
)
def test_a_status_without_its_parts_is_refused(
    workload: dict[str, Any], status: str, parts: dict[str, object]
) -> None:
    with pytest.raises(ValidationError, match="exactly"):
        Trace.model_validate(_trace(workload, status, **parts))
