"""Verification: is the solution right? Produces a verdict, the same bytes every time.

Ranked workloads first, with every input family, a repetition for determinism and more fresh calls;
then hidden neighbour shapes. Seeds come from a keyed hash of the solution: a candidate cannot know
them, and the same solution meets the same inputs when it is judged again.
"""

from __future__ import annotations

import hmac
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from kernelarc.guard.errors import RequestError
from kernelarc.guard.schema import (
    Correctness,
    Evaluation,
    EvaluationStatus,
    Isolation,
    Language,
    Problem,
    Solution,
    Verdict,
    Workload,
    axes_text,
    solution_id,
)
from kernelarc.guard.version import GUARD_VERSION
from kernelarc.guard.worker.candidate import Candidate, Workshop
from kernelarc.guard.worker.compare import compare, merge
from kernelarc.guard.worker.input_set import torch_dtype
from kernelarc.guard.worker.inputs import draw, families_for, neighbour_shapes
from kernelarc.guard.worker.interrupts import TotalTimeout
from kernelarc.guard.worker.process import CandidateFailed, RunnerProcess
from kernelarc.guard.worker.reference import InvalidReference, Reference
from kernelarc.guard.worker.trial import (
    BatchResult,
    IncorrectOutput,
    Stimulus,
    Trial,
    same_bits,
)

SLOT = "verification"
SETS = 2
"""Calls of a verification batch."""
EXTRA_BATCHES = 12
"""Fresh ordinary batches after the families: 24 more calls, for what goes wrong only later."""
HIDDEN_SHAPES = 3
HIDDEN_BATCHES = 2

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class VerificationContext:
    """Everything about the session that is not about the candidate."""

    workshop: Workshop
    key: bytes
    """The guard's secret."""
    device: str
    isolation: Isolation
    environment_key: str
    progress: Progress


def verify(context: VerificationContext, problem: Problem, solution: Solution) -> Verdict:
    """Judge whether a solution is right.

    Raises:
        RequestError, GuardUnavailable, JobCancelled: never for what the candidate did; for a
            problem without a workload for this device, for instance.
    """
    evaluations: list[Evaluation] = []
    labels: list[str] = []
    candidate: Candidate | None = None
    failure: tuple[EvaluationStatus, str] | None = None
    context.progress("compiling", 0, 0)
    try:
        candidate = context.workshop.prepare(problem, solution)
        _Verification(context, problem, candidate, evaluations, labels).run()
    except CandidateFailed as failed:
        failure = (failed.status, failed.message)
    except TotalTimeout:
        failure = (
            EvaluationStatus.TIMEOUT,
            f"verification took longer than {context.workshop.timeouts.total_s:g} s in all.",
        )
    status, message = _fold(evaluations, failure)
    return Verdict(
        guard_version=GUARD_VERSION,
        problem=problem.name,
        problem_digest=problem.digest,
        solution_id=solution_id(solution),
        language=solution.language.value,
        status=status,
        message=message,
        evaluations=evaluations,
        compile=candidate.facts if candidate else None,
        labels=sorted(set(labels)),
        isolation=context.isolation,
        environment_key=context.environment_key,
    )


def _fold(
    evaluations: list[Evaluation], failure: tuple[EvaluationStatus, str] | None
) -> tuple[EvaluationStatus, str]:
    if failure is not None:
        return failure
    for evaluation in evaluations:
        if evaluation.status is not EvaluationStatus.PASSED:
            where = (
                "a hidden shape near the ranked ones"
                if evaluation.axes is None
                else axes_text(evaluation.axes)
            )
            return evaluation.status, f"{where}: {evaluation.message}"
    ranked = sum(1 for e in evaluations if e.axes is not None)
    calls = "all input families, repetition, and fresh inputs on every call"
    return (
        EvaluationStatus.PASSED,
        f"correct on {ranked} ranked workload(s) and {len(evaluations) - ranked} hidden shape(s): "
        f"{calls}.",
    )


