import contextlib
from dataclasses import replace

import anyio
import pytest

from kernelarc.clients.agents.base import AgentEnd, ToolFailed
from kernelarc.clients.orchestrator import RunHandle, orchestrate
from kernelarc.clients.run_record import AgentState, RunState
from kernelarc.clients.run_spec import AgentSpec, Budgets, RunSpec, team
from kernelarc.clients.session import ServerUnreachable, socket_session
from kernelarc.guard.errors import BoardError, RequestError

pytestmark = pytest.mark.anyio


@pytest.fixture
def spec():
    return RunSpec(problems=["rmsnorm"], agents=team(2), budgets=Budgets(attempts=5))


@pytest.fixture
def run(spec, recorder, connect, worker):
    return RunHandle("r_1", spec, recorder, connect, agent=lambda _: worker())


async def test_every_agent_makes_exactly_its_attempts(run, script, recorder):
    outcome = await orchestrate(run, handle_signals=False)
    assert outcome.state is RunState.FINISHED
    for agent in ("builtin-1", "builtin-2"):
        assert len(script.attempts[agent, "rmsnorm"]) == 5
        assert sum(call[:2] == (agent, "compile_and_verify") for call in script.calls) == 5
        assert recorder.states[agent] is AgentState.FINISHED
    assert recorder.ended == (RunState.FINISHED, "every agent has ended")


async def test_agents_begin_from_different_angles(run, script):
    await orchestrate(run, handle_signals=False)
    used = {name: made[0]["strategy"] for (name, _), made in script.attempts.items()}
    assert used == {"builtin-1": "vectorise", "builtin-2": "fuse-passes"}


async def test_refused_submissions_cost_nothing_until_they_are_a_habit(run, script, worker):
    stubborn = replace(run, agent=lambda _: worker(body="refused"))
    await orchestrate(stubborn, handle_signals=False)
    submitted = [call for call in script.calls if call[1] == "compile_and_verify"]
    assert len(submitted) == 2 * (10 + 5)
    assert not script.attempts["builtin-1", "rmsnorm"]


class Repeating:
    """Submits the same code until its budget ends it, with two other versions in between."""

    kind = "builtin"

    async def run(self, toolbox, assignment, budget, report):
        calls = 0
        while not budget.spent():
            version = {4: 1, 9: 2}.get(calls, 0)
            source = f"{assignment.agent} {version}"
            await toolbox.call("compile_and_verify", problem=assignment.problem, source=source)
            calls += 1
        return AgentEnd("budget", "", calls)


async def test_the_same_code_again_costs_nothing_until_it_is_a_habit(run, script):
    await orchestrate(replace(run, agent=lambda _: Repeating()), handle_signals=False)
    calls = [c for c in script.calls if c[:2] == ("builtin-1", "compile_and_verify")]
    # Three versions; ten repetitions in a row are free, the next two use up the five attempts.
    assert len(calls) == 9 + 1 + 10 + 2
    assert len(script.attempts["builtin-1", "rmsnorm"]) == 3


async def test_code_of_an_earlier_sitting_is_not_charged_again(run, script):
    await orchestrate(replace(run, agent=lambda _: Repeating()), handle_signals=False)
    script.calls.clear()
    await orchestrate(replace(run, agent=lambda _: Repeating()), handle_signals=False)
    calls = [c for c in script.calls if c[:2] == ("builtin-1", "compile_and_verify")]
    # Three of five attempts were made; all versions are known.
    assert len(calls) == 10 + 2


async def test_an_agent_that_ignores_its_budget_is_stopped_by_the_toolbox(run, script):
    class Greedy:
        kind = "builtin"

        async def run(self, toolbox, assignment, budget, report):
            async def submit(number):
                with contextlib.suppress(ToolFailed):
                    await toolbox.call(
                        "compile_and_verify",
                        problem=assignment.problem,
                        source=f"{assignment.agent} {number}",
                    )

            async with anyio.create_task_group() as group:
                for number in range(20):
                    group.start_soon(submit, number)
            return AgentEnd("budget", "", 20)

    await orchestrate(replace(run, agent=lambda _: Greedy()), handle_signals=False)
    assert len(script.attempts["builtin-1", "rmsnorm"]) == 5


async def test_a_demanded_pivot_is_followed_and_recorded(run, script, recorder):
    script.problems["rmsnorm"] = ["vectorise", "fuse-passes", "parallelism", "unroll-ilp"]
    script.patience = 2
    await orchestrate(run, handle_signals=False)
    strategies = [a["strategy"] for a in script.attempts["builtin-1", "rmsnorm"]]
    assert len(strategies) == 5
    assert strategies[0] == strategies[1] != strategies[2] == strategies[3] != strategies[4]
    pivots = [p for _, kind, p in recorder.events if kind == "step" and p["step"] == "pivot"]
    assert all("Submit under one of these strategies" in pivot["text"] for pivot in pivots)
    assert len(pivots) == 4


