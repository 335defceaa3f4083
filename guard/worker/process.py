"""The judge's handle on one sandboxed process: start it, call it, freeze it, end it.

A runner is frozen (SIGSTOP) whenever it is not being called. That is what gives a candidate no
head start on inputs that the judge is still writing, no way to slow the leader down during the
leader's turn, and no late writes after it said that it was done. A freeze counts when the kernel
shows every thread as stopped; the sandbox refuses what could end it from inside (a timer or a
descriptor that sends SIGCONT).
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic, perf_counter_ns, sleep
from typing import Any

from kernelarc.guard.errors import SandboxUnavailable, WorkerLost
from kernelarc.guard.sandbox import Confined, SandboxPolicy, Walls
from kernelarc.guard.schema import EvaluationStatus
from kernelarc.guard.worker.buffers import Arena
from kernelarc.guard.worker.channel import (
    MAX_JSON_BYTES,
    Command,
    FailureCode,
    Frame,
    ProtocolViolation,
    Request,
    RunnerEvent,
    pack_request,
    recv_json,
    send_json,
    socket_pair,
    unpack_frame,
)
from kernelarc.guard.worker.compilation import cut_log
from kernelarc.guard.worker.contention import process_cpu_s
from kernelarc.guard.worker.interrupts import Interrupts
from kernelarc.guard.worker.stillness import all_still
from kernelarc.guard.worker.zygote import policy_to_json

KILL_TIMEOUT_S = 10
STOP_TIMEOUT_S = 5
STOP_POLL_S = 0.0002
SPIN_NS = 3_000_000
"""So long the judge watches for the end of a call without sleeping. Waking up takes 20 to 80 us: a
candidate could say that it is done so much before it is, and go unnoticed."""

_FAILURE_STATUS = {
    FailureCode.LOAD: EvaluationStatus.COMPILE_ERROR,
    FailureCode.RAISED: EvaluationStatus.RUNTIME_ERROR,
    FailureCode.SHAPE: EvaluationStatus.INCORRECT_SHAPE,
    FailureCode.DTYPE: EvaluationStatus.INCORRECT_DTYPE,
    FailureCode.MEMORY: EvaluationStatus.OUT_OF_MEMORY,
    FailureCode.UNSUPPORTED: EvaluationStatus.POLICY,
    FailureCode.POLICY: EvaluationStatus.POLICY,
}


class CandidateFailed(Exception):
    """The candidate failed in a way that the judge observed: a value, caught by the session."""

    def __init__(self, status: EvaluationStatus, message: str) -> None:
        self.status = status
        self.message = message
        super().__init__(message)


class Zygote:
    """Client of the zygote process."""

    def __init__(self, control: socket.socket, walls: Walls) -> None:
        """``walls``: those that stand on this host; a sandbox without one of them is refused."""
        self._control = control
        self._walls = sorted(walls)

    def spawn(self, kind: str, policy: SandboxPolicy, fds: tuple[int, ...]) -> Confined:
        """Fork a confined process.

        Raises:
            SandboxUnavailable: a wall that stands on this host could not be raised.
            WorkerLost: the zygote is gone.
        """
        try:
            request = {"kind": kind, "policy": policy_to_json(policy), "walls": self._walls}
            send_json(self._control, request, fds)
            answer = recv_json(self._control)
        except OSError as error:
            raise WorkerLost(f"the zygote process is gone ({error.strerror}).") from None
        if answer is None:
            raise WorkerLost("the zygote process is gone.")
        message, received = answer
        if not message["ok"]:
            raise SandboxUnavailable(f"a candidate could not be confined: {message['error']}")
        return Confined(*received)


class ConfinedProcess:
    """A sandbox: wait for it, freeze it, kill it with everything in it."""

    def __init__(self, confined: Confined) -> None:
        self._confined = confined
        self._process: int | None = None
        self._pid: int | None = None
        self._ended: int | None = None
        self._open = True

    def wait(self, timeout_s: float, interrupts: Interrupts) -> int | None:
        """Wait status of the confined process; ``None`` when it still runs after ``timeout_s``."""
        if self._ended is None:
            interrupts.wait([self._confined.status_fd], timeout_s)
            if select.select([self._confined.status_fd], [], [], 0)[0]:
                raw = os.read(self._confined.status_fd, 4)
                self._ended = int.from_bytes(raw, "little") if len(raw) == 4 else signal.SIGKILL
        return self._ended

    def find_process(self) -> None:
        """Take hold of the confined process itself, for ``signal``; it must not have run yet.

        The supervisor has one child, the init; the init has one, the confined process. Both may
        have ended already: then there is nothing to signal.
        """
        self._pid = _only_child(_only_child(_pid_of(self._confined.pidfd)))
        if self._pid is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process = os.pidfd_open(self._pid)

    def cpu_s(self) -> float:
        """Processor time of the confined process so far, seconds; 0 when it has ended."""
        return process_cpu_s(self._pid) if self._pid is not None else 0.0

    def is_still(self) -> bool:
        """Whether no thread of the confined process can run: all are stopped, or have ended."""
        return self._pid is None or all_still(self._pid)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the confined process; nothing if it has ended."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._process, number)

    def kill(self) -> None:
        """Kill everything in the sandbox and wait until it is gone; idempotent."""
        if not self._open:
            return
        self._open = False
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._confined.pidfd, signal.SIGKILL)
        select.select([self._confined.pidfd], [], [], KILL_TIMEOUT_S)
        for fd in (*self._confined, self._process):
            if fd is not None:
                os.close(fd)


def _pid_of(pidfd: int) -> int | None:
    for line in Path(f"/proc/self/fdinfo/{pidfd}").read_text("ascii").splitlines():
        if line.startswith("Pid:"):
            pid = int(line.split()[1])
            return pid if pid > 0 else None
    return None


def _only_child(pid: int | None) -> int | None:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii")
    except FileNotFoundError:
        return None
    children = text.split()
    return int(children[0]) if children else None


class RunnerProcess:
    """One candidate in its sandbox, with the buffers that it was given, by name."""

    def __init__(
        self,
        zygote: Zygote,
        policy: SandboxPolicy,
        spec: dict[str, Any],
        *,
        libraries: Sequence[bytes],
        interrupts: Interrupts,
        spin: bool = False,
    ) -> None:
        """Start it.

        ``libraries`` are the compiled loop, then the candidate's, as far as they exist. With
        ``spin`` it waits for calls without sleeping: the judge has a processor of its own.
        """
        self._interrupts = interrupts
        self._spin_ns = SPIN_NS if spin else 0
        self._control, theirs = socket_pair()
        self._log = memory_file(b"")
        fds = [theirs.fileno(), memory_file(json.dumps(spec).encode()), self._log]
        fds += [memory_file(library) for library in libraries]
        try:
            self._process = ConfinedProcess(zygote.spawn("runner", policy, tuple(fds)))
            self._process.find_process()
        finally:
            theirs.close()
            for fd in fds[1:2] + fds[3:]:
                os.close(fd)
        self._index = 0
        self._slots: dict[str, int] = {}
        self.arenas: dict[str, Arena] = {}

    def load(self, timeout_s: float) -> None:
        """Wait until the candidate is loaded.

        Raises:
            CandidateFailed: it does not load, crashes, or takes too long.
        """
        self._expect(RunnerEvent.LOADED, 0, timeout_s, "loading")
        self.freeze()

    def bind(
        self,
        slot: str,
        arena: Arena,
        scalars: dict[str, Any],
        axes: dict[str, int],
        timeout_s: float,
    ) -> None:
        """Give the runner buffers under a name, instead of those it had under that name."""
        body = {
            "slot": self._slots.setdefault(slot, len(self._slots)),
            "layout": arena.layout(),
            "scalars": scalars,
            "axes": axes,
        }
        self._ring(Request(Command.BIND))
        self._send(lambda: send_json(self._control, body, (arena.fd,), socket.MSG_DONTWAIT))
        self.thaw()
        self._expect(RunnerEvent.BOUND, 0, timeout_s, "mapping its buffers")
        self.freeze()
        old = self.arenas.pop(slot, None)
        if old is not None:
            old.close()
        self.arenas[slot] = arena

    def call(self, slot: str, order: Sequence[int], timeout_s: float) -> tuple[int, int]:
        """One batch: ring, thaw, wait for done.

        Args:
            slot: Name of the buffers.
            order: Which sets of buffers to call for, one after the other.
            timeout_s: For the whole batch, seconds.

        Returns:
            Start of the judge's clock (``perf_counter_ns`` before the thaw) and the runner's own
            elapsed nanoseconds. The caller ends the judge's interval after its sampled read.

        Raises:
            CandidateFailed: anything but the one expected frame in time.
        """
        if not self._process.is_still():
            raise CandidateFailed(
                EvaluationStatus.PROTOCOL, "the process ran on although it had been stopped."
            )
        self._index += 1
        # The bell is rung while the runner is still frozen: it wakes once, with work waiting.
        self._ring(Request(Command.CALL, self._index, self._slots[slot], order))
        start = perf_counter_ns()
        self.thaw()
        self._watch(start + self._spin_ns)
        frame = self._expect(RunnerEvent.DONE, self._index, timeout_s, "a call", len(order))
        return start, frame.elapsed_ns

    def freeze(self) -> None:
        """Stop every thread of the candidate, and wait until the kernel has done it.

        The signal works when a thread next leaves the kernel. One that populates gigabytes or has
        taken the lowest rank can put that off, and with it the stop of all the others.

        Raises:
            CandidateFailed: it did not stop.
        """
        self._process.signal(signal.SIGSTOP)
        deadline = monotonic() + STOP_TIMEOUT_S
        while not self._process.is_still():
            if monotonic() > deadline:
                raise CandidateFailed(
                    EvaluationStatus.PROTOCOL, "the process could not be stopped."
                )
            sleep(STOP_POLL_S)

    def thaw(self) -> None:
        """Let the candidate run."""
        self._process.signal(signal.SIGCONT)

    def close(self) -> float:
        """Kill the runner and release its descriptors; idempotent.

        Returns:
            Processor time that it used, seconds.
        """
        used_s = self._process.cpu_s()
        self._process.kill()
        if self._control.fileno() >= 0:
            self._control.close()
            os.close(self._log)
        for arena in self.arenas.values():
            arena.close()
        self.arenas = {}
        return used_s

    def _ring(self, request: Request) -> None:
        self._send(lambda: self._control.send(pack_request(request), socket.MSG_DONTWAIT))

    def _send(self, send: Callable[[], object]) -> None:
        try:
            send()
        except BlockingIOError:
            raise CandidateFailed(
                EvaluationStatus.PROTOCOL, "the process does not read what it is told."
            ) from None
        except OSError:
            raise self._death("being called") from None

    def _watch(self, until_ns: int) -> None:
        poller = select.poll()
        poller.register(self._control.fileno(), select.POLLIN | select.POLLHUP)
        while perf_counter_ns() < until_ns and not poller.poll(0):
            pass

    def _expect(
        self, event: RunnerEvent, index: int, timeout_s: float, during: str, calls: int = 1
    ) -> Frame:
        deadline = monotonic() + timeout_s
        ready = self._interrupts.wait([self._control.fileno()], deadline - monotonic())
        if not ready:
            limit = f"{during} took longer than {timeout_s:g} s"
            if calls > 1:  # The limit that a user knows is that of one.
                limit = f"{calls} calls took longer than {timeout_s:g} s"
                limit += f" (limit {timeout_s / calls:g} s a call)"
            raise CandidateFailed(EvaluationStatus.TIMEOUT, f"{limit}; killed.")
        try:
            data = self._control.recv(MAX_JSON_BYTES)
        except OSError:
            data = b""
        if not data:
            raise self._death(during)
        try:
            frame = unpack_frame(data)
        except ProtocolViolation as violation:
            raise CandidateFailed(
                EvaluationStatus.PROTOCOL, f"the process wrote {violation} to the judge's socket."
            ) from None
        if frame.event is RunnerEvent.FAILED:
            raise self._failure(frame)
        if frame.event is not event or frame.number != index:
            raise CandidateFailed(
                EvaluationStatus.PROTOCOL,
                f"the process sent {frame.event.name} out of turn while {event.name} was due.",
            )
        return frame

    def _failure(self, frame: Frame) -> CandidateFailed:
        try:
            status = _FAILURE_STATUS[FailureCode(frame.number)]
        except ValueError:
            return CandidateFailed(EvaluationStatus.PROTOCOL, "a failure of unknown kind.")
        text = cut_log(os.pread(self._log, 64 * 1024, 0)) or status.value
        return CandidateFailed(status, text)

    def _death(self, during: str) -> CandidateFailed:
        self.thaw()
        status = self._process.wait(5, self._interrupts)
        if status is None:
            return CandidateFailed(
                EvaluationStatus.PROTOCOL, f"the process closed the judge's socket during {during}."
            )
        return CandidateFailed(*describe_death(status, during))


def describe_death(status: int, during: str) -> tuple[EvaluationStatus, str]:
    """Status and text for a wait status of a process that should not have ended."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        # Most real-time signals are valid and have no name.
        name = next((s.name for s in signal.Signals if s == number), str(number))
        hints: dict[int, str] = {
            signal.SIGSEGV: "an address outside its buffers was read or written",
            signal.SIGBUS: "a misaligned or unbacked address was accessed",
            signal.SIGFPE: "integer division by zero or overflow",
            signal.SIGILL: "an instruction that this processor does not have",
            signal.SIGABRT: "abort(), usually from an uncaught C++ exception or heap corruption",
            signal.SIGXFSZ: "it wrote more than the file size limit",
            signal.SIGXCPU: "it used up its processor time",
            signal.SIGSYS: "a forbidden system call",
        }
        kind = (
            EvaluationStatus.OUT_OF_MEMORY if number == signal.SIGKILL else EvaluationStatus.CRASH
        )
        if number == signal.SIGKILL:
            return kind, f"killed during {during}, most likely for its memory use."
        hint = hints.get(number)
        return kind, f"{name} during {during}" + (f": {hint}." if hint else ".")
    code = os.WEXITSTATUS(status)
    return EvaluationStatus.CRASH, f"the process exited with code {code} during {during}."


def memory_file(data: bytes) -> int:
    """A memory file with ``data``; the caller closes it."""
    fd = os.memfd_create("kernelarc", os.MFD_CLOEXEC)
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