class _Verification:
    """State of one verification: the runner in use and what was found so far."""

    def __init__(
        self,
        context: VerificationContext,
        problem: Problem,
        candidate: Candidate,
        evaluations: list[Evaluation],
        labels: list[str],
    ) -> None:
        self._context = context
        self._problem = problem
        self._candidate = candidate
        self._evaluations = evaluations
        self._labels = labels
        self._reference = Reference(problem)
        self._runner: RunnerProcess | None = None

    def run(self) -> None:
        """Evaluate every ranked workload, then hidden shapes if all of those passed."""
        if self._candidate.solution.language is Language.TRITON:
            self._labels.append("interpreted")
        ranked = self._problem.ranked(self._context.device)
        if not ranked:
            raise RequestError(
                f"{self._problem.name!r} has no workload for the device {self._context.device!r}. "
                "Judge it where it has one; `kernelarc problems list` shows where."
            )
        total = len(ranked) + (HIDDEN_SHAPES if self._problem.contract.shapes else 0)
        try:
            self._restart()
            for index, workload in enumerate(ranked):
                self._context.progress("verifying", index, total)
                self._evaluate(workload, self._ranked_stimuli(workload), shown=True)
            if all(e.status is EvaluationStatus.PASSED for e in self._evaluations):
                for index, workload in enumerate(self._hidden(ranked)):
                    self._context.progress("verifying", len(ranked) + index, total)
                    self._evaluate(workload, self._hidden_stimuli(workload), shown=False)
        finally:
            if self._runner is not None:
                self._runner.close()

    def _restart(self) -> RunnerProcess:
        if self._runner is not None:
            self._runner.close()
            self._runner = None
        self._runner = self._context.workshop.start(self._candidate)
        return self._runner

    def _evaluate(
        self, workload: Workload, batches: Iterator[list[Stimulus]], *, shown: bool
    ) -> None:
        """Run all batches of one workload; a failure ends them and becomes the evaluation."""
        worst = Correctness()
        status, message = EvaluationStatus.PASSED, ""
        try:
            self._check_reference(workload)
            runner = self._runner or self._restart()
            trial = self._trial(runner, workload)
            for stimuli in batches:
                result = trial.run(stimuli)
                worst = merge(worst, result.correctness)
                self._label_determinism(stimuli, result)
        except IncorrectOutput as failed:
            status, message, worst = failed.status, failed.message, failed.correctness
        except CandidateFailed as failed:
            status, message = failed.status, failed.message
        except InvalidReference as invalid:
            status, message = EvaluationStatus.INVALID_REFERENCE, str(invalid)
        if status is not EvaluationStatus.PASSED and self._runner is not None:
            # Whatever it did, the next workload starts from a fresh process.
            self._runner.close()
            self._runner = None
        self._evaluations.append(
            Evaluation(
                workload=workload.uuid if shown else "hidden",
                axes=self._problem.axes(workload) if shown else None,
                status=status,
                message=message if shown else _without_details(status),
                correctness=_rounded(worst) if shown and worst.total else None,
            )
        )

    def _check_reference(self, workload: Workload) -> None:
        """A reference that does not agree with itself can judge nobody."""
        first, again = (self._stimulus(workload, "normal", 0) for _ in range(2))
        declared = {
            name: value.to(torch_dtype(self._problem, name))
            for name, value in again.expected.items()
        }
        difference = compare(self._problem, workload, first.expected, declared).failure
        if difference is not None:
            raise InvalidReference(
                f"reference of {self._problem.name!r}: called twice with the same inputs it gives "
                f"two answers: {difference.message}. It must be a function of its inputs alone."
            )

    def _trial(self, runner: RunnerProcess, workload: Workload) -> Trial:
        self._context.workshop.bind(SLOT, runner, self._problem, workload, SETS)
        generator = torch.Generator().manual_seed(self._number("poison", workload.uuid))
        return Trial(
            self._problem,
            workload,
            runner,
            SLOT,
            generator,
            # Seeded by the guard's key, so that the same candidate meets the same order again.
            chooser=random.Random(self._number("order", workload.uuid)),  # noqa: S311
            calls=SETS,
            call_timeout_s=self._context.workshop.timeouts.call_s,
        )

    def _ranked_stimuli(self, workload: Workload) -> Iterator[list[Stimulus]]:
        for family in families_for(self._problem, workload):
            yield [self._stimulus(workload, family, k) for k in range(SETS)]
        yield [self._stimulus(workload, "normal", SETS)] * SETS
        for batch in range(1, EXTRA_BATCHES + 1):
            yield [self._stimulus(workload, "normal", batch * SETS + 1 + k) for k in range(SETS)]

    def _hidden_stimuli(self, workload: Workload) -> Iterator[list[Stimulus]]:
        families = families_for(self._problem, workload)
        for batch in range(HIDDEN_BATCHES):
            family = families[batch % len(families)]
            yield [self._stimulus(workload, family, batch * SETS + k) for k in range(SETS)]

    def _hidden(self, ranked: list[Workload]) -> list[Workload]:
        shapes = []
        for index in range(HIDDEN_SHAPES if self._problem.contract.shapes else 0):
            base = ranked[index % len(ranked)]
            seed = self._seed("shape", str(index), base.uuid)
            shapes += [
                base.model_copy(update={"axes": axes, "uuid": f"hidden-{index}"})
                for axes in neighbour_shapes(self._problem, base, seed=seed, count=1)
            ]
        return shapes

    def _stimulus(self, workload: Workload, family: str, index: int) -> Stimulus:
        self._context.workshop.interrupts.check()
        seed = self._seed("inputs", workload.uuid, family, str(index))
        inputs = draw(self._problem, workload, family=family, seed=seed)
        return Stimulus(inputs, self._reference.expected(inputs))

    def _label_determinism(self, stimuli: list[Stimulus], result: BatchResult) -> None:
        if stimuli[0] is not stimuli[1]:
            return
        first, second = result.outputs[:2]
        if not all(same_bits(first[name], second[name]) for name in first):
            self._labels.append("bitwise-nondeterministic")

    def _seed(self, *parts: str) -> bytes:
        text = "\0".join((GUARD_VERSION, self._problem.digest, self._candidate.id, *parts))
        return hmac.digest(self._context.key, text.encode(), "sha256")

    def _number(self, *parts: str) -> int:
        return int.from_bytes(self._seed(*parts)[:8], "little") >> 1


def _rounded(value: Correctness) -> Correctness:
    """Errors to two significant digits: threads may sum in another order from run to run."""
    return value.model_copy(
        update={
            "max_absolute_error": _two_digits(value.max_absolute_error),
            "max_relative_error": _two_digits(value.max_relative_error),
        }
    )


def _two_digits(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.1e}")


def _without_details(status: EvaluationStatus) -> str:
    """What may be said about a hidden shape: the kind of failure, nothing that gives it away."""
    kind = status.value.lower().replace("_", " ")
    if status in (EvaluationStatus.RUNTIME_ERROR, EvaluationStatus.INVALID_REFERENCE):
        return f"{kind}: the code must handle any size that the contract allows."
    return (
        f"{kind}. Check tails and sizes that are odd, prime or one off a multiple of the vector "
        "width or tile."
    )
