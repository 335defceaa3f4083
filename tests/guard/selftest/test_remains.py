"""What a sample leaves behind is found: planted here, as no sample can do it."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from kernelarc.guard.sandbox.policy import CANDIDATE_UID
from kernelarc.guard.schema import Isolation, Wall
from kernelarc.guard.selftest import remains
from kernelarc.guard.worker.own_state import own_state

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files and processes away")
WAIT = "import sys; sys.stdin.read()"


def isolation(*, uid):
    walls = [Wall(name="uid", stands=uid, detail="")]
    return Isolation(level="full" if uid else "reduced", walls=walls)


@pytest.fixture
def look(tmp_path):
    """Takes a trace before, and gives what is new after."""

    class Look:
        def __init__(self, uid):
            self.facts = (isolation(uid=uid), tmp_path)
            self.before = remains.take(own_state(), *self.facts)

        def again(self, **changes):
            state = own_state().model_copy(
                update={"descriptors": self.before.judge.descriptors} | changes
            )
            return remains.differences(self.before, remains.take(state, *self.facts))

    return lambda uid=True: Look(uid)


@contextmanager
def process(arguments, **options):
    command = [sys.executable, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, **options) as running:
        try:
            yield running
        finally:
            running.kill()


def test_nothing_is_found_where_nothing_is_left(look):
    assert look().again() == []


def test_a_process_below_the_judge_is_found(look):
    watch = look()
    with process(["-c", WAIT]) as left:
        assert watch.again() == [f"process {left.pid} is left"]
    assert watch.again() == []


def test_a_process_that_lost_its_judge_is_found(look, tmp_path):
    """A runner keeps the command line of its zygote, wherever it escapes to."""
    script = tmp_path.parent / "wait.py"
    script.write_text(WAIT)
    watch = look()
    with process([script, "kernelarc.guard.worker", "zygote"]) as left:
        other_judge = remains.take(own_state().model_copy(update={"pid": 1 << 30}), *watch.facts)
        found = remains.differences(watch.before, other_judge)
    assert f"process {left.pid} is left" in found


def test_candidates_of_another_judge_do_not_count(look, tmp_path):
    nested = (
        "import subprocess, sys; p = subprocess.Popen([sys.executable, sys.argv[3], "
        "'kernelarc.guard.worker', 'zygote'], stdin=subprocess.PIPE); print(p.pid, flush=True); "
        "sys.stdin.read(); p.kill()"
    )
    judge, script = tmp_path.parent / "judge.py", tmp_path.parent / "wait.py"
    judge.write_text(nested)
    script.write_text(WAIT)
    state = own_state().model_copy(update={"pid": 1 << 30})
    command = [judge, "kernelarc.guard.worker", "judge", script]
    with process(command, stdout=subprocess.PIPE) as running:
        zygote = int(running.stdout.readline())
        trace = remains.take(state, isolation(uid=True), tmp_path)
        assert zygote not in {pid for pid, _ in trace.processes}
        running.stdin.close()
        running.wait()
        running.stdout.close()


@as_root
def test_a_process_with_a_candidates_user_id_is_found(tmp_path):
    elsewhere = own_state().model_copy(update={"pid": 1 << 30})
    command = ["/bin/cat"]
    before = remains.take(elsewhere, isolation(uid=True), tmp_path)
    with subprocess.Popen(command, stdin=subprocess.PIPE, user=CANDIDATE_UID + 7) as left:
        after = remains.take(elsewhere, isolation(uid=True), tmp_path)
        left.kill()
    assert f"process {left.pid} is left" in remains.differences(before, after)


def test_a_process_that_is_just_ending_is_waited_for(look):
    watch = look()
    with subprocess.Popen(["/bin/sleep", "0.5"]):
        state = own_state().model_copy(update={"descriptors": watch.before.judge.descriptors})
        after = remains.settled(watch.before, state, *watch.facts)
        assert remains.differences(watch.before, after) == []


def test_a_file_in_the_guards_home_is_found(look, tmp_path):
    watch = look()
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "answers").touch()
    assert watch.again() == [
        f"file {tmp_path / 'inner'} is left",
        f"file {tmp_path / 'inner' / 'answers'} is left",
    ]


@as_root
def test_a_candidates_file_in_shared_memory_is_found(look):
    watch = look()
    path = Path("/dev/shm") / f"planted-{os.getpid()}"
    path.touch()
    try:
        assert watch.again() == []
        os.chown(path, CANDIDATE_UID + 7, CANDIDATE_UID + 7)
        assert watch.again() == [f"file {path} is left"]
    finally:
        path.unlink()


def test_without_own_user_ids_the_sandboxs_folders_are_found(look, tmp_path, monkeypatch):
    monkeypatch.setattr(remains, "SHARED_FOLDERS", ())
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path.parent))
    watch = look(uid=False)
    (tmp_path.parent / "kernelarc-left").mkdir()
    (tmp_path.parent / "anybodys").mkdir()
    assert watch.again() == [f"file {tmp_path.parent / 'kernelarc-left'} is left"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("pid", 7),
        ("folder", "/"),
        ("processors", [99]),
        ("limits", {}),
        ("environment", "other"),
        ("descriptors", 9999),
    ],
)
def test_a_changed_judge_is_found(look, field, value):
    found = look().again(**{field: value})
    assert any(f"the judge's {field} changed" in sentence for sentence in found)
