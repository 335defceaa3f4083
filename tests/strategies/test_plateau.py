"""The plateau rule: who has to change the approach, as a pure function of the history."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelarc.guard.errors import PivotRequired
from kernelarc.guard.schema.status import BenchmarkOutcome
from kernelarc.strategies.plateau import (
    Attempt,
    PlateauPolicy,
    PlateauState,
    admit,
    assess,
    diversity,
    nearest,
)
from kernelarc.strategies.similarity import Fingerprint, fingerprint

PROMOTED, BACKUP, TIE = BenchmarkOutcome.PROMOTED, BenchmarkOutcome.BACKUP, BenchmarkOutcome.TIE
APPLICABLE = ("blocking", "fusing", "threads", "unrolling")
PATIENT = PlateauPolicy(agent_patience=10**6, problem_patience=10**6)


def program(number: int) -> Fingerprint:
    """Programs of different numbers have nothing in common."""
    return Fingerprint(number, frozenset(range(number * 100, number * 100 + 8)), frozenset())


def tuned(number: int, variant: int) -> Fingerprint:
    """Another constant in the same program."""
    return replace(program(number), exact=10**9 + number * 1000 + variant)


class History:
    """Builds attempts in order; every program is new unless one is given."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []

    def add(
        self,
        strategy: str,
        *,
        agent: str = "ada",
        code: Fingerprint | None = None,
        passed: bool = True,
        outcome: BenchmarkOutcome | None = BACKUP,
        roofline: float | None = None,
    ) -> History:
        number = len(self.attempts) + 1
        self.attempts.append(
            Attempt(
                agent=agent,
                strategy=strategy,
                solution_id=f"s{number}",
                fingerprint=code or program(number),
                passed=passed,
                outcome=outcome if passed else None,
                roofline_fraction=roofline,
                sequence=number,
            )
        )
        return self

    def assess(self, agent: str = "ada", **policy: float) -> PlateauState:
        return assess(
            self.attempts, agent=agent, applicable=APPLICABLE, policy=PlateauPolicy(**policy)
        )

    def admit(self, strategy: str | None, code: Fingerprint, agent: str = "ada", **policy: float):
        admit(
            self.attempts,
            agent=agent,
            strategy=strategy,
            fingerprint=code,
            applicable=APPLICABLE,
            policy=PlateauPolicy(**policy),
        )


def stuck(strategy: str = "fusing", attempts: int = 6) -> History:
    history = History()
    for _ in range(attempts):
        history.add(strategy)
    return history


def test_an_empty_history_is_no_plateau():
    state = History().assess()
    assert state.scope == "none"
    assert not state.must_pivot
    assert not state.exhausted
    assert state.untried == APPLICABLE
    assert state.tried == ()


def test_patience_runs_out_with_the_sixth_verified_attempt():
    assert stuck(attempts=5).assess().scope == "none"
    state = stuck(attempts=6).assess()
    assert (state.scope, state.must_pivot) == ("agent", True)
    assert state.untried == ("blocking", "threads", "unrolling")
    assert "6 verified attempts" in state.reason


def test_failed_attempts_cost_no_patience():
    history = History().add("fusing")
    for _ in range(20):
        history.add("fusing", passed=False)
    assert history.assess().scope == "none"


def test_a_promotion_starts_the_count_anew():
    history = stuck(attempts=5).add("fusing", outcome=PROMOTED)
    for _ in range(5):
        history.add("fusing")
    assert history.assess().scope == "none"
    assert history.add("fusing").assess().scope == "agent"


def test_a_pivot_starts_the_count_anew_and_counts_itself():
    history = stuck().add("blocking")
    for _ in range(4):
        history.add("blocking")
    assert history.assess().scope == "none"
    assert history.add("blocking").assess().scope == "agent"


def test_a_new_label_on_old_code_is_no_pivot():
    history = stuck().add("blocking", code=tuned(3, 1))
    assert history.assess().must_pivot


