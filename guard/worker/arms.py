"""The arms of a timing session: leader, candidate, and what a call costs without any work."""

from __future__ import annotations

import contextlib
import secrets
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch

from kernelarc.guard.schema import Problem, Workload
from kernelarc.guard.worker.candidate import Candidate, Workshop, null_candidate
from kernelarc.guard.worker.process import CandidateFailed, RunnerProcess
from kernelarc.guard.worker.trial import BatchResult, Stimulus, Trial

FIRST_NULL_BATCHES = 10
NULL_BATCHES = 2


@dataclass(frozen=True)
class Turn:
    """One batch of one arm on one workload."""

    net_us: float
    """Judge's clock per call, null cost subtracted."""
    runner_us: float
    """The runner's claim per call."""
    gap_us: float
    """Judge's clock less the hand-over and the runner's claim, per call: noise, or a lie."""


class Arm:
    """One solution in one runner. Every output of every call is verified."""

    def __init__(
        self,
        workshop: Workshop,
        problem: Problem,
        candidate: Candidate,
        generator: torch.Generator,
        *,
        verify: bool = True,
    ) -> None:
        self._workshop = workshop
        self._problem = problem
        self._generator = generator
        self._verify = verify
        self._runner: RunnerProcess = workshop.start(candidate)
        self._trials: dict[str, Trial] = {}

    def warm_up(self, workload: Workload, fresh: Callable[[], list[Stimulus]]) -> None:
        """Bind the workload's buffers and make one verified batch that is not timed.

        The first calls of a process touch its memory for the first time; nothing else differs.

        Raises:
            CandidateFailed: the solution failed.
        """
        if workload.uuid not in self._trials:
            batch = fresh()
            self._bind(workload, len(batch)).run(batch, verify=self._verify)

    def run(self, workload: Workload, batch: list[Stimulus]) -> BatchResult:
        """One turn.

        Raises:
            CandidateFailed: the solution failed.
        """
        return self._trials[workload.uuid].run(batch, verify=self._verify)

    def close(self) -> float:
        """End the runner; idempotent. Returns its processor time, seconds."""
        return self._runner.close()

    def _bind(self, workload: Workload, sets: int) -> Trial:
        self._workshop.bind(workload.uuid, self._runner, self._problem, workload, sets)
        trial = Trial(
            self._problem,
            workload,
            self._runner,
            workload.uuid,
            self._generator,
            chooser=secrets.SystemRandom(),
            calls=sets,
            call_timeout_s=self._workshop.timeouts.call_s,
        )
        self._trials[workload.uuid] = trial
        return trial


@dataclass
class NullCosts:
    """Null batches of one calling convention, by workload, over the whole session."""

    destination_passing: bool
    samples: dict[str, list[BatchResult]] = field(default_factory=dict)

    def handover_ns(self, workload: Workload) -> float:
        """What a batch takes beyond what is done in it: median over null batches.

        The null candidate is ours, so its clock can be believed.
        """
        return statistics.median(n.judge_ns - n.runner_ns for n in self.samples[workload.uuid])

    def cost_ns(self, workload: Workload) -> float:
        """What is subtracted from a batch.

        The hand-over; and for value-returning solutions all that their null candidate does, since
        copying their results is the harness's work.
        """
        if self.destination_passing:
            return self.handover_ns(workload)
        return statistics.median(n.judge_ns for n in self.samples[workload.uuid])

    def measure(self, arm: Arm, workload: Workload, batch: list[Stimulus]) -> None:
        """Add null batches: more the first time on a workload."""
        known = self.samples.setdefault(workload.uuid, [])
        repeats = NULL_BATCHES if known else FIRST_NULL_BATCHES
        known += [arm.run(workload, batch) for _ in range(repeats)]


class Unmeasurable(Exception):
    """A turn took no longer than calls without work: nothing was measured."""


class LeaderFailed(Exception):
    """The leader's runner failed: nothing can be said about the candidate."""


@contextlib.contextmanager
def _failures_of(name: str) -> Iterator[None]:
    try:
        yield
    except CandidateFailed as failed:
        if name == "B":
            raise
        raise LeaderFailed(failed.message) from None


class Arms:
    """Leader, candidate and null runners between two restarts."""

    def __init__(
        self,
        workshop: Workshop,
        problem: Problem,
        generator: torch.Generator,
        *,
        leader: Candidate,
        candidate: Candidate,
        costs: dict[bool, NullCosts],
        conventions: dict[str, bool],
    ) -> None:
        """Start the runners.

        ``costs`` are the null costs of the session by calling convention (destination-passing or
        not); ``conventions`` says by arm which of them is subtracted. It is value-returning
        (False) for the trusted reference only: copying its returned values is the harness's
        work and not the reference's. Nobody else gets that: a candidate that wants no copy writes
        into its outputs.
        """
        self._costs = costs
        self._conventions = conventions
        self._open: list[Arm] = []
        self._arms: dict[str, Arm] = {}
        # By coin: whoever starts first might get the better memory.
        self._order = "AB" if secrets.randbits(1) else "BA"
        try:
            for name in self._order:
                with _failures_of(name):
                    solution = leader if name == "A" else candidate
                    self._arms[name] = self._start(workshop, problem, solution, generator)
            self._nulls = {
                passing: self._start(
                    workshop,
                    problem,
                    null_candidate(problem, candidate, destination_passing=passing),
                    generator,
                    verify=False,
                )
                for passing in sorted(set(conventions.values()))
            }
        except BaseException:
            self.close()
            raise

    def warm_up(self, workload: Workload, fresh: Callable[[], list[Stimulus]]) -> None:
        """Warm up those arms that have not met the workload yet.

        Raises:
            CandidateFailed: the candidate failed.
            LeaderFailed: the leader did.
        """
        for name in self._order:
            with _failures_of(name):
                self._arms[name].warm_up(workload, fresh)
        for arm in self._nulls.values():
            arm.warm_up(workload, fresh)

    def measure_null(self, workload: Workload, batch: list[Stimulus]) -> None:
        """Some null batches of each calling convention in use."""
        for passing, arm in self._nulls.items():
            self._costs[passing].measure(arm, workload, batch)

    def turn(self, name: str, workload: Workload, batch: list[Stimulus]) -> Turn:
        """One turn of arm ``A`` (leader) or ``B`` (candidate).

        Raises:
            CandidateFailed, LeaderFailed: the solution of that arm failed.
            Unmeasurable: the time is not above that of calls without work.
        """
        with _failures_of(name):
            raw = self._arms[name].run(workload, batch)
        sets = len(batch)
        costs = self._costs[self._conventions[name]]
        net_ns = raw.judge_ns - costs.cost_ns(workload)
        if net_ns <= 0:
            raise Unmeasurable
        return Turn(
            net_us=net_ns / sets / 1e3,
            runner_us=raw.runner_ns / sets / 1e3,
            gap_us=(raw.judge_ns - costs.handover_ns(workload) - raw.runner_ns) / sets / 1e3,
        )

    def close(self) -> float:
        """End all runners; idempotent. Returns their processor time, seconds."""
        used_s = sum(arm.close() for arm in self._open)
        self._open = []
        return used_s

    def _start(
        self,
        workshop: Workshop,
        problem: Problem,
        candidate: Candidate,
        generator: torch.Generator,
        *,
        verify: bool = True,
    ) -> Arm:
        arm = Arm(workshop, problem, candidate, generator, verify=verify)
        self._open.append(arm)
        return arm
