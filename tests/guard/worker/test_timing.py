"""What a session of timing makes of its measurements; blocks and runners are stand-ins here.

Their real twins need an idle host; `tests/guard/test_references.py` has them.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kernelarc.guard import problems, promotion
from kernelarc.guard.errors import ToolchainMissing
from kernelarc.guard.roofline import Floor
from kernelarc.guard.schema import (
    BenchmarkOutcome,
    EvaluationStatus,
    Isolation,
    reference_solution,
    solution_from_source,
    solution_id,
)
from kernelarc.guard.worker import timing
from kernelarc.guard.worker.arms import LeaderFailed, Turn, Unmeasurable
from kernelarc.guard.worker.contention import MAX_SHARE
from kernelarc.guard.worker.interrupts import TotalTimeout
from kernelarc.guard.worker.process import CandidateFailed
from kernelarc.guard.worker.reference import InvalidReference

pytestmark = pytest.mark.torch

PROBLEM = problems.get("rmsnorm")
CANDIDATE = solution_from_source(PROBLEM, "void run() { /* candidate */ }", "cpp")
LEADER = solution_from_source(PROBLEM, "void run() { /* leader */ }", "cpp")
FLOOR = Floor(floor_us=3.0, bound="memory", bytes=1000, flops=10)
FASTER, SLOWER = 0.8, 1.25


class Blocks:
    """Says of each series of blocks what a test wants it to; remembers who met whom."""

    def __init__(self, ratios, *, share=(), gap_us=0.0, latency_us=20.0, fails=None):
        self.ratios = ratios
        self.shares = list(share)
        self.gap_us = gap_us
        self.latency_us = latency_us
        self.fails = fails or {}
        self.series = []
        self.closed = 0

    def __call__(self, workshop, problem, progress):
        self.progress = progress
        return self

    def plan(self, leader, records):
        if "plan" in self.fails:
            raise self.fails["plan"]
        for record in records:
            record.sets = 4
        return records

    def run(self, pairing, count, *, stop_margin=None):
        self.series.append((pairing, count, stop_margin))
        if pairing.phase in self.fails:
            raise self.fails[pairing.phase]
        ratio = self.ratios[pairing.phase]
        values = ratio if isinstance(ratio, list) else [ratio] * count
        for value in values:
            pairing.ratios.append(value)
            for record in pairing.records:
                record.ratios.append(value)
                latency = self.latency_us * value
                record.candidate.append(Turn(latency, latency - self.gap_us, self.gap_us))
                record.leader.append(Turn(self.latency_us, self.latency_us, 0.0))

    def watch_contention(self):
        pass

    def contention(self):
        return self.shares.pop(0) if self.shares else 0.0

    def close(self):
        self.closed += 1

    def phases(self):
        return [pairing.phase for pairing, _, _ in self.series]


class Workshop:
    """Turns solutions into what can be told apart; ``broken`` is one that does not compile."""

    timeouts = SimpleNamespace(total_s=300.0)

    def __init__(self, broken=None):
        self.broken = broken

    def prepare(self, problem, solution):
        if solution is self.broken:
            raise CandidateFailed(EvaluationStatus.COMPILE_ERROR, "it does not compile")
        return SimpleNamespace(id=solution_id(solution), solution=solution)


@pytest.fixture
def session(monkeypatch):
    """``session(blocks)``: the result of timing with these blocks, and the context it had."""
    monkeypatch.setattr(timing.host, "compiler", lambda: "/usr/bin/g++")

    def judged(blocks, *, solution=CANDIDATE, leader=None, broken=None, noise=None):
        monkeypatch.setattr(timing, "BlockRunner", blocks)
        context = timing.TimingContext(
            workshop=Workshop(broken),
            peaks=SimpleNamespace(floor=lambda problem, workload: FLOOR),
            noise=noise or timing.NoiseFloors(),
            device="cpu",
            isolation=Isolation(level="none", walls=[]),
            environment_key="key",
            progress=lambda phase, done, total: None,
        )
        result = timing.benchmark(context, PROBLEM, solution, leader)
        assert blocks.closed == 1
        return result

    return judged


def blocks(screening=FASTER, noise=1.0, timed=FASTER, reference=0.5, **more):
    ratios = {
        "screening": screening,
        "measuring noise": noise,
        "timing": timed,
        "against the reference": reference,
    }
    return Blocks(ratios, **more)


def test_a_gain_over_the_reference_is_promoted_and_measured(session):
    made = blocks()
    result = session(made)
    assert result.outcome is BenchmarkOutcome.PROMOTED
    assert result.status is EvaluationStatus.PASSED
    assert made.phases() == ["screening", "measuring noise", "timing"]
    assert [count for _, count, _ in made.series] == [
        promotion.SCREEN_BLOCKS,
        promotion.NOISE_BLOCKS,
        promotion.BLOCKS,
    ]
    assert result.speedup.median == pytest.approx(1 / FASTER)
    assert result.speedup_over_reference == result.speedup
    assert result.noise_floor == pytest.approx(0.0)
    assert result.margin == promotion.MINIMUM_MARGIN
    assert result.misses == 0
    assert result.block_ratios == [FASTER] * promotion.BLOCKS
    ranked = PROBLEM.ranked("cpu")
    assert set(result.performance) == {w.uuid for w in ranked}
    measured = result.performance[ranked[0].uuid]
    assert (measured.latency_us, measured.leader_latency_us) == (16.0, 20.0)
    assert measured.reference_latency_us == 20.0
    assert (measured.floor_us, measured.bound) == (3.0, "memory")
    assert measured.calls == 4 * promotion.BLOCKS


def test_a_leader_that_is_not_the_reference_is_beaten_and_then_the_reference_met(session):
    made = blocks()
    result = session(made, leader=LEADER)
    assert result.outcome is BenchmarkOutcome.PROMOTED
    assert result.leader_id == solution_id(LEADER)
    assert result.speedup.median == pytest.approx(1 / FASTER)
    assert result.speedup_over_reference.median == pytest.approx(2.0)
    met = {pairing.phase: pairing for pairing, _, _ in made.series}
    last = met["against the reference"]
    assert last.leader.solution == reference_solution(PROBLEM)
    assert last.candidate.solution is CANDIDATE
    # What is copied for it is the harness's work for the reference alone.
    assert last.conventions == {"A": False, "B": True}
    assert met["timing"].conventions == {"A": True, "B": True}
    assert met["measuring noise"].conventions == {"A": True, "B": True}
    assert met["measuring noise"].candidate is met["measuring noise"].leader


def test_against_the_reference_noise_is_measured_as_it_is_called(session):
    made = blocks()
    session(made)
    met = {pairing.phase: pairing for pairing, _, _ in made.series}
    assert met["measuring noise"].conventions == {"A": False, "B": False}
    assert met["timing"].conventions == {"A": False, "B": True}


def test_the_noise_floor_is_measured_once_and_sets_the_margin(session):
    floors = timing.NoiseFloors()
    noisy = [1.04] * promotion.NOISE_BLOCKS
    first, second = blocks(noise=noisy), blocks()
    assert session(first, noise=floors).noise_floor == pytest.approx(0.04)
    result = session(second, noise=floors)
    assert result.noise_floor == pytest.approx(0.04)
    assert second.phases() == ["screening", "timing"]
    assert second.series[-1][2] == pytest.approx(0.04)


def test_an_old_noise_floor_is_not_used(monkeypatch):
    floors = timing.NoiseFloors()
    assert floors.get("digest", "leader") is None
    now = iter([100.0, 100.0 + timing.NOISE_LIFETIME_S - 1, 100.0 + timing.NOISE_LIFETIME_S])
    monkeypatch.setattr(timing, "monotonic", lambda: next(now))
    floors.put("digest", "leader", 0.03)
    assert floors.get("digest", "leader") == 0.03
    assert floors.get("digest", "leader") is None


@pytest.mark.parametrize(
    ("ratio", "outcome"), [(SLOWER, BenchmarkOutcome.BACKUP), (1.0, BenchmarkOutcome.TIE)]
)
def test_without_a_gain_in_screening_nothing_more_is_measured(session, ratio, outcome):
    made = blocks(screening=ratio)
    result = session(made)
    assert result.outcome is outcome
    assert made.phases() == ["screening"]
    assert result.block_ratios == [ratio] * promotion.SCREEN_BLOCKS
    assert result.speedup_over_reference is None


def test_a_gain_that_does_not_last_is_a_tie(session):
    result = session(blocks(timed=[0.9, 1.0, 1.0, 1.0]))
    assert result.outcome is BenchmarkOutcome.TIE
    assert result.misses == 3
    assert result.speedup_over_reference is None


@pytest.mark.parametrize(
    ("shares", "phases"),
    [
        ([0.5], ["screening"]),
        ([0.0, 0.0, 0.5], ["screening", "measuring noise"]),
        ([0.0, 0.0, 0.0, 0.5], ["screening", "measuring noise", "timing"]),
    ],
)
def test_a_host_that_is_shared_decides_nothing(session, shares, phases):
    made = blocks(share=shares)
    result = session(made)
    assert result.outcome is BenchmarkOutcome.INCONCLUSIVE
    assert "used 50% of its processors" in result.reason
    assert made.phases() == phases
    assert result.speedup is None
    assert result.performance == {}


def test_a_noise_floor_of_a_shared_host_is_not_remembered(session):
    floors = timing.NoiseFloors()
    session(blocks(share=[0.0, MAX_SHARE + 0.01, 0.5]), noise=floors)
    assert floors.known == {}
    session(blocks(share=[0.0, MAX_SHARE, 0.0]), noise=floors)
    assert list(floors.known) == [(PROBLEM.digest, solution_id(reference_solution(PROBLEM)))]


def test_a_clock_that_disagrees_is_rejected(session):
    result = session(blocks(gap_us=50.0, latency_us=60.0))
    assert result.outcome is BenchmarkOutcome.REJECTED
    assert result.status is EvaluationStatus.TIMING_MISMATCH
    assert "claims -2.0 us a call, the judge's clock says 48.0 us" in result.reason
    assert result.speedup is None


def test_a_gap_within_the_slack_is_nobodys_lie(session):
    slack_us = timing.MISMATCH_SHARE * 16.0 + timing.MISMATCH_SLACK_US / 4
    assert session(blocks(gap_us=slack_us)).outcome is BenchmarkOutcome.PROMOTED
    assert session(blocks(gap_us=slack_us + 0.1)).status is EvaluationStatus.TIMING_MISMATCH


def test_a_time_below_physics_is_rejected(session):
    result = session(blocks(latency_us=1.0))
    assert result.status is EvaluationStatus.BELOW_ROOFLINE
    assert "0.80 us a call is below what this device can do" in result.reason
    assert "takes 3.00 us at best" in result.reason


def failing(phase, error):
    return blocks(fails={phase: error})


@pytest.mark.parametrize(
    ("made", "outcome", "status", "said"),
    [
        (
            failing("screening", CandidateFailed(EvaluationStatus.CRASH, "it crashed")),
            BenchmarkOutcome.REJECTED,
            EvaluationStatus.CRASH,
            "it crashed",
        ),
        (
            failing("timing", InvalidReference("it contradicts itself")),
            BenchmarkOutcome.REJECTED,
            EvaluationStatus.INVALID_REFERENCE,
            "it contradicts itself",
        ),
        (
            failing("timing", TotalTimeout()),
            BenchmarkOutcome.REJECTED,
            EvaluationStatus.TIMEOUT,
            "timing took longer than 300 s in all.",
        ),
        (
            failing("timing", Unmeasurable()),
            BenchmarkOutcome.INCONCLUSIVE,
            EvaluationStatus.PASSED,
            "no longer than calls without any work",
        ),
        (
            failing("plan", LeaderFailed("it hangs")),
            BenchmarkOutcome.INCONCLUSIVE,
            EvaluationStatus.PASSED,
            "the leader itself failed in this session (it hangs)",
        ),
        (
            failing("measuring noise", CandidateFailed(EvaluationStatus.CRASH, "it crashed")),
            BenchmarkOutcome.INCONCLUSIVE,
            EvaluationStatus.PASSED,
            "the leader itself failed in this session (it crashed)",
        ),
    ],
)
def test_every_failure_is_a_result(session, made, outcome, status, said):
    result = session(made)
    assert (result.outcome, result.status) == (outcome, status)
    assert said in result.reason


def test_who_does_not_compile_is_to_blame(session):
    result = session(blocks(), broken=CANDIDATE)
    assert result.outcome is BenchmarkOutcome.REJECTED
    assert result.status is EvaluationStatus.COMPILE_ERROR
    result = session(blocks(), leader=LEADER, broken=LEADER)
    assert result.outcome is BenchmarkOutcome.INCONCLUSIVE
    assert "it does not compile" in result.reason


def test_what_is_interpreted_is_never_timed(session):
    made = blocks()
    triton = solution_from_source(PROBLEM, "def run(x, weight, eps, y): ...", "triton")
    result = session(made, solution=triton)
    assert result.outcome is BenchmarkOutcome.INCONCLUSIVE
    assert "triton is verified on the CPU device but never timed" in result.reason
    assert made.series == []


def test_without_a_compiler_nothing_is_timed(session, monkeypatch):
    monkeypatch.setattr(timing.host, "compiler", lambda: None)
    with pytest.raises(ToolchainMissing, match=r"g\+\+ is not installed"):
        session(blocks())
