import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from kernelarc.guard.errors import BoardError, JobCancelled, UnknownId, UnknownProblem
from kernelarc.guard.schema import BenchmarkOutcome
from kernelarc.memory import JobKind, JobState
from kernelarc.memory.jobs import INTERRUPTED, Waiting, service_order


@pytest.fixture
def jobs(scene):
    return scene.archive.jobs


def test_an_equal_unfinished_job_is_returned_whoever_asks(scene, jobs):
    solution = scene.solution()
    other = scene.archive.runs.ensure_agent("other").id
    first = scene.enqueue(solution)
    assert first.created
    again = scene.enqueue(solution[:9], agent=other, force=True)
    assert not again.created
    assert again.job == first.job
    jobs.claim(scene.instance, "cpu")
    assert scene.enqueue(solution).job.id == first.job.id


def test_jobs_that_differ_in_anything_are_different_jobs(scene, jobs):
    solution = scene.solution()
    made = [
        scene.enqueue(solution).job.id,
        scene.enqueue(scene.solution()).job.id,
        scene.enqueue(solution, JobKind.BENCHMARK).job.id,
        scene.enqueue(solution, device="cuda:0").job.id,
        scene.enqueue(solution, params={"blocks": 3}).job.id,
        jobs.enqueue(
            JobKind.VERIFY, "rmsnorm", solution, agent=scene.agent, device="cpu", guard_key="2/env"
        ).job.id,
    ]
    assert len(set(made)) == len(made)
    assert scene.enqueue(solution, params={"blocks": 3}).job.id == made[4]


def test_a_job_on_another_version_of_the_problem_is_another_job(scene):
    solution = scene.solution()
    first = scene.enqueue(solution).job.id
    scene.register("rmsnorm", reference="return 2 * x")
    assert scene.enqueue(solution).job.id != first


def test_a_decided_job_is_returned_unless_forced(scene):
    solution = scene.solution()
    scene.verify(solution)
    done = scene.enqueue(solution)
    assert not done.created
    assert done.job.state is JobState.DONE
    assert scene.enqueue(solution, force=True).created


def test_an_undecided_benchmark_does_not_stand_in_the_way(scene):
    solution = scene.solution()
    scene.benchmark(solution, BenchmarkOutcome.INCONCLUSIVE)
    assert scene.enqueue(solution, JobKind.BENCHMARK).created


def test_failed_and_cancelled_jobs_do_not_stand_in_the_way(scene, jobs):
    solution = scene.solution()
    failed = jobs.fail(scene.instance, scene.claimed(solution, JobKind.VERIFY), "no compiler")
    assert (failed.state, failed.error) == (JobState.FAILED, "no compiler")
    second = scene.enqueue(solution)
    assert second.created
    assert jobs.cancel(second.job.id).state is JobState.CANCELLED
    assert scene.enqueue(solution).created


def test_unknown_things_are_refused(scene, jobs):
    with pytest.raises(UnknownProblem):
        scene.enqueue(scene.solution(), problem="nope")
    with pytest.raises(UnknownId, match="unknown solution"):
        scene.enqueue("0" * 32)
    with pytest.raises(UnknownId, match="unknown agent"):
        scene.enqueue(scene.solution(), agent="a_77")
    with pytest.raises(UnknownId, match="unknown job 'j_77'"):
        jobs.job("j_77")
    assert jobs.unfinished() == []


def test_a_claim_takes_the_oldest_job_of_its_device_and_marks_it_running(scene, jobs):
    first, second = (scene.enqueue(scene.solution()).job for _ in range(2))
    scene.enqueue(scene.solution(), device="cuda:0")
    claimed = jobs.claim(scene.instance, "cpu")
    assert (claimed.id, claimed.state) == (first.id, JobState.RUNNING)
    assert claimed.started_at is not None
    assert jobs.claim(scene.instance, "cpu").id == second.id
    assert jobs.claim(scene.instance, "cpu") is None


def test_an_agent_that_fills_the_queue_delays_others_by_one_job(scene, jobs):
    other = scene.archive.runs.ensure_agent("other").id
    many = [scene.enqueue(scene.solution()).job.id for _ in range(4)]
    one = scene.enqueue(scene.solution(), agent=other).job.id
    assert [jobs.position(j) for j in [*many, one]] == [0, 2, 3, 4, 1]
    order = [jobs.claim(scene.instance, "cpu").id for _ in range(5)]
    assert order == [many[0], one, *many[1:]]
    late = scene.enqueue(scene.solution(), agent=other).job.id
    more = scene.enqueue(scene.solution()).job.id
    assert jobs.claim(scene.instance, "cpu").id == late  # the other was served longer ago
    assert jobs.position(more) == 0
    assert jobs.position(late) is None


