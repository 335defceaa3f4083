"""A job, a verdict or a benchmark as the ``JobView`` that a model reads."""

from __future__ import annotations

from kernelarc.guard.schema import (
    BenchmarkOutcome,
    BenchmarkResult,
    EvaluationStatus,
    Interval,
    Problem,
    Verdict,
    reference_id,
)
from kernelarc.memory.rows import Job, JobKind, StoredBenchmark, StoredVerdict
from kernelarc.server.guidance import floor_share
from kernelarc.server.views import (
    FailureView,
    GuidanceView,
    JobView,
    SpeedupView,
    TimingView,
)

PENDING = "PENDING"
"""The verdict of a job that is queued or running."""
CANCELLED = "CANCELLED"
"""The verdict of a job that was withdrawn."""
MAX_FAILURES = 3
"""Further failed workloads that are shown; the job's log has all."""
LOG_CHARS = 2000
"""Length to which a compiler's output is cut; the job's log has all that was kept."""


def verdict_view(
    stored: StoredVerdict,
    *,
    job_id: str | None = None,
    cached: bool = False,
    guidance: GuidanceView | None = None,
) -> JobView:
    """The result of a verification. ``cached``: it was known before this call."""
    verdict = stored.verdict
    failed = verdict.status is EvaluationStatus.COMPILE_ERROR
    return JobView(
        verdict=verdict.status,
        state="done",
        kind="verify",
        solution_id=verdict.solution_id,
        problem=verdict.problem,
        message=verdict.message,
        cached=cached or None,
        evidence=stored.id,
        failures=_failures(verdict) or None,
        compiler_log=head_and_tail(verdict.compile.log) if failed and verdict.compile else None,
        labels=verdict.labels or None,
        isolation=verdict.isolation.level,
        job_id=job_id,
        guidance=guidance,
        next=_after_verdict(verdict, job_id),
    )


def benchmark_view(
    stored: StoredBenchmark,
    problem: Problem,
    *,
    promoted: bool,
    job_id: str | None = None,
    cached: bool = False,
    guidance: GuidanceView | None = None,
) -> JobView:
    """The result of a benchmark.

    Args:
        stored: What was measured.
        problem: The problem, for the axes of its workloads.
        promoted: Whether this benchmark made the solution the leader. It may have been faster
            than a leader that was replaced while it was timed: then nothing is decided.
        job_id: The job, if a job was needed.
        cached: It was known before this call.
        guidance: Where the search stands.
    """
    result = stored.result
    overtaken = result.outcome is BenchmarkOutcome.PROMOTED and not promoted
    outcome = BenchmarkOutcome.INCONCLUSIVE if overtaken else result.outcome
    decided = outcome is not BenchmarkOutcome.INCONCLUSIVE  # else the numbers are noise
    reason = result.reason
    if overtaken:
        reason = (
            f"Faster than solution {result.leader_id}, but another one took the lead while it was "
            "timed, so nothing is decided."
        )
    return JobView(
        verdict=outcome,
        state="done",
        kind="benchmark",
        solution_id=result.solution_id,
        problem=result.problem,
        message=f"{result.status}: {reason}" if outcome is BenchmarkOutcome.REJECTED else reason,
        cached=cached or None,
        evidence=stored.id,
        speedup=_speedup(result.speedup) if decided else None,
        speedup_over_reference=_speedup(result.speedup_over_reference),
        compared_with=opponent(result.leader_id, problem),
        margin=round(result.margin, 4) if decided and result.margin is not None else None,
        timings=(_timings(result, problem) or None) if decided else None,
        isolation=result.isolation.level,
        job_id=job_id,
        guidance=guidance,
        next=_after_benchmark(outcome, result.solution_id),
    )


def opponent(leader_id: str, problem: Problem) -> str:
    """Whom a solution was timed against: ``reference``, or the id of the leader of that time."""
    return "reference" if leader_id == reference_id(problem) else leader_id


def unfinished_view(job: Job, *, phase: str, position: int | None, elapsed_s: float) -> JobView:
    """A job that has no result yet, or was withdrawn."""
    common = {"kind": str(job.kind), "solution_id": job.solution_id, "problem": job.problem}
    if job.finished_at is not None:
        repeat = "compile_and_verify" if job.kind is JobKind.VERIFY else "benchmark"
        return JobView.model_validate(
            common
            | {
                "verdict": CANCELLED,
                "state": "cancelled",
                "job_id": job.id,
                "next": f"Call {repeat} again to have it judged.",
            }
        )
    return JobView.model_validate(
        common
        | {
            "verdict": PENDING,
            "state": str(job.state),
            "job_id": job.id,
            "position": position,
            "phase": phase,
            "elapsed_s": round(elapsed_s, 1),
            "next": f'Call get_result(job_id="{job.id}"); it waits for the result.',
        }
    )


def head_and_tail(text: str, limit: int = LOG_CHARS) -> str:
    """``text`` cut in the middle to about ``limit`` characters, at line ends."""
    if len(text) <= limit:
        return text
    head = text[: limit * 2 // 3].rpartition("\n")[0] or text[: limit * 2 // 3]
    tail = text[-(limit // 3) :].partition("\n")[2] or text[-(limit // 3) :]
    omitted = text.count("\n") - head.count("\n") - tail.count("\n")
    return f"{head}\n[{omitted} lines omitted]\n{tail}"


def _failures(verdict: Verdict) -> list[FailureView]:
    """Failed evaluations, but for the one that the verdict's message tells already."""
    failed = [
        evaluation
        for evaluation in verdict.evaluations
        if evaluation.status is not EvaluationStatus.PASSED
        and evaluation.message not in verdict.message
    ]
    return [
        FailureView(status=e.status, axes=e.axes, message=e.message) for e in failed[:MAX_FAILURES]
    ]


def _timings(result: BenchmarkResult, problem: Problem) -> list[TimingView]:
    axes = {workload.uuid: problem.axes(workload) for workload in problem.workloads}
    return [
        TimingView(
            axes=axes.get(uuid, {}),
            latency_us=_us(timing.latency_us),
            leader_us=_us(timing.leader_latency_us),
            ratio=round(timing.ratio, 4),
            roofline_fraction=floor_share(timing),
        )
        for uuid, timing in result.performance.items()
    ]


def _us(microseconds: float) -> float:
    return float(f"{microseconds:.4g}")


def _speedup(interval: Interval | None) -> SpeedupView | None:
    if interval is None:
        return None
    return SpeedupView(
        median=round(interval.median, 4),
        low=round(interval.low, 4),
        high=round(interval.high, 4),
        coverage=round(interval.coverage, 3),
    )


def _after_verdict(verdict: Verdict, job_id: str | None) -> str:
    if verdict.passed:
        return f'Call benchmark(solution_id="{verdict.solution_id}").'
    log = f" All of it: kernelarc://jobs/{job_id}/log." if job_id else ""
    return f"Repair what message and failures name, then compile_and_verify the new source.{log}"


def _after_benchmark(outcome: BenchmarkOutcome, solution_id: str) -> str:
    if outcome is BenchmarkOutcome.INCONCLUSIVE:
        return f'Call benchmark(solution_id="{solution_id}") again later.'
    return "Call post_insight with what this shows and evidence; then change one thing and submit."
