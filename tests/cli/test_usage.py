"""Errors in the command line itself, help texts, and the JSON of every command."""

import json
import subprocess
import sys

import pytest
import typer.main

from kernelarc.cli.app import app

COMMANDS = [
    ("doctor",),
    ("problems", "list"),
    ("problems", "show"),
    ("problems", "check"),
    ("eval",),
    ("selftest",),
    ("run",),
    ("resume",),
    ("report",),
    ("board",),
    ("leader",),
    ("stdio",),
    ("install",),
]

WITH_JSON = [words for words in COMMANDS if words != ("stdio",)]


def test_the_list_of_commands_above_is_complete():
    found = set()
    for name, command in typer.main.get_command(app).commands.items():
        if not command.hidden:
            inner = getattr(command, "commands", {None: None})
            found |= {(name, sub) if sub else (name,) for sub in inner}
    assert found == set(COMMANDS)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(call, words):
    answer = call(*words, "--help")
    assert answer.code == 0
    assert f"Example: kernelarc {' '.join(words)}" in answer.out.replace("`", "")
    assert answer.out == call(*words, "-h").out


@pytest.mark.parametrize("words", WITH_JSON, ids=" ".join)
def test_every_command_has_json(call, words):
    assert "--json" in call(*words, "--help").out


def test_the_help_lists_the_exit_codes(call):
    answer = call("--help")
    assert answer.code == 0
    for text in ("0 ok", "1 the candidate was rejected", "2 bad input", "3 the guard or device"):
        assert text in answer.out


def test_the_version_is_printed(call):
    from kernelarc._version import __version__

    assert call("--version").out == f"kernelarc {__version__}\n"


@pytest.mark.parametrize("words", [(), ("problems",)], ids=["root", "group"])
def test_without_a_command_the_help_is_shown(call, words):
    answer = call(*words)
    assert answer.code == 2
    assert "Usage: kernelarc" in answer.out + answer.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fly",), "'fly'"),
        (("problems", "fly"), "'fly'"),
        (("eval",), "'problem'"),
        (("eval", "rmsnorm"), "'solution'"),
        (("run",), "PROBLEM"),
        (("resume",), "RUN"),
        (("install",), "'client'"),
        (("board",), "'problem'"),
        (("problems", "show"), "'problem'"),
        (("leader", "--fly"), "--fly"),
        (("doctor", "--fly"), "--fly"),
        (("run", "rmsnorm", "--agents", "0"), "'--agents'"),
        (("run", "rmsnorm", "--agents", "many"), "'--agents'"),
        (("run", "rmsnorm", "--minutes", "nan"), "'--minutes'"),
        (("run", "rmsnorm", "--minutes", "inf"), "'--minutes'"),
        (("run", "rmsnorm", "--seed", "x"), "'--seed'"),
        (("eval", "rmsnorm", "a.cpp", "--call-timeout", "inf"), "'--call-timeout'"),
        (("eval", "rmsnorm", "a.cpp", "--compile-timeout", "0"), "'--compile-timeout'"),
        (("board", "rmsnorm", "--limit", "0"), "'--limit'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_a_mistake_in_the_command_line_is_one_sentence_or_one_document(call, words, said):
    text = call(*words)
    assert text.code == 2
    sentence = text.sentence(said)
    assert sentence.endswith("--help` shows what is allowed.")
    document = call(*words, "--json")
    assert document.code == 2
    document.error(said)


def test_the_process_exits_with_the_same_code(start):
    answer = start("fly", "--json")
    assert answer.code == 2
    assert answer.error("fly").startswith("No such command")


def test_the_command_line_starts_without_what_it_does_not_need():
    """A client waits for this process."""
    code = "import sys, json, kernelarc.cli.app; print(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"anyio", "asyncio", "mcp", "pydantic", "plotly", "jinja2", "rich", "sqlite3"}
    heavy |= {"sqlite_utils", "tomlkit", "torch", "yaml", "kernelarc.guard.pipeline"}
    assert not heavy & set(json.loads(done.stdout))


def test_the_help_says_what_each_exit_code_means(call):
    text = " ".join(call("--help").out.split())
    assert "the run promoted nothing or the selftest found a difference" in text
