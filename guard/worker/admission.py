"""Whether a problem may be used: its tolerance must refuse wrong answers and accept the honest one.

A candidate has to be right in all input families of a workload, so a wrong answer counts as
refused when one family refuses it; but every workload must, since each is judged on its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from kernelarc.guard.schema import AdmissionCheck, AdmissionReport, Problem, Workload
from kernelarc.guard.worker.compare import Comparison, compare
from kernelarc.guard.worker.inputs import draw, families_for
from kernelarc.guard.worker.reference import InvalidReference, Reference
from kernelarc.guard.worker.wrong_answers import WrongAnswers

HONEST = "honest"
"""Name of the one check that must not be refused: the reference in the declared dtypes."""
MAX_DETAIL = 400
"""Characters of an example in a check's detail."""

Progress = Callable[[str, int, int], None]


def admit(problem: Problem, device: str, *, seed: bytes, progress: Progress) -> AdmissionReport:
    """Try every wrong answer on every ranked workload of a device.

    The wrong answers are zeros, ones, the mean of the expected output, each input of as many
    elements, the reference in each forbidden precision, and the contract's mutants.

    Args:
        problem: to be admitted.
        device: ``cpu`` or ``cuda``; where the outputs are computed.
        seed: 32 bytes from which the inputs are drawn; equal seeds give equal reports.
        progress: called with ``"admission"``, workload and family pairs done, and their number.

    Returns:
        One check per wrong answer, in the order in which they were tried, and the check
        ``honest``, the only one whose ``refused`` must be false.
    """
    trials = _Trials()
    try:
        _run(problem, device, seed, progress, trials)
    except InvalidReference as error:
        check = AdmissionCheck(name=HONEST, refused=True, detail=str(error))
        return AdmissionReport(problem=problem.name, admitted=False, checks=[check])
    checks = trials.checks()
    admitted = bool(checks) and all(c.refused != (c.name == HONEST) for c in checks)
    return AdmissionReport(problem=problem.name, admitted=admitted, checks=checks)


def _run(problem: Problem, device: str, seed: bytes, progress: Progress, trials: _Trials) -> None:
    reference = Reference(problem)
    answers = WrongAnswers(problem, reference)
    workloads = problem.ranked(device)
    if not workloads:
        raise InvalidReference(f"{problem.name!r} has no workload that is ranked on {device}")
    plan = [(w, f) for w in workloads for f in families_for(problem, w, device)]
    for done, (workload, family) in enumerate(plan):
        progress("admission", done, len(plan))
        purpose = f"{workload.uuid} {family}".encode()
        inputs = draw(
            problem,
            workload,
            family=family,
            seed=hashlib.sha256(seed + purpose).digest(),
            device=device,
        )
        expected, honest = reference.expected(inputs), reference.as_declared(inputs)

        def tried(name: str, outputs: dict[str, torch.Tensor]) -> None:
            result = compare(problem, workload, expected, outputs)  # noqa: B023
            trials.add(name, workload, family, result)  # noqa: B023

        tried(HONEST, honest)
        for answer in answers.make(inputs, expected, honest):
            tried(answer.name, answer.outputs)
    progress("admission", len(plan), len(plan))


@dataclass
class _Trial:
    """What became of one answer, by workload."""

    refusing: dict[str, list[str]] = field(default_factory=dict)
    """Families that refused it, by workload uuid."""
    example: str = ""
    largest_error: float = 0.0


class _Trials:
    """Collects trials by answer, in the order of their first appearance."""

    def __init__(self) -> None:
        self._by_name: dict[str, _Trial] = {}

    def add(self, name: str, workload: Workload, family: str, result: Comparison) -> None:
        trial = self._by_name.setdefault(name, _Trial())
        families = trial.refusing.setdefault(workload.uuid, [])
        trial.largest_error = max(trial.largest_error, result.correctness.max_relative_error or 0.0)
        if result.failure is not None:
            families.append(family)
            if not trial.example:
                text = f"{result.failure.status}: {result.failure.message}"
                trial.example = f"{family}, axes {workload.axes}: {text[:MAX_DETAIL]}"

    def checks(self) -> list[AdmissionCheck]:
        return [_check(name, trial) for name, trial in self._by_name.items()]


def _check(name: str, trial: _Trial) -> AdmissionCheck:
    error = f"largest error {trial.largest_error:.3g} of max(|expected|, rms)"
    if name == HONEST:
        refused = any(trial.refusing.values())
        detail = f"refused: {trial.example}" if refused else f"right everywhere; {error}"
        return AdmissionCheck(name=name, refused=refused, detail=detail)
    accepting = [uuid for uuid, families in trial.refusing.items() if not families]
    if accepting:
        detail = f"accepted in every family of workload {', '.join(accepting)}; {error}"
        return AdmissionCheck(name=name, refused=False, detail=detail)
    families = sorted({family for found in trial.refusing.values() for family in found})
    detail = f"refused by {', '.join(families)}; first in {trial.example}"
    return AdmissionCheck(name=name, refused=True, detail=detail)
