import anyio
import pytest

from kernelarc.guard.schema import solution_from_source
from kernelarc.memory.archive import open_archive
from kernelarc.memory.rows import JobKind, JobState
from kernelarc.server import jobs

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Polls that would take seconds are made short; no test depends on how long they are."""
    monkeypatch.setattr(jobs, "POLL_S", 0.02)


async def _enqueue(services, source, kind=JobKind.VERIFY, **options):
    task = await services.problem("rmsnorm")
    solution = solution_from_source(task, source, "cpp")
    identity = services.archive.catalogue.add_solution(solution)
    asked = services.archive.jobs.enqueue(
        kind,
        "rmsnorm",
        identity,
        agent=services.local.id,
        device="cpu",
        guard_key="1:k0",
        **options,
    )
    services.jobs.announce()
    return asked.job


async def _no_beat(elapsed_s, message):
    pass


async def test_progress_grows_and_names_the_phase(connected, source, era, monkeypatch):
    monkeypatch.setattr(jobs, "HEARTBEAT_S", 0.01)
    seen = []

    async def beat(progress, total, message):
        seen.append((progress, message))
        if len(seen) == 3:
            bench.guard.gate.set()

    async with connected(era) as bench:
        arguments = {"problem": "rmsnorm", "language": "cpp", "source": source("waits")}
        with anyio.fail_after(20):
            await bench.client.call_tool("compile_and_verify", arguments, progress_callback=beat)
    values = [progress for progress, _ in seen]
    assert values == sorted(set(values))
    assert any(message == "verify: checking 1/4" for _, message in seen)


async def test_cancelling_a_running_job_kills_the_candidate(connected, source, era):
    async with connected(era) as bench:
        pending = await bench.verify(source("waits"), wait_s=0)
        await bench.guard.started.wait()
        answer = await bench.call("cancel_job", job_id=pending["job_id"])
        assert answer["state"] == "cancelled"
        result = await bench.call("get_result", job_id=pending["job_id"])
        assert (result["verdict"], result["state"]) == ("CANCELLED", "cancelled")
        assert bench.guard.killed == [pending["solution_id"]]


async def test_the_worker_goes_on_after_a_cancelled_job(connected, source):
    async with connected() as bench:
        pending = await bench.verify(source("waits"), wait_s=0)
        await bench.guard.started.wait()
        await bench.call("cancel_job", job_id=pending["job_id"])
        assert (await bench.verify(source()))["verdict"] == "PASSED"


async def test_a_queued_job_says_how_many_are_before_it(connected, source):
    async with connected() as bench:
        await bench.verify(source("waits"), wait_s=0)
        await bench.guard.started.wait()
        second = await bench.verify(source(body="y[1] = 1;"), wait_s=0)
        third = await bench.verify(source(body="y[2] = x[0] + 2;"), wait_s=0)
        assert (second["position"], third["position"]) == (0, 1)
        bench.guard.gate.set()
        assert (await bench.call("get_result", job_id=third["job_id"]))["verdict"] == "PASSED"


async def test_cancelling_a_finished_job_changes_nothing(connected, source):
    async with connected() as bench:
        done = await bench.verify(source())
        answer = await bench.call("cancel_job", job_id=done["job_id"])
        assert answer["state"] == "done"
        assert (await bench.call("get_result", job_id=done["job_id"]))["verdict"] == "PASSED"


async def test_jobs_of_others_cannot_be_cancelled(connected, source, era):
    async with connected(era) as bench:
        archive = bench.services.archive
        task = await bench.services.problem("rmsnorm")
        solution = solution_from_source(task, source("waits"), "cpp")
        other = archive.runs.ensure_agent("other")
        job = archive.jobs.enqueue(
            JobKind.VERIFY,
            "rmsnorm",
            archive.catalogue.add_solution(solution),
            agent=other.id,
            device="cpu",
            guard_key="1:k0",
        ).job
        assert "another agent" in await bench.refused("cancel_job", job_id=job.id)
        assert not archive.jobs.job(job.id).state.final


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        ("WorkerLost", "the judge died. Nothing was decided"),
        ("RequestError", "flag -fplugin is not allowed."),
        ("RuntimeError", "internal error"),
    ],
)
async def test_a_job_that_fails_says_why_and_may_be_repeated(connected, source, era, raised, said):
    async with connected(era) as bench:
        arguments = {
            "problem": "rmsnorm",
            "language": "cpp",
            "source": source(f"raises: {raised}"),
        }
        text = await bench.refused("compile_and_verify", **arguments)
        assert said in text
        assert "secret" not in text
        await bench.refused("compile_and_verify", **arguments)
        assert len(bench.guard.verified) == 2
        assert (await bench.verify(source()))["verdict"] == "PASSED"


async def test_a_busy_device_puts_the_job_back(connected, source):
    async with connected() as bench:
        bench.guard.busy = 2
        result = await bench.lead(source())
        assert result["verdict"] == "PROMOTED"
        assert len(bench.guard.timed) == 3
        assert bench.services.archive.jobs.job(result["job_id"]).interruptions == 0


async def test_a_candidate_is_timed_again_when_the_leader_changed_meanwhile(
    connected, source, archive
):
    async with connected() as bench:
        rival = await bench.verify(source(body="y[7] = 7;"))
        stored = []

        def overtake():
            stored.append(_promote_by_hand(archive, rival["solution_id"], bench, None))

        bench.guard.while_timing.append(overtake)
        result = await bench.lead(source())
        assert result["verdict"] == "PROMOTED"
        assert result["compared_with"] == rival["solution_id"]
        assert [leader for _, leader in bench.guard.timed] == [None, rival["solution_id"]]


async def test_a_candidate_that_is_always_overtaken_ends_undecided(connected, source, archive):
    async with connected() as bench:
        rivals = [await bench.verify(source(body=f"y[{n}] = {n} + x[{n}];")) for n in range(3)]
        leaders = [None, *(rival["solution_id"] for rival in rivals)]
        for rival, expected in zip(rivals, leaders, strict=False):
            bench.guard.while_timing.append(
                lambda rival=rival, expected=expected: _promote_by_hand(
                    archive, rival["solution_id"], bench, expected
                )
            )
        result = await bench.lead(source(body="for (;;) { *y = 1; break; }"))
        assert len(bench.guard.timed) == jobs.MAX_ROUNDS
        assert result["verdict"] == "INCONCLUSIVE"
        assert "took the lead" in result["message"]
        leader = archive.leaders.leader("rmsnorm", "Scripted CPU")
        assert leader.solution_id == rivals[-1]["solution_id"]
        again = await bench.call("benchmark", solution_id=result["solution_id"])
        assert again["verdict"] == "PROMOTED"


def _promote_by_hand(archive, solution_id, bench, expected):
    """Another server process promotes ``solution_id`` through its own job."""
    problem = bench.services.problems.get("rmsnorm")
    solution = archive.catalogue.solution(solution_id)
    result = bench.guard.measured(problem, solution, expected)
    with archive.register_instance() as instance:
        job = archive.jobs.enqueue(
            JobKind.BENCHMARK,
            "rmsnorm",
            solution_id,
            agent=bench.services.local.id,
            device="elsewhere",
            guard_key="1:k0",
        ).job
        assert archive.jobs.claim(instance, "elsewhere").id == job.id
        finished = archive.results.finish_benchmark(
            instance, job.id, result, device_name="Scripted CPU", expected_leader=expected
        )
    assert finished.promotion is not None


async def test_a_stopped_server_leaves_its_job_in_the_queue(serving, archive, source, guard):
    async with serving() as services:
        job = await _enqueue(services, source("waits"))
        await guard.started.wait()
    left = archive.jobs.job(job.id)
    assert left.state is JobState.QUEUED
    assert left.interruptions == 0
    assert guard.killed == [job.solution_id]


async def test_the_next_server_takes_up_what_a_dead_one_left(serving, archive, source):
    with archive.register_instance() as dead:
        async with serving(device="elsewhere") as services:
            job = await _enqueue(services, source())
        assert archive.jobs.claim(dead, "cpu").id == job.id
    async with serving() as services:
        done = await services.jobs.wait(job.id, 20, _no_beat)
    assert done.state is JobState.DONE
    assert done.interruptions == 1


async def test_a_job_withdrawn_through_another_process_is_stopped(serving, archive, source, guard):
    async with serving() as services:
        job = await _enqueue(services, source("waits"))
        await guard.started.wait()
        with open_archive(archive.path) as elsewhere:
            elsewhere.jobs.cancel(job.id)
        with anyio.fail_after(20):
            await guard.death.wait()


async def test_a_result_made_by_another_process_is_noticed(serving, archive, source):
    """Two servers on one database; the one that is asked has no worker for that device."""
    with open_archive(archive.path) as other:
        async with serving(device="none") as asked, serving(over=other):
            job = await _enqueue(asked, source())
            done = await asked.jobs.wait(job.id, 20, _no_beat)
    assert done.state is JobState.DONE
    assert archive.results.verdict(done.result_id).verdict.passed
