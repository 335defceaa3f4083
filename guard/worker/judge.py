"""The judge process: takes jobs from the server, owns everything that decides.

Requests come as JSON lines on stdin, answers go to stdout; the log is stderr. Jobs run one at a
time in this one thread; a reader thread takes lines off the pipe and marks cancellations.
Started as ``python -m kernelarc.guard.worker judge SETTINGS_JSON``.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import secrets
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import torch

from kernelarc.guard.devices.lease import lease
from kernelarc.guard.errors import GuardUnavailable, KernelArcError, RequestError
from kernelarc.guard.sandbox import probe, standing
from kernelarc.guard.schema import Environment, Isolation, Problem, Solution
from kernelarc.guard.worker import host
from kernelarc.guard.worker.admission import admit
from kernelarc.guard.worker.candidate import Timeouts, Workshop
from kernelarc.guard.worker.channel import recv_json
from kernelarc.guard.worker.interrupts import Interrupts, TotalTimeout
from kernelarc.guard.worker.own_state import own_state
from kernelarc.guard.worker.peaks import Peaks
from kernelarc.guard.worker.process import Zygote
from kernelarc.guard.worker.timing import NoiseFloors, TimingContext, benchmark
from kernelarc.guard.worker.verification import VerificationContext, verify

log = logging.getLogger("kernelarc.judge")

KEY_BYTES = 32
LEASE_TIMEOUT_S = 600.0
LEASE_WORD_S = 1.0
"""Between two words to the caller that the device is still in use, seconds."""
PROBE_BANDWIDTH_BYTES = 64 << 20
ISOLATION_ORDER = {"none": 0, "reduced": 1, "full": 2}


@dataclass(frozen=True)
class JudgeSettings:
    """What the server tells its judge when it starts it."""

    home: Path
    device: str
    isolation: str
    timeouts: Timeouts
    screen: bool = True


class Judge:
    """The jobs, and the state that they share."""

    def __init__(
        self,
        settings: JudgeSettings,
        answer: Callable[[dict[str, Any]], None],
        control: socket.socket,
    ) -> None:
        self._settings = settings
        self._answer = answer
        self.interrupts = Interrupts()
        self._isolation = self._probe()
        zygote = Zygote(zygote_ready(control), standing(self._isolation))
        self._workshop = Workshop(
            zygote, self.interrupts, settings.timeouts, screen=settings.screen
        )
        # Read last: nothing that was forked or started so far has seen the key.
        self._key = secret_key(settings.home)
        self._peaks = measure_and_pin()
        self._noise = NoiseFloors()
        self._environment = self._describe()
        self._operations: dict[str, Callable[[dict[str, Any]], Any]] = {
            "verify": self._verify,
            "benchmark": self._benchmark,
            "admit": self._admit,
            "floors": self._floors,
            "facts": self._facts,
            "state": lambda _request: own_state().model_dump(mode="json"),
        }

    def run(self, job: str, request: dict[str, Any]) -> None:
        """Run one job and answer it."""
        self.interrupts.begin(job, self._settings.timeouts.total_s)
        try:
            self.interrupts.check()
            result = self._operations[request["op"]](request)
            self._answer({"id": job, "result": result})
        except KernelArcError as error:
            self._answer({"id": job, "error": str(error), "kind": type(error).__name__})
        except TotalTimeout:
            # Sessions turn it into a verdict; elsewhere it is a matter of the guard.
            limit = self._settings.timeouts.total_s
            text = f"the job took longer than {limit:g} s in all."
            self._answer({"id": job, "error": text, "kind": "GuardUnavailable"})
        finally:
            self.interrupts.end()

    def _probe(self) -> Isolation:
        isolation = probe()
        if ISOLATION_ORDER[isolation.level] < ISOLATION_ORDER[self._settings.isolation]:
            missing = ", ".join(w.name for w in isolation.walls if not w.stands)
            raise GuardUnavailable(
                f"this host isolates candidates only to level {isolation.level!r}, and "
                f"{self._settings.isolation!r} was demanded. Missing walls: {missing}. Run "
                "`kernelarc doctor` for details, or lower --isolation knowingly."
            )
        return isolation

    def _describe(self) -> Environment:
        rates = self._peaks.rates(PROBE_BANDWIDTH_BYTES)
        return host.environment(round(rates.bandwidth_gbps, 1), round(rates.peak_gflops, 1))

    def _facts(self, _request: dict[str, Any]) -> dict[str, Any]:
        return {
            "environment": self._environment.model_dump(mode="json"),
            "isolation": self._isolation.model_dump(mode="json"),
        }

    def _verify(self, request: dict[str, Any]) -> dict[str, Any]:
        problem, solution = _problem(request), Solution.model_validate(request["solution"])
        context = VerificationContext(
            workshop=self._workshop,
            key=self._key,
            device=self._settings.device,
            isolation=self._isolation,
            environment_key=self._environment.key,
            progress=self._progress(request["id"]),
        )
        with self._lease(request["id"], exclusive=False):
            return verify(context, problem, solution).model_dump(mode="json")

    def _benchmark(self, request: dict[str, Any]) -> dict[str, Any]:
        problem, solution = _problem(request), Solution.model_validate(request["solution"])
        leader = request["leader"] and Solution.model_validate(request["leader"])
        context = TimingContext(
            workshop=self._workshop,
            peaks=self._peaks,
            noise=self._noise,
            device=self._settings.device,
            isolation=self._isolation,
            environment_key=self._environment.key,
            progress=self._progress(request["id"]),
        )
        with self._lease(request["id"], exclusive=True):
            return benchmark(context, problem, solution, leader).model_dump(mode="json")

    def _admit(self, request: dict[str, Any]) -> dict[str, Any]:
        report = admit(
            _problem(request),
            self._settings.device,
            seed=secrets.token_bytes(32),
            progress=self._progress(request["id"]),
        )
        return report.model_dump(mode="json")

    def _floors(self, request: dict[str, Any]) -> dict[str, Any]:
        problem = _problem(request)
        return {
            workload.uuid: self._peaks.floor(problem, workload).model_dump(mode="json")
            for workload in problem.ranked(self._settings.device)
        }

    def _lease(self, job: str, *, exclusive: bool) -> AbstractContextManager[None]:
        progress = self._progress(job)
        next_word = monotonic()

        def wait(seconds: float) -> None:
            nonlocal next_word
            if monotonic() >= next_word:
                progress("waiting for the device, which another process uses", 0, 0)
                next_word = monotonic() + LEASE_WORD_S
            self.interrupts.wait([], seconds)

        return lease(
            self._environment.device_id,
            exclusive=exclusive,
            wait=wait,
            timeout_s=min(LEASE_TIMEOUT_S, self._settings.timeouts.total_s),
        )

    def _progress(self, job: str) -> Callable[[str, int, int], None]:
        def report(phase: str, done: int, total: int) -> None:
            self.interrupts.check()
            self._answer({"id": job, "phase": phase, "done": done, "total": total})

        return report


def _problem(request: dict[str, Any]) -> Problem:
    return Problem.model_validate(request["problem"])


def measure_and_pin() -> Peaks:
    """Measure the device on the candidates' processors, then leave those to the candidates."""
    processors = host.processors()
    os.sched_setaffinity(0, processors.candidates)
    peaks = Peaks(host.threads())
    os.sched_setaffinity(0, processors.reserved)
    torch.set_num_threads(len(processors.reserved))
    return peaks


