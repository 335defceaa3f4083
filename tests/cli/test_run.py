"""``kernelarc run``, ``resume`` and ``report``."""

import json

import pytest

from kernelarc.clients.run_spec import Budgets, RunSpec, team
from kernelarc.memory.rows import RunState


@pytest.fixture
def a_run(archive):
    """A run that never got anywhere."""
    spec = RunSpec(problems=["rmsnorm"], agents=team(1), budgets=Budgets(attempts=1, minutes=1))
    return archive.runs.start_run(spec.model_dump(mode="json")).id


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fly",), ("'fly'", "rmsnorm")),
        (("rmsnorm", "softmax", "rmsnorm"), ("once", "rmsnorm")),
        (("rmsnorm", "--strategies", "fly"), ("'fly'. Allowed:", "vectorise")),
        (("rmsnorm", "--strategies", "vectorize"), ("Did you mean 'vectorise'?",)),
        (("rms-norm",), ("Did you mean 'rmsnorm'?",)),
        (("rmsnorm", "--strategies", "vectorise,fly"), ("'fly'", "vectorise")),
        (("rmsnorm", "--strategies", ""), ("--strategies is empty", "vectorise")),
        (("rmsnorm", "--strategies", " , "), ("--strategies is empty", "vectorise")),
        (("rmsnorm", "--device", "gpu"), ("'gpu'", "cpu")),
        (("rmsnorm", "--isolation", "most"), ("'most'", "full, reduced, none")),
    ],
)
def test_what_cannot_be_run_is_refused_before_a_run_is_made(call, archive, words, said):
    answer = call("run", *words)
    assert answer.code == 2
    answer.sentence(*said)
    document = call("run", *words, "--json")
    assert document.code == 2
    document.error(*said)
    assert archive.runs.runs() == []


@pytest.mark.parametrize("command", ["resume", "report"])
@pytest.mark.parametrize("run", ["r_9", "9", "x", "", "r_-1", "r_99999999999999999999"])
def test_an_unknown_run_is_refused_with_the_newest_ones(call, a_run, command, run):
    answer = call(command, run)
    assert answer.code == 2
    answer.sentence(repr(run), f"Newest runs: {a_run}.", "`kernelarc run PROBLEM`")
    document = call(command, run, "--json")
    assert document.code == 2
    document.error(repr(run), a_run)


def test_an_unknown_run_in_an_empty_database_says_how_to_start_one(call):
    call("resume", "r_1").sentence("There is no run yet.", "`kernelarc run PROBLEM`")
    call("report").sentence("there is no run yet", "`kernelarc run PROBLEM`")
    assert call("report", "--json").code == 2
    call("report", "--json").error("there is no run yet")


def test_a_resumed_run_keeps_its_state_when_the_level_does_not_exist(call, archive, a_run):
    events = archive.runs.events(a_run)
    answer = call("resume", a_run, "--isolation", "most")
    assert answer.code == 2
    answer.sentence("'most'", "full, reduced, none")
    assert archive.runs.events(a_run) == events


def test_a_finished_run_is_not_resumed_but_shown_at_once(call, archive, a_run, home):
    archive.runs.set_run_state(a_run, RunState.FINISHED, reason="every agent has ended")
    events = archive.runs.events(a_run)
    page = home / "runs" / a_run / "report.html"
    answer = call("resume", a_run)
    assert answer.code == 0
    assert f"run {a_run} has finished: there is nothing to resume." in answer.out
    assert f"run {a_run} finished: every agent has ended" in answer.out
    assert "kernelarc run rmsnorm" in answer.out
    assert str(page) in answer.out
    assert page.exists()
    document = call("resume", a_run, "--json").document
    assert (document["run"], document["state"]) == (a_run, "finished")
    assert document["next"] == "kernelarc run rmsnorm"
    assert archive.runs.events(a_run) == events
    assert archive.runs.run(a_run).state is RunState.FINISHED


def test_the_report_is_one_page_of_the_latest_run(call, a_run, tmp_path):
    page = tmp_path / "new folder" / "page.html"
    answer = call("report", "-o", page, "--json")
    assert answer.code == 0
    assert answer.document["run"] == a_run
    assert answer.document["report"] == str(page)
    assert answer.document["problems"][0]["attempts"] == 0
    assert page.read_text("utf-8").startswith("<!doctype html>")
    text = call("report", a_run, "--output", page)
    assert text.code == 0
    assert str(page) in text.out
    assert [p.name for p in page.parent.iterdir()] == ["page.html"]


@pytest.mark.parametrize("kind", ["folder", "below a file"])
def test_a_page_that_cannot_be_written_is_refused(call, a_run, tmp_path, kind):
    page = tmp_path / "page"
    if kind == "folder":
        page.mkdir()
    else:
        page.write_text("x")
        page = page / "page.html"
    answer = call("report", a_run, "-o", page)
    assert answer.code == 2
    answer.sentence(str(page), "--output")
    call("report", a_run, "-o", page, "--json").error(str(page))
    assert {p.name for p in tmp_path.iterdir()} == {"home", "page"}


@pytest.mark.torch
@pytest.mark.slow
def test_a_run_ends_resumes_and_is_reported(start, home):
    """Six seconds: seldom enough for a promotion; the exit code says whether there was one."""
    words = ("--isolation", "none", "--json")
    first = start("run", "rmsnorm", "--agents", "1", "--attempts", "1", "--minutes", "0.1", *words)
    assert "Traceback" not in first.err
    done = first.document
    assert done["state"] == "finished"
    assert first.code == (0 if done["problems"][0]["promotions"] else 1)
    assert done["report"] == str(home / "runs" / done["run"] / "report.html")
    assert json.loads((home / "runs" / done["run"] / "run.json").read_text())["agents"]
    again = start("resume", done["run"], *words)
    assert "Traceback" not in again.err
    assert again.document["run"] == done["run"]
    assert again.document["state"] == "finished"
    assert again.document["problems"] == done["problems"]
    assert again.code == 0
