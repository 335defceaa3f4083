import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelarc.guard.errors import RequestError, UnknownId, UnknownProblem
from kernelarc.guard.schema import BenchmarkOutcome, EvaluationStatus
from kernelarc.memory import InsightKind, JobKind, board_search

Outcome = BenchmarkOutcome
SUCCESS, FAILURE = InsightKind.SUCCESS, InsightKind.FAILURE
QUESTION, HYPOTHESIS = InsightKind.QUESTION, InsightKind.HYPOTHESIS


@pytest.fixture
def board(scene):
    return scene.archive.board


def _texts(page):
    return [insight.text for insight in page.insights]


def _read_all(board, problem="rmsnorm", **filters):
    """Every page, until there is no next one."""
    found, cursor = [], None
    while True:
        page = board.read(problem, cursor=cursor, **filters)
        assert page.insights or cursor is None
        found += page.insights
        cursor = page.next_cursor
        if cursor is None:
            return found


def test_a_post_comes_back_with_its_author_and_place(scene, board):
    posted = scene.post("Use 256-bit loads.", SUCCESS, strategy="vectorise")
    assert posted.created
    insight = posted.insight
    assert (insight.kind, insight.strategy, insight.text) == (
        SUCCESS,
        "vectorise",
        "Use 256-bit loads.",
    )
    assert (insight.agent, insight.agent_name, insight.device_name) == (
        scene.agent,
        "local",
        "Test CPU",
    )
    assert board.insight(insight.id) == insight
    assert board.read("rmsnorm").insights == (insight,)


def test_the_same_conclusion_by_the_same_agent_is_posted_once(scene):
    first = scene.post("Tiles of 64 win.")
    again = scene.post("  tiles of 64\n WIN. ")
    assert not again.created
    assert again.insight == first.insight
    assert scene.post("Tiles of 64 win.", FAILURE).created
    other = scene.archive.runs.ensure_agent("other").id
    assert scene.post("Tiles of 64 win.", agent=other).created
    scene.register("softmax")
    assert scene.post("Tiles of 64 win.", problem="softmax").created


@pytest.mark.parametrize("text", ["", "  \n", "\x00\x07", "x" * 2001])
def test_empty_and_overlong_texts_are_refused(scene, text):
    with pytest.raises(RequestError, match="1 to 2000 are allowed"):
        scene.post(text)


def test_a_strategy_of_65_characters_and_17_pieces_of_evidence_are_refused(scene):
    with pytest.raises(RequestError, match="1 to 64"):
        scene.post("x", strategy="s" * 65)
    solution = scene.solution()
    with pytest.raises(RequestError, match="at most 16"):
        scene.post("x", evidence_ids=[solution] * 17)


def test_control_characters_and_lone_surrogates_are_dropped(scene):
    assert scene.post("a\x00b\x1b[31mc\ud800\nd\te").insight.text == "ab[31mc\nd\te"


def test_a_post_of_2000_characters_outside_the_basic_plane_is_kept(scene, board):
    text = "\U0001f680" * 2000
    assert scene.post(text).insight.text == text


def test_unknown_things_in_a_post_are_refused_and_nothing_is_stored(scene, board):
    with pytest.raises(UnknownProblem):
        scene.post("x", problem="nope")
    for evidence in ("0" * 32, "v_9", "b_9", "j_9", "s_9", "i_1", "", "x_1"):
        with pytest.raises(UnknownId):
            scene.post("x", evidence_ids=[evidence])
    with pytest.raises(UnknownId, match="unknown insight"):
        board.insight("i_1")
    assert board.read("rmsnorm").insights == ()


def test_every_kind_of_id_is_evidence(scene):
    solution = scene.solution()
    submission = scene.submit(solution)
    verdict = scene.verify(solution)
    benchmark = scene.benchmark(solution, Outcome.BACKUP).benchmark
    job = scene.enqueue(solution).job
    waiting = scene.enqueue(scene.solution()).job
    evidence = [benchmark.id, job.id, submission.id, solution[:8], waiting.id]
    insight = scene.post("x", evidence_ids=evidence).insight
    assert insight.evidence == (benchmark.id, verdict.id, solution, waiting.solution_id)