async def test_an_agent_that_raises_is_recorded_and_the_others_go_on(run, script, recorder, worker):
    def agent(spec):
        return worker(error=ValueError("bad\nmodel") if spec.name == "builtin-1" else None)

    outcome = await orchestrate(replace(run, agent=agent), handle_signals=False)
    assert outcome.state is RunState.FINISHED
    assert recorder.states["builtin-1"] is AgentState.FAILED
    assert recorder.reasons["builtin-1"] == "ValueError: bad model"
    assert len(script.attempts["builtin-2", "rmsnorm"]) == 5


async def test_a_run_whose_agents_all_fail_has_failed(run, recorder, worker):
    failing = replace(run, agent=lambda _: worker(error=OSError("no model")))
    outcome = await orchestrate(failing, handle_signals=False)
    assert (outcome.state, outcome.reason) == (RunState.FAILED, "every agent failed")


async def test_a_leader_near_the_roofline_ends_the_problem_for_everybody(
    run, script, recorder, worker
):
    def agent(spec):
        return worker(body="roof" if spec.name == "builtin-1" else "plain")

    budgets = Budgets(attempts=1000, minutes=1)
    endless = replace(run, spec=run.spec.model_copy(update={"budgets": budgets}), agent=agent)
    outcome = await orchestrate(endless, handle_signals=False)
    assert outcome.reason == "every leader is near the roofline"
    assert len(script.attempts["builtin-1", "rmsnorm"]) == 1
    done = [payload for _, kind, payload in recorder.events if kind == "problem_done"]
    assert done == [{"problem": "rmsnorm", "reason": "near the roofline"}]


async def test_a_promotion_is_told_with_its_interval_and_roofline_share(
    run, script, recorder, worker
):
    await orchestrate(replace(run, agent=lambda _: worker(first=("fast",))), handle_signals=False)
    leader = next(payload for _, kind, payload in recorder.events if kind == "leader")
    assert (leader["speedup"], leader["low"], leader["high"]) == (2.5, 2.4, 2.6)
    assert leader["roofline"] == pytest.approx(0.4)
    assert leader["strategy"] in script.problems["rmsnorm"]


async def test_an_exhausted_agent_gets_strategies_that_nobody_had(run, script, recorder, worker):
    script.problems["rmsnorm"] = ["vectorise", "fuse-passes", "parallelism", "unroll-ilp"]
    await orchestrate(replace(run, agent=lambda _: worker(stop_after=1)), handle_signals=False)
    used = {attempt["strategy"] for made in script.attempts.values() for attempt in made}
    assert used == set(script.problems["rmsnorm"])
    assert [kind for _, kind, _ in recorder.events].count("reassigned") == 2


async def test_a_named_strategy_is_kept(run, script, worker):
    agents = [AgentSpec(name="ada", strategy="fuse-passes")]
    pinned = replace(
        run,
        spec=run.spec.model_copy(update={"agents": agents}),
        agent=lambda _: worker(stop_after=2),
    )
    await orchestrate(pinned, handle_signals=False)
    assert {a["strategy"] for a in script.attempts["ada", "rmsnorm"]} == {"fuse-passes"}


async def test_the_time_ends_a_run_that_still_has_attempts(run, script, recorder, worker):
    timed = run.spec.model_copy(update={"budgets": Budgets(attempts=None, minutes=0.01)})
    outcome = await orchestrate(replace(run, spec=timed), handle_signals=False)
    assert (outcome.state, outcome.reason) == (RunState.FINISHED, "the time is over")
    assert set(recorder.states.values()) == {AgentState.FINISHED}


async def test_earlier_sittings_count_towards_the_time(run, script):
    spec = run.spec.model_copy(update={"budgets": Budgets(attempts=5, minutes=1)})
    outcome = await orchestrate(replace(run, spec=spec, elapsed_s=61.0), handle_signals=False)
    assert outcome.reason == "the time is over"
    assert not any(script.attempts.values())


async def test_an_agent_stuck_in_a_job_is_cut_after_the_grace(run, script, worker, monkeypatch):
    monkeypatch.setattr("kernelarc.clients.orchestrator.GRACE_S", 1.0)
    spec = run.spec.model_copy(update={"budgets": Budgets(attempts=5, minutes=0.05)})
    stuck = replace(run, spec=spec, agent=lambda _: worker(body="stuck"))
    outcome = await orchestrate(stuck, handle_signals=False)
    assert outcome.state is RunState.FINISHED
    assert sorted(script.cancelled) == ["j_1", "j_2"]


