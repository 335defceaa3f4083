import pytest

from kernelarc.guard.errors import RequestError, UnknownId, UnknownProblem
from kernelarc.guard.schema import BenchmarkOutcome, Solution, solution_id
from kernelarc.memory import ids
from kernelarc.memory.ids import Prefix


def test_a_registered_problem_is_found_by_name_with_title_and_category(scene):
    scene.register("softmax", category="reduction", title="Row softmax")
    row = scene.archive.catalogue.problem("softmax")
    assert (row.title, row.category) == ("Row softmax", "reduction")
    assert [p.name for p in scene.archive.catalogue.problems()] == ["rmsnorm", "softmax"]


def test_an_unknown_problem_is_refused_with_the_known_names(scene):
    with pytest.raises(UnknownProblem, match="Known problems: rmsnorm"):
        scene.archive.catalogue.problem("nope")


def test_a_changed_definition_starts_without_leader_and_taking_it_back_restores_it(scene):
    leader = scene.promoted()
    first = scene.archive.catalogue.problem("rmsnorm").digest
    scene.register("rmsnorm", reference="return x + 1")
    assert scene.archive.catalogue.problem("rmsnorm").digest != first
    assert scene.archive.leaders.leader("rmsnorm", "Test CPU") is None
    assert scene.archive.results.latest_verdict("rmsnorm", leader) is None
    scene.register("rmsnorm")
    assert scene.archive.leaders.leader("rmsnorm", "Test CPU").solution_id == leader


def test_registering_the_same_version_again_changes_nothing(scene):
    before = scene.archive.catalogue.problem("rmsnorm")
    scene.register("rmsnorm")
    assert scene.archive.catalogue.problem("rmsnorm") == before


def test_a_solution_comes_back_as_it_was_stored(scene):
    identity = scene.solution("void run() { /* ß \U0001f680 */ }")
    solution = scene.archive.catalogue.solution(identity)
    assert isinstance(solution, Solution)
    assert solution_id(solution) == identity
    assert solution.sources[0].content == "void run() { /* ß \U0001f680 */ }"


def test_equal_solutions_and_texts_are_stored_once(scene):
    one = scene.solution("void run() {}")
    assert scene.solution("void run() {}") == one
    row = scene.archive.catalogue.solution_row(one)
    assert (row.language, row.entry_point, list(row.sources)) == (
        "cpp",
        "main.cpp::run",
        ["main.cpp"],
    )
    assert scene.archive.catalogue.source(row.sources["main.cpp"]) == "void run() {}"


def test_a_solution_is_found_by_a_prefix_of_eight_digits_in_either_case(scene):
    identity = scene.solution()
    assert scene.archive.catalogue.resolve_solution(identity[:8].upper()) == identity
    assert scene.archive.catalogue.resolve_solution(f" {identity} ") == identity


@pytest.mark.parametrize(
    "text", ["", "abc", "0" * 7, "g" * 8, "0" * 33, "j_1", "%%%%%%%%", "0" * 8]
)
def test_what_is_no_prefix_of_a_stored_id_is_unknown(scene, text):
    with pytest.raises(UnknownId, match="unknown solution"):
        scene.archive.catalogue.resolve_solution(text)


def test_an_ambiguous_prefix_says_that_more_digits_are_needed(scene):
    template = scene.archive.catalogue.solution_row(scene.solution())
    with scene.archive._store.write() as db:
        for tail in ("a", "b"):
            db.table("solutions").insert(
                {
                    "id": "deadbeef" + tail * 24,
                    "problem": template.problem,
                    "language": "cpp",
                    "entry_point": "main.cpp::run",
                    "document": "{}",
                    "created_at": 0.0,
                }
            )
    with pytest.raises(UnknownId, match="give more digits"):
        scene.archive.catalogue.resolve_solution("deadbeef")
    assert scene.archive.catalogue.resolve_solution("deadbeefb") == "deadbeef" + "b" * 24


def test_an_unknown_source_is_refused(scene):
    with pytest.raises(UnknownId, match="unknown source"):
        scene.archive.catalogue.source("0" * 64)


def test_a_submission_keeps_strategy_parents_note_and_the_agents_run(scene):
    run = scene.archive.runs.start_run({"agents": 1})
    agent = scene.archive.runs.ensure_agent("one", run=run.id, kind="builtin")
    parent, child = scene.solution(), scene.solution()
    made = scene.submit(
        child, agent=agent.id, strategy="fusion", parents=[parent[:10], parent], note="try"
    )
    assert made.parents == (parent,)
    assert (made.run, made.agent, made.strategy, made.note) == (run.id, agent.id, "fusion", "try")
    assert scene.archive.catalogue.submission(made.id) == made


