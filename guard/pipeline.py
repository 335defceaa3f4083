"""The guard as the server sees it: one judge process per device, restarted when it is lost.

``open_guard`` is cheap: the judge (which imports torch, probes the sandbox and measures the
device) starts with the first call or with ``Guard.warm_up``.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream

from kernelarc.guard import errors
from kernelarc.guard.errors import (
    GuardUnavailable,
    KernelArcError,
    ToolchainMissing,
    WorkerLost,
)
from kernelarc.guard.roofline import Floor
from kernelarc.guard.schema import (
    AdmissionReport,
    BenchmarkResult,
    Environment,
    Isolation,
    JudgeState,
    Problem,
    Solution,
    Verdict,
)

Progress = Callable[[str, int, int], None]
"""Called with phase, done and total (0: unknown)."""

CLOSE_TIMEOUT_S = 1.0
MAX_LINE_BYTES = 64 << 20
JUDGE_ENVIRONMENT = {
    "OMP_WAIT_POLICY": "passive",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "MALLOC_MMAP_THRESHOLD_": str(1 << 25),
}
"""Idle threads of the judge must sleep, not spin: they would take the candidate's processors. And
its large temporaries must not fault in again with every comparison."""


@dataclass(frozen=True)
class GuardSettings:
    """How the guard works on this host."""

    home: Path
    """Holds the guard's secret key."""
    device: str = "cpu"
    isolation: Literal["full", "reduced", "none"] = "reduced"
    """Refuse to judge when this host isolates candidates less than this."""
    compile_timeout_s: float = 60.0
    call_timeout_s: float = 10.0
    total_timeout_s: float = 300.0
    screen: bool = True
    """The static screen. Off in the selftest only, to show that the walls hold without it: a
    server refuses such a guard, so that none of its verdicts is ever stored."""

    def for_judge(self) -> str:
        """The settings as the judge process takes them."""
        timeouts = {
            "compile_s": self.compile_timeout_s,
            "call_s": self.call_timeout_s,
            "total_s": self.total_timeout_s,
        }
        data = asdict(self) | {"home": str(self.home), "timeouts": timeouts}
        return json.dumps(data)


class Guard:
    """Judges solutions. Safe for concurrent use: jobs run one after the other on the device."""

    def __init__(self, settings: GuardSettings, tasks: anyio.abc.TaskGroup) -> None:
        self.settings = settings
        self._tasks = tasks
        self._judge: _JudgeProcess | None = None
        self._starting = anyio.Lock()  # two callers must not start two judges
        self._numbers = count(1)

    @property
    def screens(self) -> bool:
        """Whether the static screen looks at solutions first."""
        return self.settings.screen

    async def warm_up(self) -> None:
        """Start the judge now; otherwise the first call does."""
        await self._running_judge()

    async def environment(self) -> Environment:
        """Facts of the device."""
        return Environment.model_validate((await self._request("facts", {}))["environment"])

    async def isolation(self) -> Isolation:
        """Walls of the sandbox on this host."""
        return Isolation.model_validate((await self._request("facts", {}))["isolation"])

    async def verify(
        self, problem: Problem, solution: Solution, progress: Progress | None = None
    ) -> Verdict:
        """Whether a solution is right.

        Raises:
            RequestError: it cannot be judged here (language, flags).
            GuardUnavailable: nothing was decided.
        """
        request = _bodies(problem, solution)
        return Verdict.model_validate(await self._request("verify", request, progress))

    async def benchmark(
        self,
        problem: Problem,
        solution: Solution,
        leader: Solution | None,
        progress: Progress | None = None,
    ) -> BenchmarkResult:
        """Time a solution against the leader, or against the reference if there is none."""
        body = leader.model_dump(mode="json") if leader else None
        request = _bodies(problem, solution) | {"leader": body}
        return BenchmarkResult.model_validate(await self._request("benchmark", request, progress))

    async def admit(self, problem: Problem, progress: Progress | None = None) -> AdmissionReport:
        """Whether the problem's tolerance refuses wrong answers."""
        request = {"problem": problem.model_dump(mode="json")}
        return AdmissionReport.model_validate(await self._request("admit", request, progress))

    async def floors(self, problem: Problem) -> dict[str, Floor]:
        """Measured physical floors of the ranked workloads, by uuid."""
        answer = await self._request("floors", {"problem": problem.model_dump(mode="json")})
        return {uuid: Floor.model_validate(data) for uuid, data in answer.items()}

    async def judge_state(self) -> JudgeState:
        """What no candidate may change of the judge's process."""
        return JudgeState.model_validate(await self._request("state", {}))

    async def close(self) -> None:
        """End the judge and every candidate below it."""
        if self._judge is not None:
            await self._judge.close()
            self._judge = None

    async def _request(
        self, operation: str, body: dict[str, Any], progress: Progress | None = None
    ) -> dict[str, Any]:
        judge = await self._running_judge()
        return await judge.request(str(next(self._numbers)), operation, body, progress)

    async def _running_judge(self) -> _JudgeProcess:
        async with self._starting:
            if self._judge is None or self._judge.lost:
                await self.close()
                self._judge = await _JudgeProcess.start(self.settings, self._tasks)
            return self._judge


