"""SOL-ExecBench's result file, so that our results can be read by its tools."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field, model_validator

from kernelarc.guard.schema.base import DatasetModel
from kernelarc.guard.schema.status import TRACE_STATUS, EvaluationStatus
from kernelarc.guard.schema.workload import Workload


class TraceEnvironment(DatasetModel):
    """Where it ran."""

    hardware: str
    libs: dict[str, str] = Field(default_factory=dict)


class TraceCorrectness(DatasetModel):
    """Largest errors."""

    max_relative_error: float = 0.0
    max_absolute_error: float = 0.0
    has_nan: bool = False
    has_inf: bool = False
    extra: dict[str, Any] | None = None


class TracePerformance(DatasetModel):
    """Latencies in milliseconds."""

    latency_ms: float = 0.0
    reference_latency_ms: float = 0.0
    speedup_factor: float = 0.0


class TraceEvaluation(DatasetModel):
    """The outcome. ``status`` is one of SOL-ExecBench's nine: see ``trace_status``."""

    status: EvaluationStatus
    environment: TraceEnvironment
    timestamp: str
    log: str = ""
    correctness: TraceCorrectness | None = None
    performance: TracePerformance | None = None

    @model_validator(mode="after")
    def _status_decides_what_is_there(self) -> Self:
        if self.status in TRACE_STATUS:
            raise ValueError(
                f"status: {self.status} is not SOL-ExecBench's; write {TRACE_STATUS[self.status]}"
            )
        passed = self.status is EvaluationStatus.PASSED
        compared = passed or self.status is EvaluationStatus.INCORRECT_NUMERICAL
        if (self.performance is not None) != passed:
            raise ValueError("performance is there exactly when the status is PASSED")
        if (self.correctness is not None) != compared:
            raise ValueError("correctness is there exactly for PASSED and INCORRECT_NUMERICAL")
        return self


class Trace(DatasetModel):
    """One solution on one workload; without a solution it only records the workload."""

    definition: str
    workload: Workload
    solution: str | None = None
    evaluation: TraceEvaluation | None = None