def test_a_label_that_is_no_applicable_strategy_is_no_pivot():
    assert stuck().add("my-own-idea").assess().must_pivot


def test_going_back_to_a_tried_strategy_is_no_pivot():
    history = stuck(attempts=1).add("blocking")
    for _ in range(5):
        history.add("fusing")
    assert history.assess().must_pivot


def test_three_near_duplicates_in_a_row_are_a_plateau():
    history = History().add("fusing")
    history.add("fusing", code=tuned(1, 1)).add("fusing", code=tuned(1, 2))
    assert history.assess().scope == "none"
    state = history.add("fusing", code=tuned(1, 3)).assess()
    assert (state.scope, state.must_pivot) == ("agent", True)
    assert "near-duplicates" in state.reason


def test_the_same_code_in_another_layout_counts_even_when_it_fails():
    history = History().add("fusing", passed=False)
    for _ in range(3):
        history.add("fusing", code=program(1), passed=False)
    assert history.assess().scope == "agent"


def test_new_code_ends_a_streak():
    history = History().add("fusing")
    for code in (tuned(1, 1), tuned(1, 2), program(50), tuned(1, 3)):
        history.add("fusing", code=code)
    assert history.assess().scope == "none"


def test_a_near_duplicate_that_is_promoted_is_progress():
    history = History().add("fusing")
    for variant in range(2):
        history.add("fusing", code=tuned(1, variant))
    history.add("fusing", code=tuned(1, 2), outcome=PROMOTED)
    assert history.assess().scope == "none"


def test_attempts_of_others_do_not_put_an_agent_on_a_plateau():
    history = stuck().add("fusing", agent="bob")
    assert history.assess("bob").scope == "none"
    assert history.assess("ada").scope == "agent"


def test_a_promotion_of_another_agent_does_not_clear_the_agent_rule():
    assert stuck().add("blocking", agent="bob", outcome=PROMOTED).assess().scope == "agent"


def test_the_team_runs_out_of_patience_together():
    history = History()
    for i in range(6):
        history.add("fusing", agent=f"agent-{i % 3}")
    for agent in ("agent-0", "newcomer"):
        state = history.assess(agent, problem_patience=6)
        assert (state.scope, state.must_pivot) == ("problem", True)
    assert history.assess("agent-0", problem_patience=7).scope == "none"


def test_one_pivot_frees_an_agent_from_the_problem_rule():
    history = History()
    for i in range(6):
        history.add("fusing", agent=f"agent-{i % 3}")
    history.add("blocking", agent="agent-0").add("blocking", agent="agent-0")
    state = history.assess("agent-0", problem_patience=6)
    assert (state.scope, state.must_pivot) == ("problem", False)
    assert history.assess("agent-1", problem_patience=6).must_pivot


def test_a_pivot_with_the_attempt_at_which_patience_ran_out_frees_too():
    history = History()
    for i in range(5):
        history.add("fusing", agent=f"agent-{i % 3}")
    history.add("blocking", agent="agent-0")
    state = history.assess("agent-0", problem_patience=6)
    assert (state.scope, state.must_pivot) == ("problem", False)


def test_a_promotion_of_anyone_clears_the_problem_rule():
    history = History()
    for i in range(6):
        history.add("fusing", agent=f"agent-{i % 3}")
    history.add("blocking", agent="agent-2", outcome=PROMOTED)
    assert history.assess("agent-0", problem_patience=6).scope == "none"


def test_strategies_that_nobody_tried_come_first():
    history = stuck().add("blocking", agent="bob").add("threads", agent="bob")
    assert history.assess().options == ("unrolling", "blocking", "threads")


def test_near_the_roofline_it_says_stop_and_demands_nothing():
    history = stuck().add("blocking", agent="bob", outcome=PROMOTED, roofline=0.96)
    state = history.assess()
    assert state.near_roofline
    assert not state.must_pivot
    assert "Stop" in state.reason
    history.admit("fusing", program(1))


