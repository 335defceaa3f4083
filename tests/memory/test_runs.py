import pytest

from kernelarc.guard.errors import RequestError, UnknownId
from kernelarc.memory import AgentState, RunState


@pytest.fixture
def runs(scene):
    return scene.archive.runs


def test_a_run_keeps_its_specification_and_how_it_ended(runs):
    run = runs.start_run({"agents": 3, "budget": {"attempts": 40}})
    assert (run.state, run.ended_at) == (RunState.RUNNING, None)
    ended = runs.set_run_state(run.id, RunState.FINISHED, reason="attempts are used up")
    assert ended.spec == {"agents": 3, "budget": {"attempts": 40}}
    assert (ended.state, ended.reason) == (RunState.FINISHED, "attempts are used up")
    assert ended.ended_at > ended.started_at
    assert runs.run(run.id) == ended


def test_a_resumed_run_has_not_ended(runs):
    run = runs.start_run({}).id
    runs.set_run_state(run, RunState.INTERRUPTED, reason="ctrl-c")
    assert runs.set_run_state(run, RunState.RUNNING).ended_at is None


def test_runs_are_listed_newest_first(runs):
    made = [runs.start_run({"n": n}).id for n in range(3)]
    assert [run.id for run in runs.runs()] == made[::-1]


def test_unknown_runs_and_agents_are_refused(runs):
    for call in (
        lambda: runs.run("r_9"),
        lambda: runs.set_run_state("r_9", RunState.FAILED),
        lambda: runs.ensure_agent("x", run="r_9"),
        lambda: runs.add_event("x", {}, run="r_9"),
    ):
        with pytest.raises(UnknownId, match="unknown run 'r_9'"):
            call()
    for call in (
        lambda: runs.agent("a_9"),
        lambda: runs.set_agent_state("a_9", AgentState.WORKING),
        lambda: runs.add_event("x", {}, agent="a_9"),
    ):
        with pytest.raises(UnknownId, match="unknown agent 'a_9'"):
            call()


def test_an_agent_is_created_once_in_each_run(runs):
    one, two = (runs.start_run({}).id for _ in range(2))
    agent = runs.ensure_agent("alpha", run=one, kind="llm", strategy="fusion")
    assert runs.ensure_agent("alpha", run=one) == agent
    assert runs.ensure_agent("alpha", run=two).id != agent.id
    assert runs.ensure_agent("alpha").id not in (agent.id, runs.ensure_agent("alpha", run=two).id)
    assert (agent.kind, agent.strategy, agent.state) == ("llm", "fusion", AgentState.READY)
    assert runs.agents(one) == [agent]
    assert [a.name for a in runs.agents(None)] == ["local", "alpha"]


def test_an_agent_is_known_by_its_token_and_only_the_digest_is_stored(scene, runs):
    agent = runs.ensure_agent("alpha", token="correct horse")
    assert runs.agent_by_token("correct horse") == agent
    assert runs.agent_by_token("wrong") is None
    scene.archive.close()
    files = [p for p in scene.path.parent.iterdir() if p.is_file()]
    assert files
    assert all(b"correct horse" not in file.read_bytes() for file in files)


def test_a_new_token_replaces_the_old_one_and_no_token_keeps_it(runs):
    runs.ensure_agent("alpha", token="old")
    runs.ensure_agent("alpha")
    assert runs.agent_by_token("old") is not None
    runs.ensure_agent("alpha", token="new")
    assert runs.agent_by_token("old") is None
    assert runs.agent_by_token("new").name == "alpha"


def test_two_agents_cannot_share_a_token(runs):
    runs.ensure_agent("alpha", token="same")
    with pytest.raises(RequestError, match="another agent has that token"):
        runs.ensure_agent("beta", token="same")
    assert [a.name for a in runs.agents(None)] == ["local", "alpha"]


def test_a_revoked_agent_is_not_found_by_its_token(runs):
    agent = runs.ensure_agent("alpha", token="t")
    runs.set_agent_state(agent.id, AgentState.REVOKED)
    assert runs.agent_by_token("t") is None


def test_an_agents_state_and_strategy_change(runs):
    agent = runs.ensure_agent("alpha", strategy="fusion")
    assert runs.set_agent_state(agent.id, AgentState.WORKING).strategy == "fusion"
    moved = runs.set_agent_state(agent.id, AgentState.WORKING, strategy="tiling")
    assert runs.agent(agent.id) == moved
    assert (moved.strategy, moved.state) == ("tiling", AgentState.WORKING)


def test_events_are_read_in_order_and_from_where_one_stopped(runs):
    run = runs.start_run({}).id
    agent = runs.ensure_agent("alpha", run=run).id
    first = runs.add_event("tokens", {"used": 5}, agent=agent)
    second = runs.add_event("note", {"text": "hm"}, run=run)
    elsewhere = runs.add_event("note", {})
    events = runs.events(run)
    assert [e.id for e in events] == [first, second]
    assert (events[0].run, events[0].agent, events[0].payload) == (run, agent, {"used": 5})
    assert [e.id for e in runs.events(run, after=first)] == [second]
    assert [e.id for e in runs.events(None)][-1] == elsewhere
    assert [e.id for e in runs.events(run, limit=1)] == [first]
