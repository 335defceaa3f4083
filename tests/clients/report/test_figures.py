import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelarc.clients.report import ProblemFacts, Speedup, WorkloadFacts, figures


@pytest.fixture
def problem(data):
    return data.problems[0]


def test_every_figure_satisfies_plotlys_schema(data, problem):
    for figure in (
        figures.leader_over_attempts(problem),
        figures.leader_over_time(problem, data.run.started, data.run.ended),
        figures.board_timeline(problem.insights, data.run.started),
        figures.rejects(problem),
        figures.outcomes_by_strategy(problem.attempts),
        figures.latencies(problem.workloads),
    ):
        go.Figure(figure)


def test_the_curve_has_each_promotion_with_its_interval(problem):
    steps, *marks = figures.leader_over_attempts(problem)["data"]
    medians = [promotion.over_reference.median for promotion in problem.promotions]
    assert steps["y"] == [1.0, *medians, medians[-1]]
    assert steps["x"] == [0.0, 2, 5, 9, 16, 22, 30]
    assert sorted(y for mark in marks for y in mark["y"]) == sorted(medians)
    for mark in marks:
        for y, above, below in zip(
            mark["y"], mark["error_y"]["array"], mark["error_y"]["arrayminus"], strict=True
        ):
            assert (above, below) == pytest.approx((0.05 * y, 0.06 * y))


def test_a_promotion_that_was_not_measured_against_the_reference_is_not_on_the_curve(problem):
    blind = problem.promotions[0].model_copy(update={"over_reference": None})
    steps, *marks = figures.leader_over_attempts(
        problem.model_copy(update={"promotions": (blind,)})
    )["data"]
    assert steps["y"] == [1.0, 1.0]
    assert marks == []


def test_the_floor_is_drawn_only_when_every_workload_has_one(problem):
    assert "shapes" in figures.leader_over_attempts(problem)["layout"]
    partial = problem.workloads[0].model_copy(update={"floor_us": None})
    unknown = problem.model_copy(update={"workloads": (partial, problem.workloads[1])})
    assert unknown.floor_speedup is None
    assert unknown.roofline_share is None
    assert "shapes" not in figures.leader_over_attempts(unknown)["layout"]


def test_attempts_are_counted_once(problem):
    bars = figures.outcomes_by_strategy(problem.attempts)["data"]
    assert sum(sum(bar["x"]) for bar in bars) == len(problem.attempts)
    assert sum(problem.rejects.values()) == sum(
        sum(bar["x"]) for bar in bars if bar["name"] == "REJECTED"
    )


@given(st.text())
def test_no_label_is_a_tag(text):
    assert not set("<>\n\x1b") & set(figures.label(text))


latency = st.none() | st.floats(1e-2, 1e7)


@given(st.lists(st.builds(WorkloadFacts, label=st.text(), reference_us=latency,
                          leader_us=latency, floor_us=latency), max_size=4))  # fmt: skip
def test_shares_are_means_of_what_was_measured(workloads):
    problem = ProblemFacts(name="p", title="", workloads=tuple(workloads))
    share, floor = problem.roofline_share, problem.floor_speedup
    if share is not None and floor is not None:
        ratios = [w.leader_us / w.reference_us for w in workloads]
        assert min(ratios) * 0.999 <= 1 / (share * floor) <= max(ratios) * 1.001
    figures.latencies(workloads)


@given(st.floats(0.01, 100), st.floats(0.01, 100))
def test_axes_are_logarithmic_only_for_values_far_apart(low, high):
    axis = figures._value_axis([low, high])
    ratio = max(low, high) / min(low, high)
    if ratio > 4:
        assert axis["type"] == "log"
        assert min(axis["tickvals"]) <= min(low, high)
        assert max(axis["tickvals"]) >= max(low, high)
    else:
        assert axis["type"] == "linear"


def test_a_speedup_takes_the_guards_interval_over(data):
    from kernelarc.guard.schema.results import Interval

    interval = Interval(median=2.0, low=1.9, high=2.2, coverage=0.98, blocks=22)
    assert Speedup.of(interval) == Speedup(median=2.0, low=1.9, high=2.2, coverage=0.98)
