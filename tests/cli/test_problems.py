"""``kernelarc problems``."""

import json

import pytest

from kernelarc.guard import problems


def test_the_list_names_every_problem(call):
    assert [row["name"] for row in call("problems", "list", "--json").document] == problems.names()
    text = call("problems", "list")
    assert text.code == 0
    assert all(name in text.out for name in problems.names())


def test_a_problem_is_shown_with_its_signatures(call):
    answer = call("problems", "show", "rmsnorm")
    assert answer.code == 0
    assert 'extern "C" void run(' in answer.out
    assert "def run(" in answer.out


def test_a_problem_as_json_has_the_definition_and_no_path_of_the_host(call):
    answer = call("problems", "show", "rmsnorm", "--json")
    assert answer.document["name"] == "rmsnorm"
    assert answer.document["signatures"]["cpp"].count('extern "C" void run(') == 1
    assert "folder" not in answer.document


def test_a_folder_is_a_problem_too(call):
    folder = problems.get("softmax").folder
    assert call("problems", "show", folder, "--json").document["name"] == "softmax"


@pytest.mark.parametrize("command", ["show", "check"])
def test_an_unknown_problem_is_refused_with_the_known_ones(call, command):
    answer = call("problems", command, "fly")
    assert answer.code == 2
    answer.sentence("'fly'", "rmsnorm", "softmax")
    assert call("problems", command, "fly", "--json").code == 2
    call("problems", command, "fly", "--json").error("'fly'", "rmsnorm")


@pytest.mark.parametrize("command", ["show", "check"])
@pytest.mark.parametrize("content", [None, "", "{", "[]", "{}"])
def test_a_folder_that_is_no_problem_is_refused(call, tmp_path, command, content):
    folder = tmp_path / "mine"
    folder.mkdir()
    if content is not None:
        (folder / "definition.json").write_text(content)
    answer = call("problems", command, folder)
    assert answer.code == 2
    answer.sentence("definition.json", "`kernelarc problems list`")


def test_a_line_of_the_workloads_that_is_wrong_is_named(call, tmp_path):
    definition = problems.get("rmsnorm").folder / "definition.json"
    (tmp_path / "definition.json").write_text(definition.read_text("utf-8"))
    (tmp_path / "workload.jsonl").write_text("\n" + json.dumps({"uuid": 1}) + "\n")
    answer = call("problems", "show", tmp_path)
    assert answer.code == 2
    answer.sentence("workload.jsonl, line 2")


def test_a_problem_is_checked_once(call):
    answer = call("problems", "check", "rmsnorm", "softmax", "rmsnorm")
    assert answer.code == 2
    answer.sentence("once", "rmsnorm")


def test_an_unknown_device_or_level_is_refused(call):
    assert call("problems", "check", "--device", "gpu").code == 2
    call("problems", "check", "--device", "gpu").sentence("'gpu'", "cpu")
    call("problems", "check", "--isolation", "most").sentence("'most'", "full, reduced, none")


@pytest.mark.torch
@pytest.mark.slow
def test_the_check_says_that_every_wrong_answer_was_refused(start):
    answer = start("problems", "check", "rmsnorm", "--isolation", "none", "--json")
    assert answer.code == 0
    (report,) = answer.document
    assert report["problem"] == "rmsnorm"
    assert report["admitted"] is True