@pytest.mark.parametrize("outcome", [BenchmarkOutcome.INCONCLUSIVE, BenchmarkOutcome.REJECTED])
def test_a_measurement_that_does_not_stand_proves_no_roofline(outcome):
    assert not stuck().add("blocking", outcome=outcome, roofline=1.2).assess().near_roofline


def test_the_record_of_each_strategy_has_its_best_outcome():
    history = History().add("fusing", outcome=BACKUP).add("threads", outcome=None)
    history.add("fusing", outcome=TIE).add("fusing", outcome=BenchmarkOutcome.REJECTED)
    fusing, threads = history.assess().tried
    assert (fusing.strategy, fusing.attempts, fusing.promotions, fusing.best) == (
        "fusing",
        3,
        0,
        TIE,
    )
    assert (threads.attempts, threads.best) == (1, None)


def test_without_a_plateau_an_identical_resubmission_is_admitted():
    stuck(attempts=5).admit("fusing", program(1))


@pytest.mark.parametrize(
    ("strategy", "why"),
    [
        ("fusing", "You have tried 'fusing' already"),
        (None, "You named no strategy"),
        ("my-own-idea", "'my-own-idea' is no strategy for this problem"),
    ],
)
def test_at_a_plateau_only_options_are_admitted(strategy, why):
    with pytest.raises(PivotRequired, match=why) as refusal:
        stuck().admit(strategy, program(99))
    assert refusal.value.options == ["blocking", "threads", "unrolling"]
    assert "unrolling" in str(refusal.value)


def test_at_a_plateau_a_near_duplicate_is_refused_and_named():
    with pytest.raises(PivotRequired, match=r"100% similar to solution s4, which ada tried"):
        stuck().admit("blocking", tuned(4, 1))


def test_at_a_plateau_the_code_of_another_agent_is_no_new_approach():
    history = stuck().add("blocking", agent="bob", code=program(70))
    with pytest.raises(PivotRequired, match="bob"):
        history.admit("blocking", program(70))


def exhausted(attempts: int = 6) -> History:
    history = History()
    for strategy in ("blocking", "fusing", "threads"):
        history.add(strategy)
    for _ in range(attempts):
        history.add("unrolling")
    return history


def test_when_all_is_tried_another_strategy_with_new_code_is_a_way_on():
    history = exhausted()
    state = history.assess()
    assert state.exhausted
    assert state.must_pivot
    assert state.options == ("blocking", "fusing", "threads")
    history.admit("threads", program(99))
    assert not history.add("threads").assess().must_pivot


def test_when_all_is_tried_the_current_strategy_is_no_way_on():
    with pytest.raises(PivotRequired, match="what you are doing already"):
        exhausted().admit("unrolling", program(99))


def test_with_a_single_strategy_new_code_is_a_way_on():
    history = History().add("only")
    for variant in range(3):
        history.add("only", code=tuned(1, variant))
    state = assess(history.attempts, agent="ada", applicable=["only"])
    assert state.must_pivot
    assert state.options == ("only",)
    admit(
        history.attempts,
        agent="ada",
        strategy="only",
        fingerprint=program(99),
        applicable=["only"],
    )
    history.add("only", code=program(99))
    for variant in range(2):
        history.add("only", code=tuned(99, variant))
    assert not assess(history.attempts, agent="ada", applicable=["only"]).must_pivot


def test_with_a_single_strategy_new_code_starts_patience_anew():
    history = History()
    for _ in range(7):
        history.add("only")
    assert assess(history.attempts, agent="ada", applicable=["only"]).scope == "none"


def test_without_applicable_strategies_nothing_can_be_demanded():
    state = assess(stuck().attempts, agent="ada", applicable=[])
    assert state.scope == "agent"
    assert not state.must_pivot
    assert not state.exhausted


def test_the_nearest_attempt_is_the_most_similar_and_latest():
    history = stuck(attempts=3).add("fusing", code=tuned(2, 1), outcome=TIE)
    near = nearest(history.attempts, tuned(2, 7))
    assert near is not None
    assert (near.solution_id, near.similarity, near.outcome) == ("s4", 1.0, TIE)
    assert nearest([], program(1)) is None


