import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from kernelarc.guard.errors import RequestError, UnknownId, UnknownProblem
from kernelarc.guard.schema import BenchmarkOutcome, EvaluationStatus

Outcome = BenchmarkOutcome
DEVICE = "Test CPU"


def test_the_reference_leads_until_the_first_promotion(scene):
    assert scene.archive.leaders.leader("rmsnorm", DEVICE) is None
    assert scene.archive.leaders.history("rmsnorm", DEVICE) == []
    with pytest.raises(UnknownProblem):
        scene.archive.leaders.leader("nope", DEVICE)


def test_a_promotion_is_the_leader_and_names_who_it_replaced(scene):
    first = scene.solution()
    scene.submit(first, strategy="vectorise")
    scene.promoted(first, speedup=2.0)
    second = scene.promoted(speedup=1.5)
    leader = scene.archive.leaders.leader("rmsnorm", DEVICE)
    assert (leader.solution_id, leader.previous_id, leader.speedup) == (second, first, 1.5)
    history = scene.archive.leaders.history("rmsnorm", DEVICE)
    assert [p.solution_id for p in history] == [first, second]
    assert (history[0].strategy, history[0].agent) == ("vectorise", scene.agent)
    assert history[0].previous_id is None
    assert history[0].latency_us == pytest.approx(10.0)


def test_devices_have_leaders_of_their_own(scene):
    scene.promoted()
    assert scene.archive.leaders.leader("rmsnorm", "Another") is None


def test_a_leader_that_moved_meanwhile_is_not_overtaken_unseen(scene):
    old = scene.promoted()
    new = scene.promoted()
    late = scene.solution()
    scene.verify(late)
    finished = scene.benchmark(late, Outcome.PROMOTED, expected=old)
    assert finished.promotion is None
    assert finished.leader_moved
    assert finished.benchmark.result.outcome is Outcome.PROMOTED
    assert scene.archive.leaders.leader("rmsnorm", DEVICE).solution_id == new


def test_a_benchmark_against_a_leader_that_moved_may_be_asked_for_again(scene):
    late = scene.solution()
    scene.promoted()
    scene.verify(late)
    scene.benchmark(late, Outcome.PROMOTED, expected=None)
    assert scene.enqueue(late, "benchmark").created


def test_promote_by_hand_compares_and_sets_once(scene):
    leader = scene.promoted()
    late = scene.solution()
    scene.verify(late)
    benchmark = scene.benchmark(late, Outcome.PROMOTED, expected=None).benchmark.id
    promote = scene.archive.leaders.promote
    assert promote("rmsnorm", DEVICE, late, benchmark, None) is None
    promotion = promote("rmsnorm", DEVICE, late[:8], benchmark, leader)
    assert promotion == scene.archive.leaders.leader("rmsnorm", DEVICE)
    with pytest.raises(RequestError, match="has promoted already"):
        promote("rmsnorm", DEVICE, late, benchmark, late)


def test_promote_by_hand_refuses_a_benchmark_that_says_something_else(scene):
    solution, other = scene.promoted(), scene.solution()
    backup = scene.solution()
    scene.verify(backup)
    kept = scene.benchmark(backup, Outcome.BACKUP).benchmark.id
    promote = scene.archive.leaders.promote
    with pytest.raises(RequestError, match="ended BACKUP"):
        promote("rmsnorm", DEVICE, backup, kept, solution)
    with pytest.raises(RequestError, match="is not of solution"):
        promote("rmsnorm", DEVICE, other, kept, solution)
    with pytest.raises(RequestError, match="is not of solution"):
        promote("rmsnorm", "Another", backup, kept, None)
    with pytest.raises(UnknownId):
        promote("rmsnorm", DEVICE, backup, "b_99", solution)