waiting_lists = st.lists(
    st.tuples(st.integers(1, 5), st.integers(1, 10_000)), max_size=30, unique_by=lambda t: t[1]
)


@given(waiting_lists, st.lists(st.integers(0, 50), min_size=6, max_size=6))
def test_everybody_waiting_is_served_once_oldest_job_first_and_nobody_twice_in_a_round(
    entries, turns
):
    waiting = [Waiting(job, agent, turns[agent]) for agent, job in entries]
    order = service_order(waiting)
    assert sorted(order) == sorted(w.job for w in waiting)
    agent_of = {w.job: w.agent for w in waiting}
    served = [agent_of[job] for job in order]
    for agent in set(served):
        assert [j for j in order if agent_of[j] == agent] == sorted(
            w.job for w in waiting if w.agent == agent
        )
        places = [place for place, who in enumerate(served) if who == agent]
        for start, end in itertools.pairwise(places):
            between = served[start + 1 : end]
            assert len(between) == len(set(between))
            assert set(served[end:]) - {agent} <= set(between)


@given(waiting_lists, st.lists(st.integers(0, 50), min_size=6, max_size=6))
def test_the_order_does_not_change_when_its_first_is_served(entries, turns):
    turns = {agent: 100 * turn + agent for agent, turn in enumerate(turns)}  # as turns, unique
    waiting = [Waiting(job, agent, turns[agent]) for agent, job in entries]
    order = service_order(waiting)
    now = max(turns.values())
    served = []
    while waiting:
        first = next(w for w in waiting if w.job == service_order(waiting)[0])
        now += 1
        served.append(first.job)
        waiting = [
            w._replace(last_turn=now) if w.agent == first.agent else w
            for w in waiting
            if w != first
        ]
    assert served == order


def test_a_finished_job_cannot_be_cancelled_failed_or_released(scene, jobs):
    solution = scene.solution()
    scene.verify(solution)
    done = scene.enqueue(solution).job
    assert jobs.cancel(done.id) == done
    for end in (lambda: jobs.fail(scene.instance, done.id, "x"), lambda: _release(scene, done)):
        with pytest.raises(BoardError, match="is done"):
            end()


def _release(scene, job):
    return scene.archive.jobs.release(scene.instance, job.id)


def test_the_worker_of_a_cancelled_job_learns_of_it(scene, jobs):
    job = scene.claimed(scene.solution(), JobKind.VERIFY)
    assert jobs.cancel(job).state is JobState.CANCELLED
    with pytest.raises(JobCancelled, match=job):
        jobs.fail(scene.instance, job, "x")


def test_a_released_job_keeps_its_place_and_counts_no_interruption(scene, jobs):
    job = scene.claimed(scene.solution(), JobKind.VERIFY)
    scene.enqueue(scene.solution())
    released = jobs.release(scene.instance, job)
    assert (released.state, released.interruptions, released.started_at) == (
        JobState.QUEUED,
        0,
        None,
    )
    assert jobs.claim(scene.instance, "cpu").id == job


def test_running_jobs_of_a_living_instance_are_no_orphans(scene, jobs):
    scene.claimed(scene.solution(), JobKind.VERIFY)
    assert jobs.requeue_orphans().requeued == ()


def test_orphans_return_to_the_queue_once_for_each_interruption(scene, jobs):
    job = scene.enqueue(scene.solution()).job.id
    with scene.archive.register_instance() as dead:
        assert jobs.claim(dead, "cpu").id == job
    assert jobs.requeue_orphans().requeued == (job,)
    assert jobs.requeue_orphans() == jobs.requeue_orphans()
    assert jobs.job(job).interruptions == 1
    assert jobs.claim(scene.instance, "cpu").id == job
    with pytest.raises(BoardError, match="not run by instance"):
        jobs.fail(dead, job, "late")


def test_the_third_interruption_fails_the_job_for_good(scene, jobs):
    solution = scene.solution()
    job = scene.enqueue(solution).job.id
    for _ in range(3):
        with scene.archive.register_instance() as dead:
            assert jobs.claim(dead, "cpu").id == job
        last = jobs.requeue_orphans()
    assert (last.requeued, last.failed) == ((), (job,))
    failed = jobs.job(job)
    assert (failed.state, failed.error, failed.interruptions) == (JobState.FAILED, INTERRUPTED, 3)
    assert jobs.claim(scene.instance, "cpu") is None
    assert scene.enqueue(solution).job.id == job  # also when an agent asks for it again