def test_diversity_counts_programs_strategies_and_their_likeness():
    history = History().add("fusing").add("fusing").add("threads", code=program(1))
    result = diversity(history.attempts)
    assert (result.attempts, result.distinct) == (3, 2)
    assert result.strategies == ("fusing", "threads")
    assert result.mean_similarity == 0
    assert diversity(history.attempts[:1]).mean_similarity is None


def test_the_rule_works_on_fingerprints_of_real_sources():
    source = "void run(const float* x, float* y, long n) {{ for (long i = 0; i < n; i += {}) y[i] = x[i] * x[i] + {}f; }}"  # noqa: E501
    history = History()
    for step in (1, 2, 4, 8):
        history.add("fusing", code=fingerprint({"main.cpp": source.format(step, step / 2)}))
    assert history.assess().scope == "agent"


@pytest.mark.parametrize(
    ("field", "value"),
    [("agent_patience", 0), ("duplicate_streak", 0), ("roofline_stop", 1.5)],
)
def test_a_policy_that_cannot_work_is_refused(field, value):
    with pytest.raises(ValueError, match=field):
        PlateauPolicy(**{field: value})


AGENTS = ("ada", "bob", "eve")
policies = st.builds(
    PlateauPolicy,
    agent_patience=st.integers(1, 6),
    problem_patience=st.integers(1, 12),
    duplicate_streak=st.integers(1, 4),
)


@st.composite
def histories(draw, max_size: int = 16) -> list[Attempt]:
    history = History()
    for _ in range(draw(st.integers(0, max_size))):
        number, variant = draw(st.integers(1, 12)), draw(st.integers(0, 2))
        history.add(
            draw(st.sampled_from((*APPLICABLE, "my-own-idea"))),
            agent=draw(st.sampled_from(AGENTS)),
            code=tuned(number, variant) if variant else program(number),
            passed=draw(st.booleans()),
            outcome=draw(st.sampled_from((None, *BenchmarkOutcome))),
            roofline=draw(st.sampled_from((None, 0.2, 0.8))),
        )
    return history.attempts


applicables = st.lists(st.sampled_from(APPLICABLE), min_size=1, unique=True)


@given(histories(), applicables, policies, st.randoms())
def test_the_order_of_the_arguments_is_irrelevant(attempts, applicable, policy, random):
    shuffled = attempts.copy()
    random.shuffle(shuffled)
    assert assess(shuffled, agent="ada", applicable=applicable, policy=policy) == assess(
        attempts, agent="ada", applicable=applicable, policy=policy
    )


@given(histories(), applicables, policies)
def test_a_promotion_clears_every_plateau(attempts, applicable, policy):
    end = len(attempts) + 1
    won = Attempt("ada", applicable[0], "won", program(99), True, PROMOTED, None, end)
    state = assess([*attempts, won], agent="ada", applicable=applicable, policy=policy)
    assert state.scope == "none"
    assert not state.must_pivot


@given(histories(), policies, st.permutations(AGENTS[1:]), st.data())
def test_what_others_do_and_when_is_irrelevant_to_the_agent_rule(attempts, policy, names, data):
    policy = replace(policy, problem_patience=10**6)
    own = [attempt for attempt in attempts if attempt.agent == "ada"]
    others = [attempt for attempt in attempts if attempt.agent != "ada"]
    order = data.draw(st.permutations([attempt.sequence for attempt in others]))
    renamed = dict(zip(AGENTS[1:], names, strict=True))
    moved = [
        replace(attempt, sequence=sequence, agent=renamed[attempt.agent])
        for attempt, sequence in zip(others, order, strict=True)
    ]
    before = assess(attempts, agent="ada", applicable=APPLICABLE, policy=policy)
    assert assess([*own, *moved], agent="ada", applicable=APPLICABLE, policy=policy) == before
    alone = assess(own, agent="ada", applicable=APPLICABLE, policy=policy)
    assert (alone.scope, alone.must_pivot) == (before.scope, before.must_pivot)


