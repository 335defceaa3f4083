import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelarc.clients.answers import (
    current_leader,
    near_roofline,
    promoted_leader,
    submitted,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
keys = st.sampled_from(
    ["verdict", "speedup_over_reference", "timings", "guidance", "leader", "near_roofline"]
)


@given(st.dictionaries(keys, json_values))
def test_no_answer_however_odd_is_an_error(answer):
    promoted_leader({**answer, "verdict": "PROMOTED"})
    current_leader(answer)
    near_roofline(answer)
    submitted(json.dumps(answer))


def test_a_share_of_the_roofline_needs_every_workload():
    timings = [{"roofline_fraction": 0.5}, {"latency_us": 3}]
    leader = promoted_leader({"verdict": "PROMOTED", "solution_id": "s", "timings": timings})
    assert leader.roofline is None
    assert leader.speedup is None


def test_only_a_promotion_makes_a_leader():
    assert promoted_leader({"verdict": "TIE", "solution_id": "s"}) is None


@pytest.mark.parametrize("whole", [False, True])
def test_solutions_are_read_from_both_shapes_of_a_history_once_each(whole):
    attempts = [{"solution_id": "s1"}, {"solution_id": "s2"}, {"solution_id": "s1"}, {"note": "x"}]
    history = {"attempts": attempts, "more": 1} if whole else attempts
    assert submitted(json.dumps(history)) == {"s1", "s2"}


def test_a_history_that_cannot_be_read_lists_nothing():
    assert submitted("not JSON") == set()
