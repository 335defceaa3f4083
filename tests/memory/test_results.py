import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelarc.guard.errors import BoardError, JobCancelled, NotVerified, UnknownId
from kernelarc.guard.schema import BenchmarkOutcome, Environment, EvaluationStatus
from kernelarc.memory import JobKind, JobState
from kernelarc.memory.results import typical_latency_us

Outcome = BenchmarkOutcome
DEVICE = "Test CPU"


def _cached(scene, solution, guard="1", environment="env"):
    return scene.archive.results.cached_verdict(
        "rmsnorm", solution, guard_version=guard, environment_key=environment
    )


def test_a_verdict_is_served_for_the_same_guard_and_environment_only(scene):
    solution = scene.solution()
    assert _cached(scene, solution) is None
    stored = scene.verify(solution, EvaluationStatus.INCORRECT_NUMERICAL)
    assert _cached(scene, solution) == stored
    assert stored.verdict.status is EvaluationStatus.INCORRECT_NUMERICAL
    assert _cached(scene, solution, guard="2") is None
    assert _cached(scene, solution, environment="other") is None
    assert scene.archive.results.verdict(stored.id) == stored


def test_an_equal_verdict_is_not_stored_twice_and_another_one_counts_from_then_on(scene):
    solution = scene.solution()
    first = scene.verify(solution, message="one")
    assert scene.verify(solution, message="one").id == first.id
    second = scene.verify(solution, EvaluationStatus.TIMEOUT, message="two")
    assert second.id != first.id
    assert _cached(scene, solution).verdict.message == "two"
    assert scene.archive.results.verdict(first.id).verdict.message == "one"


def test_the_latest_verdict_may_be_of_another_guard(scene):
    solution = scene.solution()
    scene.verify(solution, guard="1")
    scene.verify(solution, EvaluationStatus.POLICY, guard="2")
    latest = scene.archive.results.latest_verdict("rmsnorm", solution)
    assert latest.verdict.guard_version == "2"


def test_finishing_ends_the_job_with_the_id_of_the_result(scene):
    solution = scene.solution()
    verdict = scene.verify(solution)
    done = scene.enqueue(solution).job
    assert (done.state, done.result_id) == (JobState.DONE, verdict.id)
    benchmark = scene.benchmark(solution, Outcome.BACKUP).benchmark
    done = scene.enqueue(solution, JobKind.BENCHMARK).job
    assert (done.state, done.result_id) == (JobState.DONE, benchmark.id)
    assert scene.archive.results.benchmark(benchmark.id) == benchmark
    assert scene.archive.results.latest_benchmark("rmsnorm", solution, DEVICE) == benchmark
    assert scene.archive.results.latest_benchmark("rmsnorm", solution, "Other") is None


def test_a_benchmark_comes_back_with_all_its_numbers(scene):
    solution = scene.solution()
    stored = scene.benchmark(solution, Outcome.BACKUP, speedup=0.9, latencies=(3.0, 12.0))
    result = scene.archive.results.benchmark(stored.benchmark.id).result
    assert result.speedup.median == 0.9
    assert [p.latency_us for p in result.performance.values()] == [3.0, 12.0]
    scene.submit(solution)
    assert scene.archive.reports.attempts("rmsnorm")[0].latency_us == pytest.approx(6.0)


def test_unknown_results_are_refused(scene):
    with pytest.raises(UnknownId, match="unknown verdict 'v_9'"):
        scene.archive.results.verdict("v_9")
    with pytest.raises(UnknownId, match="unknown benchmark 'b_9'"):
        scene.archive.results.benchmark("b_9")


def test_the_result_of_a_cancelled_job_is_not_stored(scene):
    solution = scene.solution()
    scene.verify(solution)
    job = scene.claimed(solution, JobKind.BENCHMARK)
    scene.archive.jobs.cancel(job)
    result = scene.archive.results
    made = scene.benchmark_record("rmsnorm", solution, Outcome.PROMOTED, leader="f" * 32)
    with pytest.raises(JobCancelled):
        result.finish_benchmark(scene.instance, job, made, device_name=DEVICE, expected_leader=None)
    assert result.latest_benchmark("rmsnorm", solution, DEVICE) is None
    assert scene.archive.leaders.leader("rmsnorm", DEVICE) is None