def secret_key(home: Path) -> bytes:
    """The guard's secret: input seeds of verifications derive from it.

    Created on first use, readable by the owner only.
    """
    home.mkdir(parents=True, exist_ok=True)
    path = home / "guard.key"
    for _ in range(2):
        try:
            key = path.read_bytes()
        except FileNotFoundError:
            temporary = home / f".guard.key.{secrets.token_hex(8)}"
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.write(secrets.token_bytes(KEY_BYTES))
            try:
                os.link(temporary, path)
            except FileExistsError:
                pass  # another judge was first; its key is read next
            finally:
                temporary.unlink()
            continue
        if len(key) != KEY_BYTES:
            raise GuardUnavailable(f"{path} is not a key of {KEY_BYTES} bytes; remove it.")
        return key
    return path.read_bytes()


def zygote_ready(control: socket.socket) -> socket.socket:
    """Wait for the zygote's first word."""
    answer = recv_json(control)
    if answer is None or not answer[0].get("ready"):
        raise GuardUnavailable("the zygote process did not start; see the log.")
    return control


def _read_requests(requests: queue.Queue[dict[str, Any]], judge: Judge) -> None:
    """Reader thread: queue jobs, mark cancellations; the end of the pipe ends the process."""
    for line in sys.stdin:
        request = json.loads(line)
        if request["op"] == "cancel":
            judge.interrupts.cancel(request["id"])
        else:
            requests.put(request)
    # The server is gone: a job in progress must not go on for nobody.
    os._exit(0)


def main(settings_json: str, control: socket.socket) -> int:
    """Serve until the server hangs up; the reader thread then ends the process."""
    raw = json.loads(settings_json)
    # Whatever prints from here on goes to the log; only this copy of stdout carries answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    settings = JudgeSettings(
        home=Path(raw["home"]),
        device=raw["device"],
        isolation=raw["isolation"],
        timeouts=Timeouts(**raw["timeouts"]),
        screen=raw["screen"],
    )

    def answer(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message, separators=(",", ":")) + "\n")
        answers.flush()

    try:
        judge = Judge(settings, answer, control)
    except (GuardUnavailable, RequestError) as error:
        answer({"fatal": str(error), "kind": type(error).__name__})
        return 1
    requests: queue.Queue[dict[str, Any]] = queue.Queue()
    reader = threading.Thread(target=_read_requests, args=(requests, judge), daemon=True)
    reader.start()
    answer({"ready": True})
    while True:
        request = requests.get()
        judge.run(request["id"], request)