@contextlib.asynccontextmanager
async def open_guard(settings: GuardSettings) -> AsyncIterator[Guard]:
    """A guard for the time of the context."""
    async with anyio.create_task_group() as tasks:
        guard = Guard(settings, tasks)
        try:
            yield guard
        finally:
            await guard.close()
            tasks.cancel_scope.cancel()


def _bodies(problem: Problem, solution: Solution) -> dict[str, Any]:
    return {
        "problem": problem.model_dump(mode="json"),
        "solution": solution.model_dump(mode="json"),
    }


@dataclass
class _Pending:
    """One request that waits for its answer."""

    done: anyio.Event
    progress: Progress | None
    answer: dict[str, Any] | None = None


class _JudgeProcess:
    """Client of one judge process: requests by number, answers in any order."""

    def __init__(self, process: anyio.abc.Process) -> None:
        self._process = process
        self._pending: dict[str, _Pending] = {}
        self._ready = anyio.Event()
        self._fatal: KernelArcError | None = None
        self._writing = anyio.Lock()  # a line must not be cut by another
        self.lost = False

    @classmethod
    async def start(cls, settings: GuardSettings, tasks: anyio.abc.TaskGroup) -> _JudgeProcess:
        """Start a judge and wait until it takes jobs.

        Raises:
            GuardUnavailable: it does not start, or this host isolates candidates too little.
        """
        if importlib.util.find_spec("torch") is None:
            raise ToolchainMissing(
                "torch is not installed, and the guard's worker needs it: "
                "pip install 'kernelarc[cpu]'."
            )
        process = await anyio.open_process(
            [sys.executable, "-m", "kernelarc.guard.worker", "judge", settings.for_judge()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sys.stderr,
            env=dict(os.environ) | JUDGE_ENVIRONMENT,
            start_new_session=True,
        )
        judge = cls(process)
        try:
            tasks.start_soon(judge._listen)
            await judge._ready.wait()
        except BaseException:
            await judge.close()
            raise
        if judge._fatal is not None:
            await judge.close()
            raise judge._fatal
        return judge

    async def request(
        self, number: str, operation: str, body: dict[str, Any], progress: Progress | None
    ) -> dict[str, Any]:
        """Send a request and wait; cancelling the wait cancels the job in the judge."""
        pending = self._pending[number] = _Pending(anyio.Event(), progress)
        try:
            await self._send({"id": number, "op": operation, **body})
            await pending.done.wait()
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True), contextlib.suppress(WorkerLost):
                await self._send({"id": number, "op": "cancel"})
            raise
        finally:
            del self._pending[number]
        if pending.answer is None:
            raise WorkerLost("the judge process died while it worked on this; nothing was decided.")
        if "error" in pending.answer:
            raise _error(pending.answer)
        result: dict[str, Any] = pending.answer["result"]
        return result

    async def close(self) -> None:
        """End the judge; the zygote and every candidate below it end with it."""
        self.lost = True
        assert self._process.stdin is not None
        with anyio.CancelScope(shield=True):
            # It leaves at the end of its input, whatever it is doing; unless it cannot run.
            with anyio.move_on_after(CLOSE_TIMEOUT_S):
                await self._process.stdin.aclose()
                await self._process.wait()
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.aclose()

    async def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        try:
            async with self._writing:
                await self._process.stdin.send(data)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise WorkerLost("the judge process is gone; the next call starts it again.") from None

    async def _listen(self) -> None:
        assert self._process.stdout is not None
        stream = BufferedByteReceiveStream(self._process.stdout)
        try:
            while True:
                line = await stream.receive_until(b"\n", MAX_LINE_BYTES)
                self._take(json.loads(line))
        except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError,
                anyio.ClosedResourceError, anyio.DelimiterNotFound, ValueError):  # fmt: skip
            # The last two: no answer is that long, or not JSON. Such a judge is replaced.
            self.lost = True
        finally:
            if not self._ready.is_set():
                self._fatal = self._fatal or WorkerLost("the judge process did not start.")
                self._ready.set()
            for pending in self._pending.values():
                pending.done.set()

    def _take(self, message: dict[str, Any]) -> None:
        if "ready" in message:
            self._ready.set()
        elif "fatal" in message:
            self._fatal = _error({"error": message["fatal"], "kind": message["kind"]})
        elif (pending := self._pending.get(message["id"])) is None:
            return  # the caller gave up; the judge's answer crossed its cancellation
        elif "phase" in message:
            if pending.progress is not None:
                pending.progress(message["phase"], message["done"], message["total"])
        else:
            pending.answer = message
            pending.done.set()


def _error(answer: dict[str, Any]) -> KernelArcError:
    """The error of the same class as the judge raised, with its text."""
    kind = getattr(errors, answer["kind"], GuardUnavailable)
    error: KernelArcError = kind.__new__(kind)
    Exception.__init__(error, answer["error"])
    return error