def test_a_success_is_verified_by_a_pass_and_a_failure_by_any_judgement(scene):
    passed, failed, unjudged = scene.solution(), scene.solution(), scene.solution()
    good = scene.verify(passed)
    bad = scene.verify(failed, EvaluationStatus.CRASH)
    expected = {
        (SUCCESS, passed): True,
        (SUCCESS, good.id): True,
        (SUCCESS, failed): False,
        (SUCCESS, bad.id): False,
        (SUCCESS, unjudged): False,
        (FAILURE, passed): True,
        (FAILURE, failed): True,
        (FAILURE, bad.id): True,
        (FAILURE, unjudged): False,
        (HYPOTHESIS, passed): False,
        (QUESTION, passed): False,
    }
    found = {
        (kind, record): scene.post(f"{kind} {record}", kind, evidence_ids=[record]).insight.verified
        for kind, record in expected
    }
    assert found == expected
    assert not scene.post("no evidence", SUCCESS).insight.verified
    assert scene.post("mixed", SUCCESS, evidence_ids=[unjudged, failed, passed]).insight.verified


@pytest.mark.parametrize(
    ("outcome", "verified"),
    [
        (Outcome.PROMOTED, True),
        (Outcome.BACKUP, True),
        (Outcome.TIE, False),
        (Outcome.INCONCLUSIVE, False),
        (Outcome.REJECTED, False),
    ],
)
def test_a_benchmark_verifies_a_success_if_it_kept_the_solution(scene, outcome, verified):
    solution = scene.solution()
    scene.verify(solution)
    benchmark = scene.benchmark(solution, outcome).benchmark.id
    assert scene.post("it", SUCCESS, evidence_ids=[benchmark]).insight.verified is verified
    assert scene.post("it", FAILURE, evidence_ids=[benchmark]).insight.verified


def test_records_that_arrive_later_verify_and_a_rejection_takes_it_back(scene, board):
    solution = scene.solution()
    success = scene.post("fast", SUCCESS, evidence_ids=[solution]).insight
    failure = scene.post("bad", FAILURE, evidence_ids=[solution]).insight
    assert not success.verified

    def verified():
        return board.insight(success.id).verified, board.insight(failure.id).verified

    scene.verify(solution)
    assert verified() == (True, True)
    scene.benchmark(solution, Outcome.REJECTED)
    assert verified() == (False, True)
    scene.benchmark(solution, Outcome.INCONCLUSIVE)
    assert verified() == (False, True)
    scene.benchmark(solution, Outcome.BACKUP)
    assert verified() == (True, True)


def test_evidence_of_another_problem_verifies_nothing(scene):
    scene.register("softmax")
    solution = scene.solution()
    scene.verify(solution)
    posted = scene.post("x", SUCCESS, problem="softmax", evidence_ids=[solution])
    assert not posted.insight.verified
    assert posted.insight.evidence == (solution,)


def test_the_board_shows_verified_first_then_newest_first(scene, board):
    solution = scene.solution()
    scene.verify(solution)
    scene.post("v1", FAILURE, evidence_ids=[solution])
    scene.post("u1")
    scene.post("v2", FAILURE, evidence_ids=[solution])
    scene.post("u2")
    assert _texts(board.read("rmsnorm")) == ["v2", "v1", "u2", "u1"]
    assert _texts(board.read("rmsnorm", verified_only=True)) == ["v2", "v1"]


def test_pages_follow_each_other_without_gap_or_repetition(scene, board):
    solution = scene.solution()
    scene.verify(solution)
    for n in range(11):
        evidence = [solution] if n % 3 == 0 else []
        scene.post(f"word {n}", FAILURE, evidence_ids=evidence)
    whole = board.read("rmsnorm", limit=50)
    assert whole.next_cursor is None
    assert _read_all(board, limit=3) == list(whole.insights)
    searched = board.read("rmsnorm", query="word", limit=50)
    assert searched.next_cursor is None
    assert _read_all(board, query="word", limit=2) == list(searched.insights)
    assert {i.id for i in searched.insights} == {i.id for i in whole.insights}


def test_what_is_posted_while_paging_does_not_shift_the_pages(scene, board):
    for n in range(6):
        scene.post(f"word {n}")
    for filters in ({}, {"query": "word"}):
        whole = board.read("rmsnorm", limit=6, **filters).insights
        first = board.read("rmsnorm", limit=3, **filters)
        scene.post(f"word posted meanwhile {filters}")
        second = board.read("rmsnorm", limit=3, cursor=first.next_cursor, **filters)
        assert first.insights + second.insights == whole