@given(histories(), applicables, policies, st.integers(0, 4))
def test_more_patience_never_makes_a_plateau(attempts, applicable, policy, more):
    before = assess(attempts, agent="ada", applicable=applicable, policy=policy)
    patient = replace(
        policy,
        agent_patience=policy.agent_patience + more,
        duplicate_streak=policy.duplicate_streak + more,
    )
    after = assess(attempts, agent="ada", applicable=applicable, policy=patient)
    assert before.must_pivot or not after.must_pivot
    patient = replace(patient, problem_patience=policy.problem_patience + more)
    after = assess(attempts, agent="ada", applicable=applicable, policy=patient)
    assert before.scope != "none" or after.scope == "none"


@given(histories(), applicables, policies)
def test_new_code_is_admitted_under_every_option_and_answers_the_demand(
    attempts, applicable, policy
):
    state = assess(attempts, agent="ada", applicable=applicable, policy=policy)
    assert state.options
    assert set(state.options) <= set(applicable)
    for option in state.options:
        admit(
            attempts,
            agent="ada",
            strategy=option,
            fingerprint=program(99),
            applicable=applicable,
            policy=policy,
        )
        pivot = Attempt("ada", option, "pivot", program(99), False, None, None, len(attempts) + 1)
        after = assess([*attempts, pivot], agent="ada", applicable=applicable, policy=policy)
        assert not (state.must_pivot and after.must_pivot)


@given(histories(), applicables, policies, st.sampled_from(APPLICABLE), st.integers(1, 12))
def test_admit_refuses_exactly_what_ignores_a_demanded_pivot(
    attempts, applicable, policy, strategy, number
):
    state = assess(attempts, agent="ada", applicable=applicable, policy=policy)
    near = nearest(attempts, program(number))
    duplicate = near is not None and near.similarity >= policy.duplicate_similarity
    refused = state.must_pivot and (strategy not in state.options or duplicate)
    with pytest.raises(PivotRequired) if refused else nullcontext():
        admit(
            attempts,
            agent="ada",
            strategy=strategy,
            fingerprint=program(number),
            applicable=applicable,
            policy=policy,
        )


@given(histories())
def test_without_near_duplicates_and_with_patience_there_is_no_plateau(attempts):
    fresh = [replace(attempt, fingerprint=program(i)) for i, attempt in enumerate(attempts)]
    assert assess(fresh, agent="ada", applicable=APPLICABLE, policy=PATIENT).scope == "none"


@given(histories(), applicables, policies)
def test_tried_and_untried_split_the_applicable_strategies(attempts, applicable, policy):
    state = assess(attempts, agent="ada", applicable=applicable, policy=policy)
    tried = {record.strategy for record in state.tried}
    assert tried.isdisjoint(state.untried)
    assert set(applicable) <= tried | set(state.untried)
    assert state.exhausted == (not state.untried)
    own = [attempt for attempt in attempts if attempt.agent == "ada"]
    assert sum(record.attempts for record in state.tried) == len(own)


def test_inconclusive_timings_use_up_no_patience():
    def history(outcome):
        return [
            Attempt(
                agent="a",
                strategy="vectorise",
                solution_id=f"s{i}",
                fingerprint=fingerprint(
                    {"main.cpp": f"int f{i}() {{ return {i} * {i}; }}" * (i + 1)}
                ),
                passed=True,
                outcome=outcome,
                roofline_fraction=None,
                sequence=i,
            )
            for i in range(6)
        ]

    policy = PlateauPolicy(duplicate_streak=100)
    options = {"agent": "a", "applicable": ["vectorise", "fuse-passes"], "policy": policy}
    assert assess(history(BenchmarkOutcome.BACKUP), **options).must_pivot
    assert not assess(history(BenchmarkOutcome.INCONCLUSIVE), **options).must_pivot