def test_backups_are_ordered_by_their_gain_over_the_reference_not_over_their_leader(scene):
    early = scene.solution()
    scene.verify(early)
    scene.benchmark(early, Outcome.BACKUP, speedup=0.99)  # 0.99 of the reference
    scene.promoted(speedup=2.0)
    late = scene.solution()
    scene.verify(late)
    scene.benchmark(late, Outcome.BACKUP, speedup=0.8)  # 1.6 of the reference
    backups = scene.archive.leaders.backups("rmsnorm", DEVICE)
    assert [b.solution_id for b in backups] == [late, early]
    assert [b.gain for b in backups] == [pytest.approx(1.6), pytest.approx(0.99)]


def test_backups_hold_old_leaders_and_ties_but_no_rejected_undecided_or_leading_ones(scene):
    old = scene.promoted(speedup=1.2)
    leader = scene.promoted(speedup=1.2)
    kept = {}
    for outcome in (Outcome.TIE, Outcome.REJECTED, Outcome.INCONCLUSIVE):
        kept[outcome] = scene.solution()
        scene.verify(kept[outcome])
        scene.benchmark(kept[outcome], outcome)
    found = {b.solution_id for b in scene.archive.leaders.backups("rmsnorm", DEVICE)}
    assert found == {old, kept[Outcome.TIE]}
    assert leader not in found
    assert len(scene.archive.leaders.backups("rmsnorm", DEVICE, limit=1)) == 1


def test_a_backup_that_is_rejected_later_is_none_any_more(scene):
    solution = scene.solution()
    scene.verify(solution)
    scene.benchmark(solution, Outcome.BACKUP)
    scene.benchmark(solution, Outcome.INCONCLUSIVE)
    assert len(scene.archive.leaders.backups("rmsnorm", DEVICE)) == 1
    scene.benchmark(solution, Outcome.REJECTED)
    assert scene.archive.leaders.backups("rmsnorm", DEVICE) == []


def test_a_benchmarked_solution_whose_verdict_was_overturned_is_no_backup(scene):
    solution = scene.solution()
    scene.verify(solution)
    scene.benchmark(solution, Outcome.BACKUP)
    scene.verify(solution, EvaluationStatus.NONDETERMINISTIC)
    assert scene.archive.leaders.backups("rmsnorm", DEVICE) == []


class PromotionMachine(RuleBasedStateMachine):
    """Model: a list of leaders; every write is checked against it."""

    new_scene = None

    def __init__(self):
        super().__init__()
        self.scene = self.new_scene()
        self.solutions = [self.scene.solution() for _ in range(4)]
        self.verified = set()
        self.leaders = []

    @rule(which=st.integers(0, 3))
    def verify(self, which):
        self.scene.verify(self.solutions[which])
        self.verified.add(self.solutions[which])

    @rule(which=st.integers(0, 3), expected=st.integers(-1, 3))
    def time(self, which, expected):
        solution = self.solutions[which]
        if solution not in self.verified:
            return
        expected = None if expected < 0 else self.solutions[expected]
        leader = self.leaders[-1] if self.leaders else None
        finished = self.scene.benchmark(solution, Outcome.PROMOTED, expected=expected)
        assert (finished.promotion is not None) == (expected == leader)
        assert finished.leader_moved == (expected != leader)
        if finished.promotion:
            assert finished.promotion.previous_id == leader
            self.leaders.append(solution)

    @rule(which=st.integers(0, 3), outcome=st.sampled_from([Outcome.TIE, Outcome.BACKUP]))
    def keep(self, which, outcome):
        self.scene.benchmark(self.solutions[which], outcome)

    @invariant()
    def history_is_the_model(self):
        history = self.scene.archive.leaders.history("rmsnorm", DEVICE)
        assert [p.solution_id for p in history] == self.leaders
        leader = self.scene.archive.leaders.leader("rmsnorm", DEVICE)
        assert (leader and leader.solution_id) == (self.leaders[-1] if self.leaders else None)

    def teardown(self):
        self.scene.close()


@pytest.mark.slow
def test_whatever_happens_every_promotion_replaces_the_one_before(new_scene):
    machine = type("Promotions", (PromotionMachine,), {"new_scene": staticmethod(new_scene)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=8,
            stateful_step_count=15,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
