"""Ways to call the command line: in this process, and as its own where that is the subject."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass

import pytest
from typer.testing import CliRunner

from kernelarc.cli.app import app
from kernelarc.guard import problems
from kernelarc.memory.archive import open_archive

PROGRAM = [sys.executable, "-m", "kernelarc.cli"]


@dataclass(frozen=True)
class Answer:
    """What a command wrote, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def document(self):
        """The whole of standard output as one JSON document."""
        return json.loads(self.out)

    def sentence(self, *words):
        """The error: one line, no traceback, with each of the words."""
        assert self.out == ""
        assert "Traceback" not in self.err
        lines = self.err.strip().splitlines()
        assert len(lines) == 1
        assert lines[0].startswith("error: ")
        for word in words:
            assert word in lines[0]
        return lines[0]

    def error(self, *words):
        """The error as JSON, and nothing else on any stream."""
        assert self.err == ""
        assert set(self.document) == {"error", "kind"}
        for word in words:
            assert word in self.document["error"]
        return self.document["error"]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home of this test alone; nothing that the caller's shell sets counts."""
    for name in list(os.environ):
        if name.startswith("KERNELARC_"):
            monkeypatch.delenv(name)
    folder = tmp_path / "home"
    monkeypatch.setenv("KERNELARC_HOME", str(folder))
    monkeypatch.setenv("COLUMNS", "200")
    return folder


@pytest.fixture
def call():
    """Calls a command in this process."""

    def invoke(*words):
        done = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
        return Answer(done.exit_code, done.stdout, done.stderr)

    return invoke


@pytest.fixture
def start():
    """Calls a command as a process; ``before`` is Python that runs in it first."""

    def run(*words, before=None, environment=None):
        arguments = [str(word) for word in words]
        program = PROGRAM
        if before is not None:
            main = "from kernelarc.cli import main; main()"
            program = [sys.executable, "-c", f"{before}; {main}"]
        done = subprocess.run(
            [*program, *arguments],
            env=os.environ | (environment or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def archive(home):
    """The database of this test's home, with the problem rmsnorm."""
    with open_archive(home / "kernelarc.db") as opened:
        opened.catalogue.register_problem(problems.get("rmsnorm"))
        yield opened


@pytest.fixture
def no_database(tmp_path):
    """A file that is not a database."""
    path = tmp_path / "text.db"
    path.write_text("this is not a database\n" * 100)
    return path
