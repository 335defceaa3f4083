"""The zygote, spoken to as the judge does, in this process; what it would fork is looked at."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

import pytest

pytest.importorskip("torch")

from kernelarc.guard.errors import SandboxUnavailable
from kernelarc.guard.sandbox import Confined, SandboxPolicy, WallName
from kernelarc.guard.worker import zygote
from kernelarc.guard.worker.channel import recv_json, socket_pair
from kernelarc.guard.worker.process import Zygote, memory_file

POLICY = SandboxPolicy(
    readable=(Path("/usr"), Path("/lib")),
    hidden=(Path("/usr/src"),),
    allow_exec=True,
    cpus=(0, 1),
    environment={"A": "b"},
)


class Forked:
    """What was asked of ``spawn_confined``; the descriptors that it returns are those of pipes."""

    def __init__(self):
        self.calls = []
        self.error = None

    def __call__(self, policy, main, keep_fds, *, walls):
        if self.error is not None:
            raise self.error
        self.calls.append((policy, main, walls))
        for fd in keep_fds:
            os.fstat(fd)  # still open
        return Confined(*os.pipe())


@pytest.fixture
def forked(monkeypatch):
    made = Forked()
    monkeypatch.setattr(zygote, "spawn_confined", made)
    monkeypatch.setattr(zygote, "_warm_up", lambda: None)
    return made


@contextlib.contextmanager
def serving():
    """The judge's end of a zygote that serves in a thread, after it said that it is ready."""
    ours, theirs = socket_pair()
    ours.settimeout(60)

    def serve():
        with theirs:
            zygote.serve(theirs)

    thread = threading.Thread(target=serve)
    thread.start()
    with ours:
        assert recv_json(ours) == ({"ok": True, "ready": True}, [])
        yield ours
    thread.join()


@pytest.fixture
def control(forked):
    with serving() as ours:
        yield ours


def spawned(control, kind, count):
    files = [memory_file(b"{}") for _ in range(count)]
    try:
        confined = Zygote(control, frozenset({WallName.LIMITS})).spawn(kind, POLICY, tuple(files))
    finally:
        for fd in files:
            os.close(fd)
    for fd in confined:
        os.close(fd)


def test_a_policy_survives_the_way_to_the_zygote():
    assert zygote.policy_from_json(zygote.policy_to_json(POLICY)) == POLICY
    bare = SandboxPolicy(readable=())
    assert zygote.policy_from_json(zygote.policy_to_json(bare)) == bare


def test_each_process_gets_a_user_of_its_own_and_the_walls_that_stand(control, forked):
    for _ in range(2):
        spawned(control, "runner", 4)
    users = [policy.uid for policy, _, _ in forked.calls]
    assert len(set(users)) == 2
    assert all(POLICY.uid <= uid < POLICY.uid + zygote.USERS for uid in users)
    assert all(walls == {WallName.LIMITS} for _, _, walls in forked.calls)
    for policy, _, _ in forked.calls:
        assert (policy.readable, policy.hidden) == (POLICY.readable, POLICY.hidden)


def test_a_compiler_gets_its_spec_and_where_to_write(control, forked, monkeypatch):
    spawned(control, "compiler", 3)
    got = []
    monkeypatch.setattr(zygote.runner, "read_spec", lambda fd: f"spec of {fd}")
    monkeypatch.setattr(
        zygote.compilation, "compile_in_sandbox", lambda *arguments: got.append(arguments) or 7
    )
    assert forked.calls[0][1]() == 7
    ((spec, log_fd, out_fd),) = got
    assert spec.startswith("spec of ")
    assert log_fd != out_fd


def test_a_runner_gets_its_socket_its_spec_and_the_libraries(control, forked, monkeypatch):
    ours, theirs = socket_pair()
    spawned(control, "runner", 5)
    got = []
    monkeypatch.setattr(zygote.runner, "read_spec", lambda fd: f"spec of {fd}")
    monkeypatch.setattr(zygote.runner, "run", lambda *arguments: got.append(arguments) or 3)
    monkeypatch.setattr(zygote.socket, "socket", lambda fileno: theirs)
    assert forked.calls[0][1]() == 3
    ((sock, spec, log_fd, loop_fd, library_fd),) = got
    assert sock is theirs
    assert spec.startswith("spec of ")
    assert len({log_fd, loop_fd, library_fd}) == 3
    ours.close()


@pytest.mark.parametrize("error", [SandboxUnavailable("no such wall"), OSError("too many files")])
def test_what_cannot_be_confined_is_said_and_the_next_is_tried(control, forked, error):
    forked.error = error
    with pytest.raises(SandboxUnavailable, match=f"could not be confined: {error}"):
        spawned(control, "runner", 3)
    forked.error = None
    spawned(control, "runner", 3)
    assert len(forked.calls) == 1


def test_no_descriptor_is_left_in_the_zygote(forked):
    before = os.listdir("/proc/self/fd")
    with serving() as control:
        spawned(control, "runner", 4)
        spawned(control, "compiler", 3)
        forked.error = OSError("too many files")
        with pytest.raises(SandboxUnavailable):
            spawned(control, "runner", 3)
    assert os.listdir("/proc/self/fd") == before


def test_warming_up_leaves_one_thread_for_torch(monkeypatch):
    frozen = []
    monkeypatch.setattr(zygote.gc, "freeze", lambda: frozen.append(True))
    zygote._warm_up()
    assert zygote.torch.get_num_threads() == 1
    assert frozen == [True]