def test_an_unknown_submission_is_refused(scene):
    with pytest.raises(UnknownId, match="unknown submission 's_9'"):
        scene.archive.catalogue.submission("s_9")


def test_parents_keep_their_order(scene):
    parents = [scene.solution() for _ in range(5)]
    assert scene.submit(scene.solution(), parents=parents).parents == tuple(parents)


def test_a_solution_is_one_attempt_of_each_agent_that_hands_it_in(scene):
    solution = scene.solution()
    first = scene.submit(solution, strategy="tiling", note="first")
    assert scene.submit(solution, strategy="fusion", parents=[scene.solution()]) == first
    rival = scene.archive.runs.ensure_agent("rival").id
    assert scene.submit(solution, agent=rival).id != first.id
    assert len(scene.archive.reports.attempts("rmsnorm")) == 2


def test_a_solution_is_a_new_attempt_at_a_changed_problem(scene):
    solution = scene.solution()
    first = scene.submit(solution)
    scene.register("rmsnorm", reference="return x + 1")
    assert scene.submit(solution).id != first.id


def test_a_solution_of_another_problem_cannot_be_submitted(scene):
    scene.register("softmax")
    with pytest.raises(RequestError, match="is for 'rmsnorm', not 'softmax'"):
        scene.submit(scene.solution(), problem="softmax")


def test_too_long_a_note_and_too_many_parents_are_refused(scene):
    solution = scene.solution()
    with pytest.raises(RequestError, match="note has 2001 characters; 0 to 2000"):
        scene.submit(solution, note="x" * 2001)
    with pytest.raises(RequestError, match="17 parents"):
        scene.submit(solution, parents=[solution] * 17)


def test_a_submission_needs_a_strategy_and_loses_control_characters(scene):
    with pytest.raises(RequestError, match="strategy has 0 characters; 1 to 64"):
        scene.submit(scene.solution(), strategy=" \x00")
    assert scene.submit(scene.solution(), note="a\ud800\x1b b").note == "a b"


def test_a_refused_submission_leaves_nothing_behind(scene):
    with pytest.raises(UnknownId):
        scene.submit(scene.solution(), parents=["0" * 32])
    with pytest.raises(UnknownId, match="unknown agent"):
        scene.submit(scene.solution(), agent="a_99")
    assert scene.archive.reports.attempts("rmsnorm") == []
    assert scene.archive.runs.events(None) == []


def test_lineage_follows_parents_to_the_roots_and_survives_cycles(scene):
    root, middle, tip = (scene.solution() for _ in range(3))
    scene.submit(root, parents=[tip])
    scene.submit(middle, parents=[root])
    scene.submit(tip, parents=[middle, root])
    scene.promoted(middle)
    steps = scene.archive.leaders.lineage("rmsnorm", tip)
    assert (steps[0].solution_id, steps[0].depth) == (tip, 0)
    assert {s.solution_id: s.depth for s in steps} == {tip: 0, root: 1, middle: 1}
    by_id = {s.solution_id: s for s in steps}
    assert set(by_id[tip].parents) == {middle, root}
    assert by_id[middle].outcome is BenchmarkOutcome.PROMOTED
    assert by_id[tip].status is None


def test_lineage_of_many_generations_with_two_parents_each_stays_small(scene):
    line = [scene.solution() for _ in range(60)]
    scene.submit(line[0])
    scene.submit(line[1], parents=line[:1])
    for older, old, new in zip(line, line[1:], line[2:], strict=False):
        scene.submit(new, parents=[old, older])
    assert len(scene.archive.leaders.lineage("rmsnorm", line[-1])) == 60


@pytest.mark.parametrize(
    "text", ["", "j", "j_", "_1", "k_1", "j_x", "j_-1", "j_¹", "j_" + "9" * 40]
)
def test_malformed_ids_are_unknown_and_say_what_they_look_like(scene, text):
    with pytest.raises(UnknownId, match="look like j_12"):
        scene.archive.jobs.job(text)


def test_short_ids_and_row_numbers_go_both_ways():
    assert ids.number(Prefix.INSIGHT, ids.short(Prefix.INSIGHT, 12)) == 12
    assert ids.optional_short(Prefix.RUN, None) is None
    assert ids.optional_number(Prefix.RUN, None) is None