def test_only_the_instance_that_runs_a_job_may_finish_it(scene):
    solution = scene.solution()
    job = scene.claimed(solution, JobKind.VERIFY)
    verdict = scene.verdict_record("rmsnorm", solution)
    with (
        scene.archive.register_instance() as other,
        pytest.raises(BoardError, match="not run by instance"),
    ):
        scene.archive.results.finish_verify(other, job, verdict)
    scene.archive.results.finish_verify(scene.instance, job, verdict)
    with pytest.raises(BoardError, match="is done"):
        scene.archive.results.finish_verify(scene.instance, job, verdict)


def test_a_result_ends_only_the_job_that_asked_for_it(scene):
    solution, other = scene.solution(), scene.solution()
    finish = scene.archive.results.finish_verify
    job = scene.claimed(solution, JobKind.VERIFY)
    with pytest.raises(BoardError, match="cannot end it"):
        finish(scene.instance, job, scene.verdict_record("rmsnorm", other))
    with pytest.raises(BoardError, match="cannot end it"):
        finish(scene.instance, job, scene.verdict_record("softmax", solution))
    scene.archive.jobs.cancel(job)
    timing = scene.claimed(solution, JobKind.BENCHMARK)
    with pytest.raises(BoardError, match="asked to benchmark"):
        finish(scene.instance, timing, scene.verdict_record("rmsnorm", solution))


def test_a_promotion_without_a_passed_verdict_is_refused_as_a_whole(scene):
    solution = scene.solution()
    with pytest.raises(NotVerified):
        scene.benchmark(solution, Outcome.PROMOTED)
    assert scene.archive.results.latest_benchmark("rmsnorm", solution, DEVICE) is None
    assert [job.state for job in scene.archive.jobs.unfinished()] == [JobState.RUNNING]


def test_a_verdict_of_another_guard_makes_no_leader(scene):
    solution = scene.solution()
    scene.verify(solution, guard="0")
    with pytest.raises(NotVerified):
        scene.benchmark(solution, Outcome.PROMOTED)


def test_a_verdict_that_was_overturned_makes_no_leader(scene):
    solution = scene.solution()
    scene.verify(solution)
    scene.verify(solution, EvaluationStatus.STALE_OUTPUT)
    with pytest.raises(NotVerified):
        scene.benchmark(solution, Outcome.PROMOTED)


@given(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=20))
def test_the_typical_latency_lies_between_the_extremes_and_scales_with_them(
    benchmark_record, latencies
):
    def typical(values):
        return typical_latency_us(
            benchmark_record("rmsnorm", "0" * 32, Outcome.TIE, leader="f" * 32, latencies=values)
        )

    assert min(latencies) * 0.999 <= typical(latencies) <= max(latencies) * 1.001
    assert typical([3 * value for value in latencies]) == pytest.approx(3 * typical(latencies))


def test_nothing_timed_has_no_typical_latency(benchmark_record):
    made = benchmark_record("rmsnorm", "0" * 32, Outcome.TIE, leader="f" * 32, latencies=())
    assert typical_latency_us(made) is None


def test_the_first_report_of_an_environment_counts(scene):
    archive = scene.archive
    facts = Environment(
        device="cpu",
        device_name="cpu-model",
        device_id="cpu-0",
        guard_version="1",
        versions={"torch": "2"},
        threads=2,
        copy_gbps=10.0,
        key="k1",
    )
    archive.results.record_environment(facts)
    archive.results.record_environment(facts.model_copy(update={"copy_gbps": 99.0}))
    assert archive.results.environment("k1") == facts
    assert archive.results.environment("k2") is None
