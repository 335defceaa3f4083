"""Turns and blocks with stand-ins for runners: what is subtracted, whose failure is whose, when
all runners are replaced.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import ClassVar

import pytest

from kernelarc.guard import problems
from kernelarc.guard.roofline import Floor
from kernelarc.guard.schema import (
    Correctness,
    EvaluationStatus,
    reference_solution,
    solution_from_source,
)
from kernelarc.guard.worker import arms, blocks
from kernelarc.guard.worker.arms import Arm, Arms, LeaderFailed, NullCosts, Turn, Unmeasurable
from kernelarc.guard.worker.blocks import BlockRunner, Pairing, WorkloadRecord
from kernelarc.guard.worker.candidate import Candidate
from kernelarc.guard.worker.process import CandidateFailed
from kernelarc.guard.worker.trial import BatchResult

pytestmark = pytest.mark.torch

PROBLEM = problems.get("rmsnorm")
WORKLOAD = min(PROBLEM.ranked("cpu"), key=PROBLEM.moved_bytes)
FLOOR = Floor(floor_us=1.0, bound="memory", bytes=1, flops=1)
LEADER = Candidate(reference_solution(PROBLEM), {"language": "pytorch"})
CANDIDATE = Candidate(solution_from_source(PROBLEM, "void run();", "cpp"), {"language": "cpp"})
CRASH = CandidateFailed(EvaluationStatus.CRASH, "it crashed")


def batch_result(judge_ns, runner_ns):
    return BatchResult(judge_ns, runner_ns, [], Correctness())


class FakeArm:
    """An arm whose batches take what its class says, by the language of its solution."""

    times: ClassVar = {}
    fails: ClassVar = {}
    made: ClassVar = []

    def __init__(self, workshop, problem, candidate, generator, *, verify=True):
        self.language = candidate.spec["language"]
        self.passing = candidate.spec.get("destination_passing")
        self.verify = verify
        self.warmed = []
        self.batches = 0
        self.closed = 0
        self._fail("start")
        self.made.append(self)

    def _fail(self, when):
        if (self.language, when) in self.fails:
            raise self.fails[self.language, when]

    def warm_up(self, workload, fresh):
        self._fail("warm_up")
        if workload.uuid not in self.warmed:
            assert fresh()
            self.warmed.append(workload.uuid)

    def run(self, workload, batch):
        assert workload.uuid in self.warmed
        self._fail("run")
        self.batches += 1
        return batch_result(*self.times[self.language, self.passing])

    def close(self):
        self.closed += 1
        return 0.5


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.setattr(arms, "Arm", FakeArm)
    monkeypatch.setattr(blocks, "Arm", FakeArm)
    monkeypatch.setattr(FakeArm, "made", [])
    monkeypatch.setattr(FakeArm, "fails", {})
    times = {
        ("pytorch", None): (50_000, 44_000),
        ("cpp", None): (30_000, 24_000),
        ("null", True): (5_000, 1_000),
        ("null", False): (9_000, 5_000),
    }
    monkeypatch.setattr(FakeArm, "times", times)
    return FakeArm


def started(conventions):
    costs = {passing: NullCosts(passing) for passing in (True, False)}
    return Arms(
        None,
        PROBLEM,
        None,
        leader=LEADER,
        candidate=CANDIDATE,
        costs=costs,
        conventions=conventions,
    )


def ready(conventions, calls=2):
    made = started(conventions)
    made.warm_up(WORKLOAD, lambda: ["stimulus"] * calls)
    made.measure_null(WORKLOAD, ["stimulus"] * calls)
    return made


def test_a_turn_is_the_judges_time_less_what_the_handover_costs(fake):
    turn = ready({"A": True, "B": True}).turn("B", WORKLOAD, ["stimulus"] * 2)
    assert turn == Turn(net_us=13.0, runner_us=12.0, gap_us=1.0)


def test_a_reference_that_returns_is_not_charged_for_the_copy(fake):
    made = ready({"A": False, "B": True})
    assert made.turn("A", WORKLOAD, ["stimulus"]).net_us == 50.0 - 9.0
    assert made.turn("B", WORKLOAD, ["stimulus"]).net_us == 30.0 - 4.0


def test_only_conventions_in_use_have_a_null_candidate_and_nobody_verifies_it(fake):
    started({"A": True, "B": True})
    nulls = [arm for arm in fake.made if arm.language == "null"]
    assert [arm.passing for arm in nulls] == [True]
    assert not any(arm.verify for arm in nulls)
    assert all(arm.verify for arm in fake.made if arm not in nulls)


def test_more_null_batches_are_made_at_first(fake):
    made = ready({"A": True, "B": True})
    null = next(arm for arm in fake.made if arm.language == "null")
    assert null.batches == arms.FIRST_NULL_BATCHES
    made.measure_null(WORKLOAD, ["stimulus"])
    assert null.batches == arms.FIRST_NULL_BATCHES + arms.NULL_BATCHES


def test_a_disturbed_null_batch_does_not_count():
    costs = NullCosts(destination_passing=True)
    costs.samples[WORKLOAD.uuid] = [batch_result(ns, 1_000) for ns in (4_000, 5_000, 900_000)]
    assert costs.handover_ns(WORKLOAD) == costs.cost_ns(WORKLOAD) == 4_000


def test_a_turn_no_longer_than_nothing_measures_nothing(fake):
    fake.times["cpp", None] = (4_000, 100)
    made = ready({"A": True, "B": True})
    with pytest.raises(Unmeasurable):
        made.turn("B", WORKLOAD, ["stimulus"])


@pytest.mark.parametrize("when", ["start", "warm_up", "run"])
@pytest.mark.parametrize(
    ("language", "error"), [("cpp", CandidateFailed), ("pytorch", LeaderFailed)]
)
def test_a_failure_is_that_of_its_arm(fake, when, language, error):
    fake.fails[language, when] = CRASH

    def session():
        made = ready({"A": True, "B": True})
        for name in "AB":
            made.turn(name, WORKLOAD, ["stimulus"])

    with pytest.raises(error, match="it crashed"):
        session()


def test_what_was_started_is_ended_when_the_other_does_not_start(fake):
    fake.fails["null", "start"] = CRASH
    with pytest.raises(CandidateFailed):
        started({"A": True, "B": True})
    assert [arm.closed for arm in fake.made] == [1, 1]


def test_all_runners_are_ended_once(fake):
    made = started({"A": False, "B": True})
    assert made.close() == 4 * 0.5
    assert made.close() == 0
    assert [arm.closed for arm in fake.made] == [1] * 4


def test_an_arm_binds_a_workload_once_and_verifies_its_first_batch(monkeypatch):
    class Trial:
        made: ClassVar = []

        def __init__(self, *arguments, **named):
            self.named = named
            self.batches = []
            self.made.append(self)

        def run(self, batch, *, verify):
            self.batches.append((batch, verify))
            return "result"

    bound = []
    workshop = SimpleNamespace(
        start=lambda candidate: SimpleNamespace(close=lambda: 1.5),
        bind=lambda *arguments: bound.append(arguments),
        timeouts=SimpleNamespace(call_s=10.0),
    )
    monkeypatch.setattr(arms, "Trial", Trial)
    arm = Arm(workshop, PROBLEM, CANDIDATE, None)
    for _ in range(2):
        arm.warm_up(WORKLOAD, lambda: ["first"] * 3)
    assert arm.run(WORKLOAD, ["second"] * 3) == "result"
    assert [(slot, calls) for slot, _, _, _, calls in bound] == [(WORKLOAD.uuid, 3)]
    (trial,) = Trial.made
    assert trial.batches == [(["first"] * 3, True), (["second"] * 3, True)]
    assert trial.named["calls"] == 3
    assert trial.named["call_timeout_s"] == 10.0
    assert arm.close() == 1.5


@pytest.fixture
def runner(fake):
    interrupts = SimpleNamespace(check=lambda: None)
    seen = []
    made = BlockRunner(
        SimpleNamespace(interrupts=interrupts), PROBLEM, lambda *step: seen.append(step)
    )
    made.seen = seen
    yield made
    made.close()


def pairing(conventions=None):
    records = [WorkloadRecord(WORKLOAD, FLOOR)]
    return Pairing("timing", LEADER, CANDIDATE, conventions or {"A": True, "B": True}, records)


def test_a_block_is_the_ratio_of_candidate_and_leader(fake, runner):
    met = pairing()
    runner.run(met, 2)
    wanted = (30 - 4) / (50 - 4)
    assert met.ratios == [pytest.approx(wanted)] * 2
    (record,) = met.records
    assert record.ratios == [pytest.approx(wanted)] * 2
    assert len(record.candidate) == len(record.leader) == 2 * 2 * blocks.QUADS_PER_BLOCK
    assert runner.seen == [("timing", 0, 2), ("timing", 1, 2)]


def test_one_block_cannot_be_worth_more_than_a_factor_of_four(fake, runner):
    fake.times["cpp", None] = (4_000 + 46_000 * 100, 1_000)
    met = pairing()
    runner.run(met, 1)
    assert met.ratios == [pytest.approx(4)]
    assert met.records[0].ratios == [pytest.approx(100)]


def test_runners_are_replaced_every_few_blocks_and_none_is_left(fake, runner):
    runner.run(pairing(), blocks.RESTART_EVERY + 1)
    assert len(fake.made) == 2 * 3
    assert [arm.closed for arm in fake.made] == [1] * 6


def test_too_many_misses_end_a_series(fake, runner):
    fake.times["cpp", None] = fake.times["pytorch", None]
    met = pairing()
    runner.run(met, 22, stop_margin=0.005)
    assert len(met.ratios) == 3
    assert all(arm.closed == 1 for arm in fake.made)


def test_others_use_of_the_processors_is_what_the_runners_did_not_use(fake, runner, monkeypatch):
    watched = []

    class Contention:
        def __init__(self, processors):
            self.added = []
            watched.append(self)

        def add(self, cpu_s):
            self.added.append(cpu_s)

        def share(self):
            return 0.25

    monkeypatch.setattr(blocks, "Contention", Contention)
    runner.watch_contention()
    runner.run(pairing(), 1)
    assert watched[0].added == [3 * 0.5]
    assert runner.contention() == 0.25


@pytest.mark.parametrize(
    ("runner_ns", "judge_ns", "calls"),
    [
        (100_000, 150_000, 3),
        (1, 1_000_000, blocks.MAX_SETS),
        (10**9, 10**9, 1),
        # A leader that claims more than the judge saw does not get fewer calls for it.
        (10**9, 100_000, 3),
    ],
)
def test_the_number_of_calls_is_fixed_by_the_leader(fake, runner, runner_ns, judge_ns, calls):
    fake.times["pytorch", None] = (judge_ns, runner_ns)
    (record,) = runner.plan(LEADER, [WorkloadRecord(WORKLOAD, FLOOR)])
    assert record.sets == calls
    assert fake.made[0].closed == 1


def test_a_leader_that_cannot_be_planned_with_has_failed(fake, runner):
    fake.fails["pytorch", "run"] = CRASH
    with pytest.raises(LeaderFailed, match="it crashed"):
        runner.plan(LEADER, [WorkloadRecord(WORKLOAD, FLOOR)])
    assert fake.made[0].closed == 1


def test_other_families_of_inputs_are_timed_now_and_then(fake, runner, monkeypatch):
    drawn = []
    real = blocks.draw

    def draw(problem, workload, *, family, seed):
        drawn.append((family, seed))
        return real(problem, workload, family=family, seed=seed)

    monkeypatch.setattr(blocks, "draw", draw)
    monkeypatch.setattr(blocks.secrets, "randbelow", lambda n: len(drawn) % n)
    runner.run(pairing(), 1)
    families = [family for family, _ in drawn]
    assert math.ceil(len(families) / 2) < families.count("normal") < len(families)
    assert len({seed for _, seed in drawn}) == len(drawn)
