"""One judged batch: the only kind of call that a candidate ever gets.

Fresh inputs it has not seen, outputs filled with a fresh pattern, the runner frozen while the judge
writes; then the call; then a sampled read that ends the judge's clock; then the runner is frozen,
and every output, canary and input is checked.
"""

from __future__ import annotations

import random
import secrets
from dataclasses import dataclass
from time import perf_counter_ns

import torch

from kernelarc.guard.schema import Correctness, EvaluationStatus, Problem, Workload
from kernelarc.guard.worker.buffers import Arena, poison_like
from kernelarc.guard.worker.compare import compare, merge
from kernelarc.guard.worker.inputs import InputSet
from kernelarc.guard.worker.process import CandidateFailed, RunnerProcess

SAMPLES = 64
"""Random bytes of all outputs of a batch, in random order, that the judge reads in one go before it
stops its clock: work that still goes on for a fraction f of the batch is noticed with probability
1 - (1 - f)**64 in each of hundreds of batches. (Set by set, the last outputs would be read tens of
microseconds after the first, and work on them could go on so long.) Each read fetches a line from
the candidate's core, and that is part of the measured time."""


@dataclass(frozen=True)
class Stimulus:
    """Inputs of one call with the reference's answer; private to the judge."""

    inputs: InputSet
    expected: dict[str, torch.Tensor]


@dataclass(frozen=True)
class BatchResult:
    """What was observed in one batch of calls."""

    judge_ns: int
    """From before the runner was thawed to the end of the judge's sampled read."""
    runner_ns: int
    """The runner's own claim."""
    outputs: list[dict[str, torch.Tensor]]
    """Private copies of the outputs of each call."""
    correctness: Correctness


class Trial:
    """Runs batches of one workload on one runner."""

    def __init__(
        self,
        problem: Problem,
        workload: Workload,
        runner: RunnerProcess,
        slot: str,
        generator: torch.Generator,
        *,
        chooser: random.Random,
        calls: int,
        call_timeout_s: float,
    ) -> None:
        """Prepare batches of so many ``calls``.

        The runner has the workload's buffers as ``slot``. ``generator`` makes the pattern in the
        outputs, and ``chooser`` says which sets of buffers are called for, and in which order.
        """
        self._problem = problem
        self._workload = workload
        self._runner = runner
        self._slot = slot
        self._arena: Arena = runner.arenas[slot]
        self._generator = generator
        # Not the one of the poison: from what a candidate sees of that it could work out the rest.
        self._coin = torch.Generator().manual_seed(secrets.randbits(63))
        self._chooser = chooser
        self._calls = calls
        self._timeout_s = call_timeout_s * calls
        self._outputs = list(problem.definition.outputs)

    def run(self, stimuli: list[Stimulus], *, verify: bool = True) -> BatchResult:
        """One batch.

        Args:
            stimuli: One for each call.
            verify: ``False`` for the trusted null candidate only.

        Raises:
            CandidateFailed: anything that a candidate can do wrong.
        """
        order = self._chooser.sample(range(self._arena.sets), self._calls)
        poisons = [self._write(k, s) for k, s in zip(order, stimuli, strict=True)]
        # Sets that are not called for look like any other.
        idle = [k for k in range(self._arena.sets) if k not in order]
        untouched = {k: self._write(k, stimuli[0]) for k in idle}
        places = self._arena.places(self._outputs, SAMPLES, self._coin)
        start, runner_ns = self._runner.call(self._slot, order, self._timeout_s)
        samples = self._arena.peek(places)
        judge_ns = perf_counter_ns() - start
        self._runner.freeze()
        if not verify:
            return BatchResult(judge_ns, runner_ns, [], Correctness())
        self._check_settled(places, samples)
        outputs = [
            {name: self._arena.tensors(k)[name].clone() for name in self._outputs} for k in order
        ]
        self._check_bounds()
        self._check_inputs(
            {**dict(zip(order, stimuli, strict=True)), **dict.fromkeys(idle, stimuli[0])}
        )
        self._check_idle(untouched)
        worst = Correctness()
        for stimulus, got, poison in zip(stimuli, outputs, poisons, strict=True):
            comparison = compare(
                self._problem,
                self._workload,
                stimulus.expected,
                got,
                poison,
                inputs=stimulus.inputs.tensors,
            )
            if comparison.failure is not None:
                raise IncorrectOutput(
                    comparison.failure.status,
                    f"{comparison.failure.message} (inputs: {stimulus.inputs.family})",
                    comparison.correctness,
                )
            worst = merge(worst, comparison.correctness)
        return BatchResult(judge_ns, runner_ns, outputs, worst)

    def _write(self, index: int, stimulus: Stimulus) -> dict[str, torch.Tensor]:
        tensors = self._arena.tensors(index)
        for name, value in stimulus.inputs.tensors.items():
            tensors[name].copy_(value)
        poison = {}
        for name in self._outputs:
            poison[name] = poison_like(tensors[name], self._generator)
            tensors[name].copy_(poison[name])
        return poison

    def _check_settled(self, places: torch.Tensor, samples: torch.Tensor) -> None:
        changed = (self._arena.peek(places) != samples).nonzero()
        if changed.numel():
            name = self._arena.owner(int(places[changed[0]]))
            raise CandidateFailed(
                EvaluationStatus.STALE_OUTPUT,
                f"output {name!r} still changed after the call had returned: all work must "
                "be finished when run() returns.",
            )

    def _check_bounds(self) -> None:
        where = self._arena.overwritten()
        if where is not None:
            self._arena.renew_canaries()
            raise CandidateFailed(
                EvaluationStatus.OUT_OF_BOUNDS, f"a write outside the buffers, {where}."
            )

    def _check_idle(self, untouched: dict[int, dict[str, torch.Tensor]]) -> None:
        for index, poison in untouched.items():
            for name, value in poison.items():
                if not same_bits(self._arena.tensors(index)[name], value):
                    raise CandidateFailed(
                        EvaluationStatus.OUT_OF_BOUNDS,
                        f"output {name!r} of a call that was not made was written: each call may "
                        "write its own outputs only.",
                    )

    def _check_inputs(self, stimuli: dict[int, Stimulus]) -> None:
        for index, stimulus in stimuli.items():
            tensors = self._arena.tensors(index)
            for name, value in stimulus.inputs.tensors.items():
                if not same_bits(tensors[name], value):
                    raise CandidateFailed(
                        EvaluationStatus.INPUT_MUTATED,
                        f"input {name!r} was modified; inputs are read-only.",
                    )


class IncorrectOutput(CandidateFailed):
    """A wrong result, with its measured errors."""

    def __init__(self, status: EvaluationStatus, message: str, correctness: Correctness) -> None:
        super().__init__(status, message)
        self.correctness = correctness


def same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether two tensors hold the same bytes; NaNs compare by their bits."""
    if left.numel() == 0:
        return left.shape == right.shape
    return torch.equal(
        left.contiguous().view(-1).view(torch.uint8), right.contiguous().view(-1).view(torch.uint8)
    )
