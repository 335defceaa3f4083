"""``kernelarc board`` and ``kernelarc leader``."""

import pytest

from kernelarc.memory.rows import InsightKind


@pytest.fixture
def posted(archive):
    agent = archive.runs.ensure_agent("local").id
    for strategy, text in (("vectorise", "wide loads help"), ("unspecified", "tiles do not")):
        archive.board.post(
            "rmsnorm", InsightKind.HYPOTHESIS, strategy, text, agent=agent, device_name="x"
        )


def test_a_board_without_insights_says_so(call):
    assert call("board", "rmsnorm").out == "no insights yet.\n"
    assert call("board", "rmsnorm", "--json").document == []


@pytest.mark.usefixtures("posted")
def test_the_board_is_read_and_searched(call):
    def texts(*words):
        return {i["text"] for i in call("board", "rmsnorm", "--json", *words).document}

    assert texts() == {"wide loads help", "tiles do not"}
    assert texts("--query", "wide") == {"wide loads help"}
    assert texts("--strategy", "vectorise") == {"wide loads help"}
    assert texts("--strategy", "unspecified") == {"tiles do not"}
    assert texts("--verified") == set()
    assert len(texts("--limit", "1")) == 1
    assert "wide loads help" in call("board", "rmsnorm").out


@pytest.mark.usefixtures("posted")
@pytest.mark.parametrize("query", ['"', "a AND (", "*", "NEAR(", "text:x", "-", ""])
def test_any_query_is_words_and_no_syntax(call, query):
    answer = call("board", "rmsnorm", f"--query={query}", "--json")
    assert answer.code == 0
    assert isinstance(answer.document, list)


def test_an_unknown_strategy_is_refused_with_the_known_ones(call):
    answer = call("board", "rmsnorm", "--strategy", "fly")
    assert answer.code == 2
    answer.sentence("'fly'", "vectorise")


@pytest.mark.parametrize("command", ["board", "leader"])
def test_an_unknown_problem_is_refused_with_the_known_ones(call, command):
    assert call(command, "fly").code == 2
    call(command, "fly").sentence("'fly'", "rmsnorm")
    call(command, "fly", "--json").error("'fly'", "rmsnorm")


@pytest.mark.parametrize("command", ["board", "leader", "report", "resume", "run"])
def test_a_file_that_is_no_database_is_refused_and_left_alone(call, no_database, command):
    before = no_database.read_bytes()
    words = [] if command == "report" else ["r_1" if command == "resume" else "rmsnorm"]
    answer = call(command, *words, "--db", no_database)
    assert answer.code == 2
    answer.sentence(str(no_database), "not a database", "--db", "KERNELARC_DB")
    call(command, *words, "--db", no_database, "--json").error(str(no_database))
    assert no_database.read_bytes() == before


@pytest.mark.parametrize("command", ["board", "leader", "report", "resume", "eval"])
def test_a_mistyped_database_is_refused_and_not_created(call, tmp_path, command):
    words = {"board": ["rmsnorm"], "resume": ["r_1"]}.get(command, [])
    if command == "eval":
        source = tmp_path / "kernel.cpp"
        source.write_text("int x;")
        words = ["rmsnorm", source, "--against", "leader"]
    missing = tmp_path / "new" / "typo.db"
    answer = call(command, *words, "--db", missing)
    assert answer.code == 2
    answer.sentence(f"there is no database {missing}", "--db", "KERNELARC_DB", "kernelarc run")
    call(command, *words, "--db", missing, "--json").error(str(missing))
    assert not missing.parent.exists()


def test_a_folder_is_no_database(call, tmp_path):
    answer = call("leader", "--db", tmp_path)
    assert answer.code == 2
    answer.sentence(str(tmp_path), "--db")


def test_without_promotions_the_reference_leads(call, archive):
    assert archive.catalogue.problems()
    assert call("leader", "--json").document == [{"problem": "rmsnorm", "leader": None}]
    assert "(the reference)" in call("leader").out
    wanted = {"problem": "softmax", "leader": None, "history": []}
    assert call("leader", "softmax", "--source", "--history", "--json").document == wanted
    assert "nobody has beaten the reference" in call("leader", "softmax", "--source").out


@pytest.mark.parametrize("option", ["--source", "--history"])
def test_details_need_a_problem(call, option):
    answer = call("leader", option)
    assert answer.code == 2
    answer.sentence(option, "kernelarc leader rmsnorm")