def test_a_dead_instances_lock_file_is_removed(scene, jobs):
    folder = scene.path.with_name("archive.db.instances")
    dead = scene.archive.register_instance()
    scene.enqueue(scene.solution())
    jobs.claim(dead, "cpu")
    assert len(list(folder.iterdir())) == 2
    dead.close()
    dead.close()
    jobs.requeue_orphans()
    assert [p.name for p in folder.iterdir()] == [f"{scene.instance.row_id}.lock"]


def test_an_instance_that_cannot_be_locked_is_not_registered(scene, jobs):
    folder = scene.path.with_name("archive.db.instances")
    next_lock = folder / f"{scene.instance.row_id + 1}.lock"
    next_lock.mkdir()
    with pytest.raises(BoardError, match="lock file beside the archive failed"):
        scene.archive.register_instance()
    next_lock.rmdir()
    with scene.archive.register_instance() as instance:
        assert instance.row_id == scene.instance.row_id + 1


def test_unfinished_jobs_are_listed_by_agent_oldest_first(scene, jobs):
    other = scene.archive.runs.ensure_agent("other").id
    mine = scene.enqueue(scene.solution()).job
    theirs = scene.enqueue(scene.solution(), agent=other).job
    jobs.claim(scene.instance, "cpu")
    assert [j.id for j in jobs.unfinished()] == [mine.id, theirs.id]
    assert [j.id for j in jobs.unfinished(agent=other)] == [theirs.id]


class QueueMachine(RuleBasedStateMachine):
    """Model: the set of unfinished jobs and who runs which."""

    new_scene = None

    def __init__(self):
        super().__init__()
        self.scene = self.new_scene()
        self.jobs = self.scene.archive.jobs
        self.agents = [self.scene.archive.runs.ensure_agent(name).id for name in "abc"]
        self.instances = []
        self.queued = set()
        self.running = {}
        self.orphans = {}
        self.deaths = {}

    @rule(agent=st.integers(0, 2))
    def enqueue(self, agent):
        made = self.scene.enqueue(self.scene.solution(), agent=self.agents[agent])
        assert made.created
        self.queued.add(made.job.id)
        self.deaths[made.job.id] = 0

    @rule()
    def start(self):
        if len(self.instances) < 3:
            self.instances.append(self.scene.archive.register_instance())

    @precondition(lambda self: self.instances)
    @rule(data=st.data())
    def claim(self, data):
        instance = data.draw(st.sampled_from(self.instances))
        job = self.jobs.claim(instance, "cpu")
        if job is None:
            assert not self.queued
        else:
            assert job.id in self.queued
            self.queued.remove(job.id)
            self.running[job.id] = instance

    @precondition(lambda self: self.running)
    @rule(data=st.data(), end=st.sampled_from(["finish", "fail", "release", "cancel"]))
    def end(self, data, end):
        job = data.draw(st.sampled_from(sorted(self.running)))
        instance = self.running.pop(job)
        if end == "finish":
            verdict = self.scene.verdict_record("rmsnorm", self.jobs.job(job).solution_id)
            self.scene.archive.results.finish_verify(instance, job, verdict)
        elif end == "fail":
            self.jobs.fail(instance, job, "x")
        elif end == "cancel":
            self.jobs.cancel(job)
        else:
            self.jobs.release(instance, job)
            self.queued.add(job)

    @precondition(lambda self: self.instances)
    @rule(data=st.data())
    def die(self, data):
        dead = data.draw(st.sampled_from(self.instances))
        self.instances.remove(dead)
        dead.close()
        for job in [job for job, owner in self.running.items() if owner is dead]:
            self.orphans[job] = self.running.pop(job)

    @rule()
    def requeue(self):
        done = self.jobs.requeue_orphans()
        assert {*done.requeued, *done.failed} == set(self.orphans)
        for job in self.orphans:
            self.deaths[job] += 1
            assert (job in done.failed) == (self.deaths[job] == 3)
        self.orphans.clear()
        self.queued.update(done.requeued)

    @invariant()
    def unfinished_jobs_are_the_models(self):
        states = {j.id: j.state for j in self.jobs.unfinished()}
        queued = {job for job, state in states.items() if state is JobState.QUEUED}
        assert queued == self.queued
        assert states.keys() - queued == self.running.keys() | self.orphans.keys()
        places = sorted(self.jobs.position(job) for job in queued)
        assert places == list(range(len(queued)))

    def teardown(self):
        for instance in self.instances:
            instance.close()
        self.scene.close()


@pytest.mark.slow
def test_a_job_never_runs_twice_at_once_and_never_gets_lost(new_scene):
    machine = type("Queue", (QueueMachine,), {"new_scene": staticmethod(new_scene)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=10,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
