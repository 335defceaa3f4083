import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelarc.clients.agents.base import Assignment
from kernelarc.clients.agents.builtin.kernels import KERNELS
from kernelarc.clients.agents.builtin.search import Hint, Tried, propose
from kernelarc.clients.agents.builtin.space import Angle, Parameter, Space, describe, structure
from kernelarc.guard.schema import EvaluationStatus

PASSED = EvaluationStatus.PASSED
SMALL = Space(
    (
        Parameter("kernel", ("loops", "packed")),
        Parameter("unroll", (1, 2, 4, 8), {"kernel": ("packed",)}),
        Parameter("threads", ("one", "all")),
    ),
    {
        "packing": Angle({"kernel": ("packed",)}, ({"kernel": "packed"},)),
        "parallelism": Angle({"threads": ("all",)}, ({"threads": "all"},)),
    },
)


def assignment(strategy="packing", seed=0):
    return Assignment(problem="gemm", strategy=strategy, seed=seed, agent="me")


def tried(proposal, latency_us=100.0, status=PASSED):
    return Tried(proposal.strategy, proposal.point, status, "s", latency_us)


def walk(space, task, steps, judge, options=()):
    """Lets the search run against a guard that is a function of the point."""
    history = []
    for _ in range(steps):
        proposal = propose(space, history, task, options=options)
        if proposal is None:
            break
        history.append(tried(proposal, *judge(proposal.point)))
    return history


@st.composite
def searches(draw):
    space = KERNELS[draw(st.sampled_from(sorted(KERNELS)))].space
    strategy = draw(st.sampled_from(sorted(space.angles)))
    statuses = draw(
        st.lists(st.sampled_from([PASSED, EvaluationStatus.TIMEOUT, None]), max_size=12)
    )
    return space, assignment(strategy, draw(st.integers(0, 5))), statuses


@given(searches())
@settings(max_examples=30, deadline=None)
def test_proposals_are_repeatable_new_and_inside_their_strategy(drawn):
    space, task, statuses = drawn
    history = []
    for number, status in enumerate(statuses):
        proposal = propose(space, history, task)
        assert proposal == propose(space, list(history), task)
        assert space.fits(proposal.strategy, proposal.point)
        assert describe(proposal.point) not in {describe(a.point) for a in history}
        history.append(tried(proposal, 100.0 + number, status))


@given(searches(), st.data())
@settings(max_examples=20, deadline=None)
def test_a_demanded_pivot_goes_to_an_option_and_to_new_code(drawn, data):
    space, task, statuses = drawn
    history = walk(space, task, len(statuses), lambda _point: (1.0, PASSED))
    options = data.draw(st.lists(st.sampled_from(sorted(space.angles)), min_size=1, unique=True))
    proposal = propose(space, history, task, options=options)
    assert proposal is None or proposal.strategy in options
    untried = [
        seed
        for option in options
        for seed in space.seeds(option)
        if structure(seed) not in {structure(a.point) for a in history}
    ]
    if untried:
        assert structure(proposal.point) not in {structure(a.point) for a in history}


def test_the_assigned_strategy_begins_with_its_seed():
    first = propose(SMALL, [], assignment("parallelism"))
    assert (first.strategy, first.origin) == ("parallelism", "seed")
    assert first.point == {"kernel": "loops", "unroll": 1, "threads": "all"}


def test_an_unknown_assigned_strategy_is_replaced_by_a_known_one():
    assert propose(SMALL, [], assignment("tensor-cores")).strategy in SMALL.angles


def test_the_search_finds_the_best_point_of_a_convex_problem():
    def latency(point):
        return 100.0 - 10 * SMALL.parameters[1].values.index(point["unroll"]) - 30 * (
            point["threads"] == "all"
        ), PASSED

    history = walk(SMALL, assignment(), 8, latency)
    best = min(history, key=lambda a: a.latency_us)
    assert best.point == {"kernel": "packed", "unroll": 8, "threads": "all"}


def test_every_point_in_reach_is_tried_once_and_then_the_search_ends():
    history = walk(SMALL, assignment(), 1000, lambda _point: (1.0, PASSED))
    seen = [describe(a.point) for a in history]
    assert len(seen) == len(set(seen)) < 1000
    assert {a.strategy for a in history} == set(SMALL.angles)
    assert propose(SMALL, history, assignment()) is None


def test_a_refinement_names_its_parent():
    history = walk(SMALL, assignment(), 1, lambda _point: (50.0, PASSED))
    step = propose(SMALL, history, assignment())
    assert step.origin == "step"
    assert step.parent == history[0]


def test_the_fastest_correct_point_is_refined_first():
    slow = Tried("packing", SMALL.complete({"kernel": "packed"}), PASSED, "slow", 90.0)
    fast_point = SMALL.complete({"kernel": "packed", "unroll": 8})
    fast = Tried("packing", fast_point, PASSED, "fast", 10.0)
    assert propose(SMALL, [slow, fast], assignment()).parent == fast


def timed(unroll, latency_us, speedup, leader):
    point = SMALL.complete({"kernel": "packed", "unroll": unroll})
    return Tried("packing", point, PASSED, f"s{unroll}", latency_us, speedup, leader)


def test_side_by_side_measurements_outrank_latencies_of_different_sessions():
    slow_machine = timed(8, 130.0, 1.4, "lead")
    quiet_machine = timed(1, 100.0, 1.1, "lead")
    assert propose(SMALL, [quiet_machine, slow_machine], assignment()).parent == slow_machine


def test_a_leader_of_ones_own_links_the_sessions_before_and_after_it():
    first = timed(1, 100.0, 1.5, "reference")
    second = timed(8, 140.0, 1.2, "s1")  # 1.8 times the reference
    third = timed(4, 90.0, 1.6, "reference")
    assert propose(SMALL, [first, second, third], assignment()).parent == second


def test_chains_without_a_common_leader_are_compared_by_latency():
    first = timed(1, 100.0, 3.0, "reference")
    second = timed(8, 50.0, 1.01, "lead")
    assert propose(SMALL, [first, second], assignment()).parent == second


def test_a_verified_success_of_another_agent_is_taken_into_the_own_strategy():
    seed = walk(SMALL, assignment(), 1, lambda _point: (50.0, PASSED))
    hint = Hint("rival", "parallelism", SMALL.complete({"threads": "all"}))
    proposal = propose(SMALL, seed, assignment(), [hint])
    assert proposal.origin == "hint"
    assert "rival" in proposal.reason
    assert proposal.point == {"kernel": "packed", "unroll": 1, "threads": "all"}


def test_refusals_rotate_through_the_options():
    history = []
    for _ in range(2):
        proposal = propose(SMALL, history, assignment(), options=["packing", "parallelism"])
        history.append(tried(proposal, None, None))
    assert {a.strategy for a in history} == {"packing", "parallelism"}


def test_agents_with_different_seeds_take_different_ways():
    space = KERNELS["gemm"].space
    ways = {
        tuple(
            describe(a.point)
            for a in walk(
                space, assignment("cache-blocking", seed), 6, lambda _point: (1.0, PASSED)
            )
        )
        for seed in range(4)
    }
    assert len(ways) > 1


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_a_resumed_search_goes_on_where_it_was(name):
    space = KERNELS[name].space
    task = assignment(next(iter(space.angles)))
    whole = walk(space, task, 6, lambda _point: (1.0, PASSED))
    assert propose(space, whole[:3], task).point == whole[3].point
