"""The judge's handle on a process: what it makes of an end, of silence and of what it is sent."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from kernelarc.guard.errors import SandboxUnavailable, WorkerLost
from kernelarc.guard.sandbox import Confined, SandboxPolicy
from kernelarc.guard.schema import EvaluationStatus
from kernelarc.guard.worker import process
from kernelarc.guard.worker.channel import (
    Command,
    FailureCode,
    RunnerEvent,
    pack_frame,
    recv_json,
    send_json,
    socket_pair,
    unpack_request,
)
from kernelarc.guard.worker.interrupts import Interrupts
from kernelarc.guard.worker.process import (
    CandidateFailed,
    ConfinedProcess,
    RunnerProcess,
    Zygote,
    describe_death,
    memory_file,
)


class Stub:
    """A zygote whose processes do nothing but live; ``theirs`` is the socket of the newest."""

    def __init__(self):
        self.children = []
        self.theirs = None

    def spawn(self, kind, policy, fds):
        self.theirs = socket.socket(fileno=os.dup(fds[0]))
        self.log = os.dup(fds[2])
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        self.children.append(child)
        read, self.status = os.pipe()
        return Confined(os.pidfd_open(child.pid), read)

    def say(self, event, number=0):
        self.theirs.send(pack_frame(event, number))

    def ends(self, status):
        """The confined process ends so, and with it its socket."""
        os.write(self.status, status.to_bytes(4, "little"))
        self.theirs.close()

    def close(self):
        self.theirs.close()
        os.close(self.status)
        os.close(self.log)
        for child in self.children:
            child.kill()
            child.stdin.close()
            child.wait()


class NoArena:
    """Buffers that nobody looks at."""

    def __init__(self):
        self.fd = memory_file(b"")
        self.closed = False

    def layout(self):
        return {}

    def close(self):
        os.close(self.fd)
        self.closed = True


@pytest.fixture
def stub():
    made = Stub()
    yield made
    made.close()


@pytest.fixture
def runner(stub):
    made = RunnerProcess(
        stub, SandboxPolicy(readable=()), {}, libraries=[], interrupts=Interrupts(), spin=True
    )
    yield made
    made.close()


def bound(runner, stub, slot="a"):
    arena = NoArena()
    stub.say(RunnerEvent.BOUND)
    runner.bind(slot, arena, {}, {}, 60)
    return arena


def failure(function, *arguments):
    with pytest.raises(CandidateFailed) as caught:
        function(*arguments)
    return caught.value.status, caught.value.message


def test_a_call_is_asked_for_and_its_answer_awaited(runner, stub):
    stub.say(RunnerEvent.LOADED)
    runner.load(60)
    bound(runner, stub)
    stub.theirs.send(pack_frame(RunnerEvent.DONE, 1, 25))
    start, elapsed_ns = runner.call("a", [1, 0], 60)
    assert start > 0
    assert elapsed_ns == 25
    assert unpack_request(stub.theirs.recv(4096)).command is Command.BIND
    body, fds = recv_json(stub.theirs)
    os.close(fds[0])
    assert body == {"slot": 0, "layout": {}, "scalars": {}, "axes": {}}
    request = unpack_request(stub.theirs.recv(4096))
    assert (request.command, request.number, request.order) == (Command.CALL, 1, (1, 0))


def test_buffers_of_the_same_name_are_replaced_and_all_are_closed(runner, stub):
    first, second, other = (bound(runner, stub, slot) for slot in ("a", "a", "b"))
    assert first.closed
    assert not second.closed
    assert not other.closed
    runner.close()
    assert second.closed
    assert other.closed
    assert runner.close() == 0.0


@pytest.mark.parametrize(
    ("order", "timeout_s", "said"),
    [
        ([0], 0.01, "a call took longer than 0.01 s; killed."),
        ([0, 1], 0.02, "2 calls took longer than 0.02 s (limit 0.01 s a call); killed."),
    ],
)
def test_the_limit_of_one_call_is_named(runner, stub, order, timeout_s, said):
    bound(runner, stub)
    assert failure(runner.call, "a", order, timeout_s) == (EvaluationStatus.TIMEOUT, said)


def test_loading_that_takes_too_long_is_named(runner):
    said = "loading took longer than 0.01 s; killed."
    assert failure(runner.load, 0.01) == (EvaluationStatus.TIMEOUT, said)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"x" * 5, "a message of 5 bytes"),
        (bytes(24), "without the frame's magic number"),
        (pack_frame(99), "a frame of unknown kind 99"),
        (pack_frame(RunnerEvent.DONE), "sent DONE out of turn while LOADED was due"),
        (pack_frame(RunnerEvent.LOADED, 3), "sent LOADED out of turn"),
        (pack_frame(RunnerEvent.FAILED, 99), "a failure of unknown kind"),
    ],
)
def test_what_is_not_the_expected_frame_breaks_the_protocol(runner, stub, data, said):
    stub.theirs.send(data)
    status, message = failure(runner.load, 60)
    assert status is EvaluationStatus.PROTOCOL
    assert said in message


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (FailureCode.LOAD, EvaluationStatus.COMPILE_ERROR),
        (FailureCode.RAISED, EvaluationStatus.RUNTIME_ERROR),
        (FailureCode.MEMORY, EvaluationStatus.OUT_OF_MEMORY),
        (FailureCode.UNSUPPORTED, EvaluationStatus.POLICY),
    ],
)
def test_a_failure_has_the_text_of_the_log_or_else_its_status(runner, stub, code, status):
    stub.say(RunnerEvent.FAILED, code)
    assert failure(runner.load, 60) == (status, status.value)
    os.pwrite(stub.log, b"<object object at 0x7f0011223344>", 0)
    stub.say(RunnerEvent.FAILED, code)
    assert failure(runner.load, 60) == (status, "<object object at 0x...>")


def test_an_end_is_described_by_its_status(runner, stub):
    stub.ends(signal.SIGSEGV)
    status, message = failure(runner.load, 60)
    assert status is EvaluationStatus.CRASH
    assert message.startswith("SIGSEGV during loading: an address outside its buffers")


def test_an_end_before_a_call_is_noticed_when_it_is_called(runner, stub):
    bound(runner, stub)
    stub.ends(9 << 8)
    status, message = failure(runner.call, "a", [0], 60)
    assert status is EvaluationStatus.CRASH
    assert message == "the process exited with code 9 during being called."


def test_a_socket_that_is_closed_by_a_process_that_lives_breaks_the_protocol(
    runner, stub, monkeypatch
):
    waited = []
    monkeypatch.setattr(runner._process, "wait", lambda *a: waited.append(a))
    stub.theirs.close()
    status, message = failure(runner.load, 60)
    assert status is EvaluationStatus.PROTOCOL
    assert message == "the process closed the judge's socket during loading."
    assert len(waited) == 1


def test_a_runner_that_reads_nothing_does_not_block_the_judge(runner, stub):
    bound(runner, stub)

    def calls():
        for number in range(1, 100_000):
            stub.theirs.send(pack_frame(RunnerEvent.DONE, number))
            runner.call("a", [0], 60)

    said = "the process does not read what it is told."
    assert failure(calls) == (EvaluationStatus.PROTOCOL, said)


def test_a_process_that_does_not_stop_is_the_candidates_fault(runner, stub, monkeypatch):
    bound(runner, stub)
    monkeypatch.setattr(runner._process, "is_still", lambda: False)
    monkeypatch.setattr(process, "STOP_TIMEOUT_S", 0)
    said = "the process could not be stopped."
    assert failure(runner.freeze) == (EvaluationStatus.PROTOCOL, said)
    said = "the process ran on although it had been stopped."
    assert failure(runner.call, "a", [0], 60) == (EvaluationStatus.PROTOCOL, said)


@pytest.mark.parametrize(
    ("number", "status", "said"),
    [
        (signal.SIGFPE, EvaluationStatus.CRASH, "SIGFPE during a call: integer division"),
        (signal.SIGUSR1, EvaluationStatus.CRASH, "SIGUSR1 during a call."),
        (signal.SIGRTMIN + 3, EvaluationStatus.CRASH, f"{signal.SIGRTMIN + 3} during a call."),
        (signal.SIGKILL, EvaluationStatus.OUT_OF_MEMORY, "killed during a call, most likely"),
    ],
)
def test_each_signal_has_its_words(number, status, said):
    got, text = describe_death(int(number), "a call")
    assert got is status
    assert text.startswith(said)


def test_a_process_that_ended_without_a_status_was_killed(stub):
    memory = memory_file(b"")
    control, theirs = socket_pair()
    confined = ConfinedProcess(stub.spawn("runner", None, (theirs.fileno(), memory, memory)))
    os.write(stub.status, b"x")
    assert confined.wait(60, Interrupts()) == signal.SIGKILL
    confined.kill()
    confined.kill()
    for end in (control, theirs):
        end.close()
    os.close(memory)


def test_a_process_that_runs_on_has_no_status(stub):
    memory = memory_file(b"")
    control, theirs = socket_pair()
    confined = ConfinedProcess(stub.spawn("runner", None, (theirs.fileno(), memory, memory)))
    assert confined.wait(0, Interrupts()) is None
    confined.kill()
    stub.children[0].wait()
    for end in (control, theirs):
        end.close()
    os.close(memory)


def test_a_child_of_nobody_is_none():
    child = subprocess.Popen([sys.executable, "-c", ""])
    pidfd = os.pidfd_open(child.pid)
    child.wait()
    assert process._pid_of(pidfd) is None
    assert process._only_child(child.pid) is None
    os.close(pidfd)
    memory = memory_file(b"")
    assert process._pid_of(memory) is None
    os.close(memory)


def test_a_zygote_that_cannot_confine_says_why():
    ours, theirs = socket_pair()
    with ours, theirs:
        send_json(theirs, {"ok": False, "error": "no such wall"})
        with pytest.raises(SandboxUnavailable, match="could not be confined: no such wall"):
            Zygote(ours, frozenset()).spawn("runner", SandboxPolicy(readable=()), ())
        request, _ = recv_json(theirs)
        assert request["kind"] == "runner"


@pytest.mark.parametrize("before", [True, False])
def test_a_zygote_that_is_gone_is_a_lost_worker(before):
    ours, theirs = socket_pair()
    with ours:
        if before:
            theirs.close()
        else:
            theirs.shutdown(socket.SHUT_WR)
        with pytest.raises(WorkerLost, match="the zygote process is gone"):
            Zygote(ours, frozenset()).spawn("runner", SandboxPolicy(readable=()), ())
    theirs.close()