def test_filters_combine(scene, board):
    other = scene.archive.runs.ensure_agent("other").id
    scene.post("one", HYPOTHESIS, strategy="tiling")
    scene.post("two", QUESTION, strategy="tiling", agent=other)
    scene.post("three", QUESTION, strategy="fusion", agent=other)
    assert _texts(board.read("rmsnorm", kinds=[QUESTION])) == ["three", "two"]
    assert _texts(board.read("rmsnorm", strategy="tiling")) == ["two", "one"]
    assert _texts(board.read("rmsnorm", agent=other, strategy="fusion")) == ["three"]
    assert _texts(board.read("rmsnorm", kinds=[QUESTION, HYPOTHESIS], agent=scene.agent)) == ["one"]
    assert _texts(board.read("rmsnorm", query="one OR two", kinds=[QUESTION])) == ["two"]


def test_a_search_stems_words_and_looks_into_text_and_strategy(scene, board):
    scene.post("Unrolling the loops helps", strategy="unrolled")
    scene.post("Tiles", strategy="tiling")
    assert _texts(board.read("rmsnorm", query="loop")) == ["Unrolling the loops helps"]
    assert _texts(board.read("rmsnorm", query="tiled")) == ["Tiles"]
    assert _texts(board.read("rmsnorm", query="num_warps")) == []


def test_a_search_finds_all_words_or_else_any_of_them(scene, board):
    scene.post("alpha beta")
    scene.post("alpha gamma")
    assert _texts(board.read("rmsnorm", query="alpha beta")) == ["alpha beta"]
    assert set(_texts(board.read("rmsnorm", query="beta gamma"))) == {"alpha beta", "alpha gamma"}


def test_a_search_ranks_verified_first_then_by_relevance(scene, board):
    solution = scene.solution()
    scene.verify(solution)
    scene.post("shared memory " + "filler " * 100)
    scene.post("shared memory")
    scene.post("memory memory shared " + "x " * 50, FAILURE, evidence_ids=[solution])
    found = _texts(board.read("rmsnorm", query="shared memory"))
    assert found[0].startswith("memory")
    assert found[1] == "shared memory"


def test_scope_words_in_a_text_or_query_neither_leak_nor_find_anything(scene, board):
    scene.register("softmax")
    scene.post("from softmax p1 p2", problem="softmax")
    scene.post("from rmsnorm")
    assert _texts(board.read("rmsnorm", query="from")) == ["from rmsnorm"]
    assert _texts(board.read("rmsnorm", query="p1")) == []
    assert _texts(board.read("rmsnorm", query='x" OR scope:p2 OR "softmax')) == []


def test_a_blank_query_is_none_and_one_without_words_finds_nothing(scene, board):
    scene.post("x")
    assert _texts(board.read("rmsnorm", query="  ")) == ["x"]
    assert board.read("rmsnorm", query='"*()-^:{}+').insights == ()


HOSTILE = [
    '"',
    '""',
    "'",
    "*",
    "a*",
    "NEAR(a b, 5)",
    "a NEAR b",
    "AND",
    "NOT",
    "a AND",
    "OR OR",
    "(",
    ")",
    "a:b",
    "scope:p1",
    "{text}: a",
    "^a",
    "a + b",
    "-a",
    "a\x00b",
    "\ud800",
    "; DROP TABLE insights; --",
    "x" * 100_000,
    "a " * 50_000,
    "_",
    "\U0001e900",
    "ﷺ",
    "²",
    "%",
]


@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_queries_are_only_words(scene, board, query):
    scene.post("a b harmless")
    board.read("rmsnorm", query=query)
    assert _texts(board.read("rmsnorm", query="harmless")) == ["a b harmless"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text(alphabet=st.characters(), max_size=60))
def test_no_query_is_a_syntax_error(scene, query):
    scene.archive.board.read("rmsnorm", query=query)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text(alphabet="ab \"'*():^-+NEAROTD", max_size=40))
def test_no_query_of_operators_is_a_syntax_error(scene, query):
    scene.archive.board.read("rmsnorm", query=query, related_on="Test CPU")


@pytest.mark.parametrize("cursor", ["", "x", "n-2-5", "n-1-x", "q-all-1", "q-all-1-2", "n-1-5\n"])
def test_a_cursor_of_something_else_is_refused(scene, board, cursor):
    with pytest.raises(RequestError, match="pass next_cursor back"):
        board.read("rmsnorm", cursor=cursor)


