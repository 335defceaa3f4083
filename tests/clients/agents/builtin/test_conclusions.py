import json
from dataclasses import replace

import pytest

from kernelarc.clients.agents.builtin import conclusions
from kernelarc.clients.agents.builtin.kernels import KERNELS
from kernelarc.clients.agents.builtin.search import Proposal, Tried
from kernelarc.clients.agents.builtin.space import read_tail, tail
from kernelarc.guard.schema import EvaluationStatus

SPACE = KERNELS["rmsnorm"].space
PLAIN = SPACE.complete({})
THREADED = SPACE.complete({"threads": "all"})
MEASURED = {
    "verdict": "PROMOTED",
    "solution_id": "5f",
    "evidence": "b_7",
    "speedup": {"median": 1.5, "low": 1.4, "high": 1.6, "coverage": 0.98},
    "compared_with": "1d",
    "margin": 0.02,
    "timings": [{"latency_us": 50.0}, {"latency_us": 200.0}],
}


def test_the_latency_is_the_geometric_mean_over_the_workloads():
    assert conclusions.latency_us(MEASURED) == pytest.approx(100.0)


@pytest.mark.parametrize("timings", [None, [], [{"latency_us": 5.0}, {}], [{"latency_us": 0.0}]])
def test_what_was_not_measured_everywhere_has_no_latency(timings):
    assert conclusions.latency_us({"timings": timings}) is None


def refinement(speedup=1.2, leader="1d", solution_id="4e"):
    """Of a parent that was timed at 180 us, so much faster than ``leader``."""
    parent = Tried(
        "parallelism", PLAIN, EvaluationStatus.PASSED, solution_id, 180.0, speedup, leader
    )
    return Proposal("parallelism", THREADED, "step", "refines threads.", parent)


def test_a_promotion_is_a_success_with_numbers_evidence_and_parameters():
    insight = conclusions.timed(refinement(), MEASURED)
    assert insight.kind == "success"
    assert insight.evidence == ("b_7", "5f")
    assert "100 us, 1.5x as fast as the leader" in insight.text
    assert (
        "Against the same leader, threads one -> all changed the speed-up from 1.2x to 1.5x: "
        "threads trades cores" in insight.text
    )
    assert read_tail(insight.text, SPACE) == THREADED


def test_while_nobody_leads_the_speedup_is_over_the_reference():
    first = MEASURED | {"compared_with": "reference"}
    assert "1.5x as fast as the reference" in conclusions.timed(refinement(), first).text


def test_a_refinement_of_the_leader_itself_is_compared_with_it():
    insight = conclusions.timed(refinement(1.1, "0a", solution_id="1d"), MEASURED)
    assert "changed the speed-up from 1x to 1.5x" in insight.text


@pytest.mark.parametrize("parent", [{"leader": "2c"}, {"speedup": None}, {"leader": ""}])
def test_sessions_against_different_leaders_are_not_compared(parent):
    text = conclusions.timed(refinement(**parent), MEASURED).text
    assert "->" not in text
    assert "180" not in text


@pytest.mark.parametrize("old", [1.48, 1.52])
def test_a_difference_within_the_margin_is_no_change(old):
    text = conclusions.timed(refinement(old), MEASURED).text
    assert "threads one -> all made no measurable change." in text
    assert "from" not in text


def test_a_backup_is_posted_as_a_failure():
    proposal = Proposal("parallelism", THREADED, "seed", "a starting point.")
    assert conclusions.timed(proposal, MEASURED | {"verdict": "BACKUP"}).kind == "failure"


def test_a_wrong_candidate_is_posted_with_the_guards_reason():
    verdict = {
        "verdict": "INCORRECT_NUMERICAL",
        "solution_id": "5f",
        "evidence": "v_3",
        "message": "12 of 96 elements of y differ. More text that is not needed.",
    }
    insight = conclusions.rejected(Proposal("vectorise", PLAIN, "seed", ""), verdict)
    assert insight.kind == "failure"
    assert "INCORRECT_NUMERICAL" in insight.text
    assert "12 of 96 elements of y differ" in insight.text
    assert "not needed" not in insight.text
    assert insight.evidence == ("v_3", "5f")


def test_every_parameter_has_a_sentence_on_what_it_trades():
    names = {p.name for kernel in KERNELS.values() for p in kernel.space.parameters}
    assert names <= set(conclusions.LEVERS)


def test_own_attempts_are_read_from_their_notes_and_foreign_ones_left_out():
    record = {
        "strategy": "parallelism",
        "note": f"refines threads. {tail(THREADED)}",
        "status": "PASSED",
        "solution_id": "5f",
        "latency_us": 12.5,
        "speedup": 1.25,
        "compared_with": "1d",
    }
    noise = record | {"outcome": "INCONCLUSIVE"}
    foreign = record | {"note": "hand-written"}
    pending = {k: v for k, v in record.items() if k != "status"}
    text = json.dumps({"attempts": [record, foreign, pending, noise]})
    expected = Tried("parallelism", THREADED, EvaluationStatus.PASSED, "5f", 12.5, 1.25, "1d")
    undecided = replace(expected, latency_us=None, speedup=None)
    assert conclusions.own_attempts(text, SPACE) == [expected, undecided]


def test_only_verified_successes_of_others_on_this_problem_are_hints():
    post = {
        "kind": "success",
        "verified": True,
        "agent": "rival",
        "strategy": "parallelism",
        "untrusted_text": f"Twice as fast. {tail(THREADED)}",
    }
    board = {
        "insights": [
            post,
            post | {"verified": False},
            post | {"kind": "failure"},
            post | {"agent": "me"},
            post | {"problem": "softmax"},
            post | {"untrusted_text": "[params: threads=all; rm=1]"},
            post | {"untrusted_text": "[params: threads=9]"},
        ]
    }
    found = conclusions.hints(board, SPACE, "me")
    assert [(hint.agent, hint.point) for hint in found] == [("rival", THREADED)]
