import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelarc.clients.assignment import StrategyPool, assign, strategy_pools
from kernelarc.clients.run_spec import AgentSpec, RunSpec, team
from kernelarc.guard.errors import RequestError

names = st.lists(st.sampled_from("abcdefghij"), min_size=1, max_size=6, unique=True)


@st.composite
def runs(draw):
    problems = draw(names)
    spec = RunSpec(problems=problems, agents=team(draw(st.integers(1, 12))))
    return spec, {problem: draw(names) for problem in problems}


def seats_of(spec, applicable):
    return assign(spec, strategy_pools(spec, applicable), applicable)


@given(runs())
def test_every_problem_and_every_agent_is_served(run):
    spec, applicable = run
    seats = seats_of(spec, applicable)
    assert [seat.agent for seat in seats] == spec.agents
    assert all(seat.assignments for seat in seats)
    assert {task.problem for seat in seats for task in seat.assignments} == set(spec.problems)


@given(runs())
def test_strategies_of_a_problem_are_used_evenly(run):
    spec, applicable = run
    tasks = [task for seat in seats_of(spec, applicable) for task in seat.assignments]
    for problem in spec.problems:
        used = [task.strategy for task in tasks if task.problem == problem]
        counts = [used.count(strategy) for strategy in applicable[problem]]
        assert sum(counts) == len(used)
        assert max(counts) - min(counts) <= 1


@given(runs())
def test_the_same_run_is_assigned_in_the_same_way(run):
    spec, applicable = run
    assert seats_of(spec, applicable) == seats_of(spec, applicable)


@given(runs())
def test_agents_on_a_problem_get_different_seeds(run):
    spec, applicable = run
    tasks = [task for seat in seats_of(spec, applicable) for task in seat.assignments]
    assert len({task.seed for task in tasks}) == len(tasks)


def test_automatic_agents_go_where_named_ones_are_not():
    agents = [AgentSpec(name="auto"), AgentSpec(name="named", strategy="a")]
    seats = seats_of(RunSpec(problems=["p"], agents=agents), {"p": ["a", "b"]})
    assert [seat.assignments[0].strategy for seat in seats] == ["b", "a"]
    assert [seat.pinned for seat in seats] == [False, True]


def test_problems_begin_at_different_strategies():
    spec = RunSpec(problems=["p", "q"], agents=team(2))
    seats = seats_of(spec, {"p": ["a", "b"], "q": ["a", "b"]})
    assert [seat.assignments[0].strategy for seat in seats] == ["a", "b"]


@given(names, st.integers(0, 20), st.data())
def test_a_pool_hands_out_each_fresh_strategy_once(strategies, start, data):
    pool = StrategyPool(strategies, start=start)
    claimed = data.draw(st.lists(st.sampled_from(strategies)))
    for strategy in claimed:
        pool.claim(strategy)
    fresh = list(iter(pool.take_fresh, None))
    assert len(fresh) == len(set(fresh))
    assert set(fresh) == set(strategies) - set(claimed)


def test_a_problem_without_strategies_is_refused():
    with pytest.raises(RequestError, match="no strategy applies to 'p'"):
        strategy_pools(RunSpec(problems=["p"], agents=team(1)), {"p": []})