def test_a_cursor_of_a_listing_is_refused_by_a_search(scene, board):
    for n in range(3):
        scene.post(f"word {n}")
    cursor = board.read("rmsnorm", limit=1).next_cursor
    with pytest.raises(RequestError, match="pass next_cursor back"):
        board.read("rmsnorm", query="word", cursor=cursor)


@pytest.mark.parametrize("limit", [0, -1, 201])
def test_a_page_of_none_or_too_many_is_refused(board, limit):
    with pytest.raises(RequestError, match="between 1 and 200"):
        board.read("rmsnorm", limit=limit)


def test_related_insights_are_of_the_same_category_and_device_on_other_problems(scene, board):
    scene.register("layernorm", category="normalization")
    scene.register("gemm", category="gemm")
    scene.post("own")
    scene.post("own elsewhere", device_name="Other")
    scene.post("related", problem="layernorm")
    scene.post("wrong device", problem="layernorm", device_name="Other")
    scene.post("wrong category", problem="gemm")
    assert _texts(board.read("rmsnorm")) == ["own elsewhere", "own"]
    related = board.read("rmsnorm", related_on="Test CPU")
    assert _texts(related) == ["related", "own elsewhere", "own"]
    assert [i.problem for i in related.insights][:2] == ["layernorm", "rmsnorm"]
    found = _texts(board.read("rmsnorm", query="own related wrong", related_on="Test CPU"))
    assert set(found) == {"own", "own elsewhere", "related"}
    pages = _read_all(board, related_on="Test CPU", limit=1)
    assert pages == list(related.insights)


def test_a_capped_board_shows_only_the_newest_whatever_is_asked(scene, board):
    solution = scene.solution()
    scene.verify(solution)
    scene.register("layernorm", category="normalization")
    scene.post("old verified", FAILURE, evidence_ids=[solution])
    scene.post("related", problem="layernorm")
    scene.post("new one")
    scene.post("new two", QUESTION)
    assert _texts(board.read("rmsnorm", board_cap=2)) == ["new two", "new one"]
    assert _texts(board.read("rmsnorm", board_cap=3)) == ["old verified", "new two", "new one"]
    assert len(board.read("rmsnorm", board_cap=99).insights) == 3
    assert _texts(board.read("rmsnorm", board_cap=2, query="old verified related")) == []
    assert _texts(board.read("rmsnorm", board_cap=2, kinds=[QUESTION])) == ["new two"]
    capped = board.read("rmsnorm", board_cap=3, related_on="Test CPU")
    assert _texts(capped) == ["new two", "new one", "related"]
    for filters in ({}, {"query": "new"}):
        assert board.read("rmsnorm", board_cap=0, **filters).insights == ()


def test_a_page_is_cut_to_its_characters_but_holds_at_least_one_insight(scene, board):
    for n in range(4):
        scene.post(f"{n}" * 100)
    page = board.read("rmsnorm", max_chars=250)
    assert len(page.insights) == 2
    rest = board.read("rmsnorm", max_chars=10_000, cursor=page.next_cursor)
    assert len(rest.insights) == 2
    assert rest.next_cursor is None
    assert len(board.read("rmsnorm", max_chars=1).insights) == 1
    assert len(_read_all(board, query="1" * 100, max_chars=1)) == 1


def test_relevance_is_weighed_among_the_newest_matches_only(scene, board, monkeypatch):
    monkeypatch.setattr(board_search, "WINDOW", 3)
    scene.post("rare rare rare")
    for n in range(3):
        scene.post(f"rare {n} " + "filler " * 50)
    assert all("filler" in text for text in _texts(board.read("rmsnorm", query="rare")))


def test_a_board_of_another_version_of_the_problem_is_another_board(scene, board):
    scene.post("about the old definition")
    scene.register("rmsnorm", reference="return 3 * x")
    assert board.read("rmsnorm").insights == ()
    assert len(board.read("rmsnorm", related_on="Test CPU").insights) == 1


def test_a_job_is_evidence_for_its_solution_until_it_has_a_result(scene):
    solution = scene.solution()
    job = scene.claimed(solution, JobKind.VERIFY)
    insight = scene.post("x", FAILURE, evidence_ids=[job]).insight
    assert (insight.evidence, insight.verified) == ((solution,), False)
    verdict = scene.verdict_record("rmsnorm", solution)
    stored = scene.archive.results.finish_verify(scene.instance, job, verdict)
    assert scene.archive.board.insight(insight.id).verified
    assert scene.post("y", evidence_ids=[job]).insight.evidence == (stored.id,)
