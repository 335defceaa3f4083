import pytest

from kernelarc.guard.errors import UnknownId
from kernelarc.guard.schema import BenchmarkOutcome, EvaluationStatus
from kernelarc.memory import RunState

Outcome, Status = BenchmarkOutcome, EvaluationStatus


@pytest.fixture
def reports(scene):
    return scene.archive.reports


def test_an_attempt_gains_status_and_outcome_as_the_guard_speaks(scene, reports):
    solution = scene.solution("void run() { int a; }")
    scene.submit(solution, strategy="fusion", note="first")

    def attempt():
        (only,) = reports.attempts("rmsnorm")
        return only

    assert (attempt().status, attempt().outcome, attempt().promoted) == (None, None, False)
    assert attempt().leader_id is None
    scene.verify(solution)
    assert (attempt().status, attempt().outcome) == (Status.PASSED, None)
    scene.benchmark(solution, Outcome.PROMOTED, speedup=1.3)
    done = attempt()
    assert (done.outcome, done.promoted, done.speedup) == (Outcome.PROMOTED, True, 1.3)
    assert done.latency_us == pytest.approx(10.0)
    assert done.leader_id == "f" * 32
    assert (done.strategy, done.note, done.language) == ("fusion", "first", "cpp")
    assert (done.agent, done.agent_name, done.run) == (scene.agent, "local", None)
    (digest,) = done.source_digests
    assert scene.archive.catalogue.source(digest) == "void run() { int a; }"


def test_only_the_first_submission_of_a_promoted_solution_counts_as_promoted(scene, reports):
    solution = scene.solution()
    scene.submit(solution)
    scene.promoted(solution)
    scene.submit(solution, agent=scene.archive.runs.ensure_agent("rival").id)
    assert [a.promoted for a in reports.attempts("rmsnorm")] == [True, False]


def test_attempts_are_filtered_by_agent_and_run_and_continue_after_an_id(scene, reports):
    run = scene.archive.runs.start_run({}).id
    agent = scene.archive.runs.ensure_agent("alpha", run=run).id
    mine = [scene.submit(scene.solution()).id for _ in range(2)]
    theirs = [scene.submit(scene.solution(), agent=agent).id for _ in range(3)]

    def ids(**filters):
        return [a.submission_id for a in reports.attempts("rmsnorm", **filters)]

    assert ids() == mine + theirs
    assert ids(agent=scene.agent) == mine
    assert ids(run=run) == theirs
    assert ids(run=run, after=theirs[0]) == theirs[1:]
    assert ids(limit=2) == theirs[1:]
    assert ids(agent=agent, run=run, after=theirs[2]) == []


def test_strategies_are_summed_up_most_attempted_first(scene, reports):
    good, bad, slow = (scene.solution() for _ in range(3))
    scene.submit(good, strategy="tiling")
    scene.submit(bad, strategy="tiling")
    scene.submit(slow, strategy="fusion")
    scene.post("hm", strategy="fusion")
    scene.post("untried", strategy="pipelining")
    scene.promoted(good, speedup=1.4, latencies=(20.0,))
    scene.verify(bad, Status.CRASH)
    scene.verify(slow)
    scene.benchmark(slow, Outcome.BACKUP, speedup=0.5, latencies=(40.0,))
    tiling, fusion, pipelining = reports.by_strategy("rmsnorm")
    assert (tiling.strategy, tiling.attempts, tiling.passed, tiling.promoted) == ("tiling", 2, 1, 1)
    assert (tiling.best_outcome, tiling.best_speedup, tiling.insights) == (Outcome.PROMOTED, 1.4, 0)
    assert (fusion.attempts, fusion.best_outcome, fusion.best_speedup) == (1, Outcome.BACKUP, 0.5)
    assert (fusion.best_latency_us, fusion.insights) == (pytest.approx(40.0), 1)
    assert (pipelining.strategy, pipelining.attempts, pipelining.best_outcome) == (
        "pipelining",
        0,
        None,
    )


def test_the_report_of_a_run_holds_what_its_agents_did_and_nothing_else(scene, reports):
    run = scene.archive.runs.start_run({"agents": 1}).id
    agent = scene.archive.runs.ensure_agent("alpha", run=run)
    leader, crashed, cheat, outside = (scene.solution() for _ in range(4))
    for solution in (leader, crashed, cheat):
        scene.submit(solution, agent=agent.id)
    scene.submit(outside)
    scene.promoted(outside)
    scene.promoted(leader)
    scene.verify(crashed, Status.CRASH)
    scene.verify(cheat)
    scene.benchmark(cheat, Outcome.REJECTED)
    insight = scene.post("mine", agent=agent.id).insight
    scene.post("other")
    scene.archive.runs.set_run_state(run, RunState.FINISHED)
    report = reports.run_report(run)
    assert report.run.state is RunState.FINISHED
    assert report.agents == (agent,)
    assert [a.solution_id for a in report.attempts] == [leader, crashed, cheat]
    assert [p.solution_id for p in report.promotions] == [leader]
    assert report.insights == (insight,)
    assert report.rejects == {"CRASH": 1, "TIMING_MISMATCH": 1}


def test_the_report_of_an_unknown_run_is_refused(reports):
    with pytest.raises(UnknownId):
        reports.run_report("r_7")


def test_everything_that_happens_to_a_candidate_is_an_event_of_its_run(scene):
    run = scene.archive.runs.start_run({}).id
    agent = scene.archive.runs.ensure_agent("alpha", run=run).id
    solution = scene.solution()
    scene.submit(solution, agent=agent)
    scene.promoted(solution)
    job = scene.enqueue(scene.solution(), agent=agent).job
    scene.archive.jobs.cancel(job.id)
    scene.post("x", agent=agent)
    events = scene.archive.runs.events(run)
    kinds = [event.kind for event in events]
    assert kinds == ["submission", "promotion", "job", "job", "insight"]
    assert events[1].payload["solution"] == solution
    assert [e.payload["state"] for e in events[2:4]] == ["queued", "cancelled"]
