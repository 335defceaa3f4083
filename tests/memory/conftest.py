"""A scene: a real archive on disk, with short ways to bring records into it."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import pytest

from kernelarc.guard.schema import (
    BenchmarkOutcome,
    BenchmarkResult,
    Contract,
    Definition,
    Evaluation,
    EvaluationStatus,
    Interval,
    Isolation,
    Performance,
    Problem,
    Verdict,
    Workload,
    solution_from_source,
)
from kernelarc.memory import InsightKind, JobKind, open_archive

DEVICE = "Test CPU"
GUARD_KEY = "1/env"
ISOLATION = Isolation(level="full", walls=[])


def make_problem(name="rmsnorm", category="normalization", title="", reference="return x"):
    return Problem(
        definition=Definition.model_validate(
            {
                "name": name,
                "op_type": category,
                "axes": {"n": {"type": "var"}},
                "inputs": {"x": {"shape": ["n"], "dtype": "float32"}},
                "outputs": {"y": {"shape": ["n"], "dtype": "float32"}},
                "reference": f"def run(x):\n    {reference}\n",
            }
        ),
        workloads=(
            Workload.model_validate(
                {"uuid": "w1", "axes": {"n": 8}, "inputs": {"x": {"type": "random"}}}
            ),
        ),
        contract=Contract(title=title),
    )


def make_verdict(problem, solution_id, status=EvaluationStatus.PASSED, *, guard="1", message="m"):
    return Verdict(
        guard_version=guard,
        problem=problem,
        solution_id=solution_id,
        language="cpp",
        status=status,
        message=message,
        evaluations=[Evaluation(workload="w1", axes={"n": 8}, status=status)],
        isolation=ISOLATION,
        environment_key="env",
    )


def make_benchmark(problem, solution_id, outcome, *, leader, speedup=1.1, latencies=(10.0,)):
    rejected = outcome is BenchmarkOutcome.REJECTED
    return BenchmarkResult(
        guard_version="1",
        problem=problem,
        solution_id=solution_id,
        leader_id=leader,
        outcome=outcome,
        status=EvaluationStatus.TIMING_MISMATCH if rejected else EvaluationStatus.PASSED,
        reason="because",
        speedup=None
        if rejected
        else Interval(median=speedup, low=speedup, high=speedup, coverage=0.98, blocks=22),
        performance={
            f"w{n}": Performance(
                latency_us=latency,
                runner_latency_us=latency,
                leader_latency_us=latency * speedup,
                ratio=1 / speedup,
                calls=100,
            )
            for n, latency in enumerate(latencies)
        },
        isolation=ISOLATION,
        environment_key="env",
    )


class Scene:
    """An archive with a registered problem, an agent and a worker instance."""

    verdict_record = staticmethod(make_verdict)
    benchmark_record = staticmethod(make_benchmark)

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ticks = itertools.count(1)
        self.archive = open_archive(path, clock=lambda: float(next(self.ticks)))
        self.problems = {}
        self.name = self.register()
        self.agent = self.archive.runs.ensure_agent("local").id
        self.instance = self.archive.register_instance()
        self.numbers = itertools.count(1)

    def register(self, name="rmsnorm", **fields):
        self.problems[name] = make_problem(name, **fields)
        self.archive.catalogue.register_problem(self.problems[name])
        return name

    def solution(self, text=None, *, problem=None):
        text = text or f"void run() {{ /* {next(self.numbers)} */ }}"
        made = solution_from_source(self.problems[problem or self.name], text, "cpp")
        return self.archive.catalogue.add_solution(made)

    def submit(self, solution, *, agent=None, strategy="tiling", problem=None, **fields):
        return self.archive.catalogue.submit(
            problem or self.name,
            solution,
            agent=agent or self.agent,
            strategy=strategy,
            **fields,
        )

    def enqueue(self, solution, kind=JobKind.VERIFY, *, agent=None, problem=None, **fields):
        return self.archive.jobs.enqueue(
            kind,
            problem or self.name,
            solution,
            agent=agent or self.agent,
            device=fields.pop("device", "cpu"),
            guard_key=GUARD_KEY,
            **fields,
        )

    def claimed(self, solution, kind, **fields):
        """The id of a job for ``solution``, running here; the queue must be empty before."""
        wanted = self.enqueue(solution, kind, force=True, **fields).job
        claimed = self.archive.jobs.claim(self.instance, "cpu")
        assert claimed is not None
        assert claimed.id == wanted.id
        return claimed.id

    def verify(self, solution, status=EvaluationStatus.PASSED, *, problem=None, **fields):
        job = self.claimed(solution, JobKind.VERIFY, problem=problem)
        verdict = make_verdict(problem or self.name, solution, status, **fields)
        return self.archive.results.finish_verify(self.instance, job, verdict)

    def benchmark(self, solution, outcome, *, problem=None, expected=..., **fields):
        name = problem or self.name
        promotion = self.archive.leaders.leader(name, DEVICE)
        leader = promotion.solution_id if promotion else None
        job = self.claimed(solution, JobKind.BENCHMARK, problem=problem)
        result = make_benchmark(name, solution, outcome, leader=leader or "f" * 32, **fields)
        return self.archive.results.finish_benchmark(
            self.instance,
            job,
            result,
            device_name=DEVICE,
            expected_leader=leader if expected is ... else expected,
        )

    def promoted(self, solution=None, **fields):
        """A solution that was verified and leads now."""
        solution = solution or self.solution()
        self.verify(solution)
        assert self.benchmark(solution, BenchmarkOutcome.PROMOTED, **fields).promotion
        return solution

    def post(self, text, kind=InsightKind.HYPOTHESIS, *, problem=None, agent=None, **fields):
        return self.archive.board.post(
            problem or self.name,
            kind,
            fields.pop("strategy", "tiling"),
            text,
            agent=agent or self.agent,
            device_name=fields.pop("device_name", DEVICE),
            **fields,
        )

    def close(self):
        self.instance.close()
        self.archive.close()


@pytest.fixture(scope="session")
def benchmark_record():
    return make_benchmark


@pytest.fixture(scope="session")
def empty_archive(tmp_path_factory):
    """A migrated file without rows: copying it is faster than migrating for every test."""
    path = tmp_path_factory.mktemp("template") / "archive.db"
    open_archive(path).close()
    return path


@pytest.fixture
def scene(tmp_path, empty_archive):
    made = Scene(shutil.copy(empty_archive, tmp_path / "archive.db"))
    yield made
    made.close()


@pytest.fixture
def new_scene(tmp_path, empty_archive):
    """Makes further scenes, for tests that need a fresh archive for each example."""
    numbers = itertools.count()
    made = []

    def make():
        path = tmp_path / f"archive{next(numbers)}.db"
        made.append(Scene(shutil.copy(empty_archive, path)))
        return made[-1]

    yield make
    for one in made:
        one.close()
