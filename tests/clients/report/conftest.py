"""A run as it could have been: two problems, one of them without success."""

from datetime import UTC, datetime, timedelta

import pytest

from kernelarc.clients.report import (
    AgentFacts,
    AttemptFacts,
    InsightFacts,
    ProblemFacts,
    PromotionFacts,
    ReportData,
    RunFacts,
    Speedup,
    WorkloadFacts,
)
from kernelarc.guard.schema.results import Environment, Isolation, Wall
from kernelarc.guard.schema.status import BenchmarkOutcome, EvaluationStatus

START = datetime(2026, 11, 30, 22, 0, tzinfo=UTC)
STRATEGIES = ["vectorise", "fuse-passes", "cache-blocking", "parallelism", "online-algorithm"]
FAILURES = [
    EvaluationStatus.INCORRECT_NUMERICAL,
    EvaluationStatus.COMPILE_ERROR,
    EvaluationStatus.OUT_OF_BOUNDS,
    EvaluationStatus.PRECISION,
]


def minute(value):
    return START + timedelta(minutes=value)


def attempt(number, promoted):
    failed = number % 5 == 3
    outcome = BenchmarkOutcome.TIE if number % 4 else BenchmarkOutcome.BACKUP
    return AttemptFacts(
        sequence=number,
        time=minute(number * 0.7),
        agent=f"builtin-{number % 3 + 1}",
        strategy=STRATEGIES[number % 5],
        solution_id=f"{number:08x}" * 4,
        status=FAILURES[number % 4] if failed else EvaluationStatus.PASSED,
        outcome=None if failed else (BenchmarkOutcome.PROMOTED if promoted else outcome),
        message="largest error 0.31 at [3, 17]" if failed else "",
        speedup=None if failed else Speedup(median=0.97, low=0.95, high=0.99, coverage=0.98),
        latency_us=None if failed else 1234.5 / number,
    )


def promotion(number, speedup):
    return PromotionFacts(
        attempt=number,
        time=minute(number * 0.7),
        agent=f"builtin-{number % 3 + 1}",
        strategy=STRATEGIES[number % 5],
        solution_id=f"{number:08x}" * 4,
        over_reference=Speedup(
            median=speedup, low=speedup * 0.94, high=speedup * 1.05, coverage=0.983
        ),
        over_previous=Speedup(median=1.2, low=1.15, high=1.24, coverage=0.983),
    )


def insight(number, kind):
    return InsightFacts(
        time=minute(number * 1.9),
        agent=f"builtin-{number % 3 + 1}",
        kind=kind,
        strategy=STRATEGIES[number % 5],
        text=f"Width {2**number} loads halve the time of the second pass.",
        verified=number % 2 == 0,
    )


def rmsnorm():
    steps = {2: 1.6, 5: 2.05, 9: 2.11, 16: 3.4, 22: 3.9}
    return ProblemFacts(
        name="rmsnorm",
        title="RMS normalisation",
        workloads=(
            WorkloadFacts(
                label="rows=512, hidden=2048",
                reference_us=2310.0,
                leader_us=611.3,
                floor_us=402.2,
                bound="memory",
            ),
            WorkloadFacts(
                label="rows=257, hidden=4096",
                reference_us=2198.0,
                leader_us=545.0,
                floor_us=399.0,
                bound="memory",
            ),
        ),
        attempts=tuple(attempt(number, number in steps) for number in range(1, 31)),
        promotions=tuple(promotion(number, value) for number, value in steps.items()),
        insights=tuple(
            insight(number, kind)
            for number, kind in enumerate(
                ["success", "failure", "hypothesis", "success", "question", "success"], 1
            )
        ),
    )


@pytest.fixture
def data():
    return make()


def make():
    return ReportData(
        run=RunFacts(
            run_id="r_12",
            state="finished",
            reason="every agent has ended",
            started=START,
            ended=minute(24),
            device="cpu",
            version="0.1.0",
        ),
        agents=(
            AgentFacts(name="builtin-1", kind="builtin", strategy="vectorise", state="finished"),
            AgentFacts(name="ada", kind="llm", state="failed", reason="no model answers"),
        ),
        problems=(rmsnorm(), ProblemFacts(name="gemm", title="Matrix product")),
        environment=Environment(
            device="cpu",
            device_name="Two-core box",
            device_id="d",
            guard_version="1",
            versions={"torch": "2.13", "g++": "14.2"},
            threads=2,
            copy_gbps=21.3,
            key="abc123",
        ),
        isolation=Isolation(
            level="reduced",
            walls=[
                Wall(name="landlock", stands=True, detail="write outside: EACCES"),
                Wall(name="pid_namespace", stands=False, detail="unshare: EPERM"),
            ],
        ),
    )