async def test_cancelling_withdraws_jobs_and_leaves_the_run_resumable(
    run, script, recorder, worker
):
    stuck = replace(run, agent=lambda _: worker(body="stuck"))
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: orchestrate(stuck, handle_signals=False))
        await anyio.to_thread.run_sync(script.asked.wait)
        group.cancel_scope.cancel()
    assert "j_1" in script.cancelled
    assert recorder.ended == (RunState.INTERRUPTED, "cancelled")
    assert set(recorder.states.values()) == {AgentState.READY}


async def test_a_resumed_run_leaves_finished_agents_alone_and_completes_the_others(
    run, script, recorder, worker
):
    for number in range(2):
        script.submit("builtin-1", "rmsnorm", f"a {number}", "vectorise")
    for number in range(3):
        script.submit("builtin-2", "rmsnorm", f"b {number}", "fuse-passes")
    resumed = replace(
        run, states={"builtin-1": AgentState.WORKING, "builtin-2": AgentState.FINISHED}
    )
    await orchestrate(resumed, handle_signals=False)
    assert len(script.attempts["builtin-1", "rmsnorm"]) == 5
    assert len(script.attempts["builtin-2", "rmsnorm"]) == 3
    assert "agent_started" not in recorder.kinds("builtin-2")


async def test_fewer_agents_than_problems_work_them_off_one_after_the_other(run, script):
    script.problems = {name: ["vectorise", "fuse-passes"] for name in ("a", "b", "c")}
    spec = RunSpec(problems=["a", "b", "c"], agents=team(2), budgets=Budgets(attempts=2))
    await orchestrate(replace(run, spec=spec), handle_signals=False)
    assert {key: len(made) for key, made in script.attempts.items()} == {
        ("builtin-1", "a"): 2,
        ("builtin-2", "b"): 2,
        ("builtin-1", "c"): 2,
    }


async def test_an_unknown_problem_fails_the_run_with_the_servers_words(run, recorder):
    spec = run.spec.model_copy(update={"problems": ["gelu"]})
    with pytest.raises(ToolFailed, match="Known problems: rmsnorm"):
        await orchestrate(replace(run, spec=spec), handle_signals=False)
    assert recorder.ended[0] is RunState.FAILED


async def test_a_strategy_that_does_not_apply_fails_the_run_before_it_begins(run, script):
    agents = [AgentSpec(name="ada", strategy="tensor-cores")]
    with pytest.raises(RequestError, match="'auto' or one of: vectorise, fuse-passes"):
        await orchestrate(
            replace(run, spec=run.spec.model_copy(update={"agents": agents})),
            handle_signals=False,
        )
    assert not any(script.attempts.values())


async def test_a_server_restart_in_the_middle_costs_no_attempt(
    served, script, recorder, spec, worker, quick
):
    def connect(name):
        return socket_session(served.socket, f"token-{name}", patience=quick)

    run = RunHandle("r_1", spec, recorder, connect, agent=lambda _: worker(first=("", "held")))
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: orchestrate(run, handle_signals=False))
        await anyio.to_thread.run_sync(script.entered.wait)
        await anyio.to_thread.run_sync(served.stop)
        script.released.set()
        await anyio.to_thread.run_sync(served.start)
    assert recorder.ended[0] is RunState.FINISHED
    assert {len(made) for made in script.attempts.values()} == {5}


async def test_a_server_that_stays_away_fails_the_agents_in_words(
    served, script, recorder, spec, worker, quick
):
    impatient = replace(quick, reconnect_s=0.3)

    def connect(name):
        return socket_session(served.socket, f"token-{name}", patience=impatient)

    run = RunHandle("r_1", spec, recorder, connect, agent=lambda _: worker(body="held"))
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: orchestrate(run, handle_signals=False))
        await anyio.to_thread.run_sync(script.entered.wait)
        await anyio.to_thread.run_sync(served.stop)
    assert recorder.ended == (RunState.FAILED, "every agent failed")
    assert all("lost the server" in reason for reason in recorder.reasons.values())


async def test_a_run_without_a_server_says_so(run, recorder, tmp_path, quick):
    def connect(name):
        return socket_session(
            tmp_path / "none.sock", "token", patience=replace(quick, reconnect_s=0.1)
        )

    with pytest.raises(ServerUnreachable):
        await orchestrate(replace(run, connect=connect), handle_signals=False)
    assert recorder.ended[0] is RunState.FAILED


async def test_a_recorder_that_cannot_keep_anything_ends_the_run_with_its_own_error(run, recorder):
    class Full(type(recorder)):
        async def agent_state(self, agent, state, *, reason):
            raise BoardError("the disk is full.")

    with pytest.raises(BoardError, match="the disk is full"):
        await orchestrate(replace(run, recorder=Full()), handle_signals=False)
