"""Blocks: leader and candidate take turns on fresh inputs, and each block is one ratio.

On a shared host the speed of a memory-bound kernel wanders by a factor of two within tens of
milliseconds, so that what is compared has to be close in time: the arms alternate batch by batch,
in ABBA or BAAB quads, two neighbours on the same inputs, and only neighbours are compared
(docs/decisions/0010 has the measurements).
"""

from __future__ import annotations

import math
import secrets
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations_with_replacement

import torch

from kernelarc.guard import promotion
from kernelarc.guard.roofline import Floor
from kernelarc.guard.schema import Problem, Workload
from kernelarc.guard.worker import host
from kernelarc.guard.worker.arms import Arm, Arms, LeaderFailed, NullCosts, Turn
from kernelarc.guard.worker.candidate import Candidate, Workshop, tensor_plans
from kernelarc.guard.worker.contention import Contention
from kernelarc.guard.worker.inputs import draw, families_for
from kernelarc.guard.worker.process import CandidateFailed
from kernelarc.guard.worker.reference import Reference
from kernelarc.guard.worker.trial import Stimulus

QUADS_PER_BLOCK = 8
"""ABBA or BAAB sequences of a block, per workload: 16 turns of each arm."""
TARGET_BATCH_NS = 300_000
MAX_SETS = 8
MAX_BATCH_BYTES = 256 << 20
RESTART_EVERY = 4
"""Blocks after which all runners are replaced: two processes of one kernel differ by their memory
placement, which must not be mistaken for a difference of the kernels."""
OTHER_FAMILY_EVERY = 8

Progress = Callable[[str, int, int], None]


@dataclass
class WorkloadRecord:
    """What was measured on one workload, over all blocks."""

    workload: Workload
    floor: Floor
    sets: int = 1
    """Calls of one batch."""
    candidate: list[Turn] = field(default_factory=list)
    leader: list[Turn] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Pairing:
    """One series of blocks: who meets whom, and what came out."""

    phase: str
    leader: Candidate
    candidate: Candidate
    conventions: dict[str, bool]
    records: list[WorkloadRecord]
    ratios: list[float] = field(default_factory=list)


def pseudomedian(values: Sequence[float]) -> float:
    """The Hodges-Lehmann estimate: median of the means of all pairs, each with itself too.

    As robust against disturbed turns as a median for our purpose, and less noisy.
    """
    return statistics.median((a + b) / 2 for a, b in combinations_with_replacement(values, 2))


class BlockRunner:
    """Runs blocks; owns the runners between two restarts."""

    def __init__(self, workshop: Workshop, problem: Problem, progress: Progress) -> None:
        self._workshop = workshop
        self._problem = problem
        self._progress = progress
        self._reference = Reference(problem)
        self._generator = torch.Generator().manual_seed(secrets.randbits(63))
        self._arms: Arms | None = None
        self._costs = {passing: NullCosts(passing) for passing in (True, False)}
        self._contention = Contention(host.processors().candidates)

    def plan(self, leader: Candidate, records: list[WorkloadRecord]) -> list[WorkloadRecord]:
        """Fix the number of calls per batch from the leader's speed; the candidate has no say.

        Raises:
            LeaderFailed: the leader could not be run.
        """
        try:
            arm = Arm(self._workshop, self._problem, leader, self._generator)
            try:
                for record in records:
                    record.sets = self._sets(arm, record)
            finally:
                arm.close()
        except CandidateFailed as failed:
            raise LeaderFailed(failed.message) from None
        return records

    def run(self, pairing: Pairing, count: int, *, stop_margin: float | None = None) -> None:
        """Run ``count`` blocks, restarting all runners every few.

        With a ``stop_margin``, stop at the first miss too many against it.

        Raises:
            CandidateFailed, LeaderFailed, Unmeasurable: see ``Arms``.
        """
        for index in range(count):
            if self._arms is None or index % RESTART_EVERY == 0:
                self.close()
                self._arms = Arms(
                    self._workshop,
                    self._problem,
                    self._generator,
                    leader=pairing.leader,
                    candidate=pairing.candidate,
                    costs=self._costs,
                    conventions=pairing.conventions,
                )
            self._progress(pairing.phase, index, count)
            pairing.ratios.append(self._block(self._arms, pairing))
            if (
                stop_margin is not None
                and promotion.misses(pairing.ratios, stop_margin) > promotion.MAX_MISSES
            ):
                break
        self.close()

    def watch_contention(self) -> None:
        """Start to count anew how much of the candidates' processors others use."""
        self._contention = Contention(host.processors().candidates)

    def contention(self) -> float:
        """Share of the candidates' processors that others used since."""
        return self._contention.share()

    def close(self) -> None:
        """End all runners; idempotent."""
        if self._arms is not None:
            self._contention.add(self._arms.close())
            self._arms = None

    def _block(self, arms: Arms, pairing: Pairing) -> float:
        """One block over all workloads; the ratio of geometric means."""
        logs = []
        for record in pairing.records:
            arms.warm_up(record.workload, partial(self._batch, record))
            value = pseudomedian(self._turns(arms, record))
            record.ratios.append(math.exp(value))
            logs.append(max(-math.log(4), min(math.log(4), value)))
        return math.exp(statistics.fmean(logs))

    def _turns(self, arms: Arms, record: WorkloadRecord) -> list[float]:
        """Log ratios candidate / leader of neighbouring turns on the same batch."""
        arms.measure_null(record.workload, self._batch(record))
        logs = []
        for order in _quads():
            for pair in (order[:2], order[2:]):
                batch = self._batch(record)
                turns = {name: arms.turn(name, record.workload, batch) for name in pair}
                record.leader.append(turns["A"])
                record.candidate.append(turns["B"])
                logs.append(math.log(turns["B"].net_us / turns["A"].net_us))
        return logs

    def _sets(self, arm: Arm, record: WorkloadRecord) -> int:
        arm.warm_up(record.workload, partial(self._batch, record))
        turns = [arm.run(record.workload, self._batch(record)) for _ in range(3)]
        # The judge's clock bounds the claim: few calls a batch mean much noise, and a leader could
        # keep challengers off with that.
        calls = [min(turn.runner_ns, turn.judge_ns) for turn in turns]
        wanted = math.ceil(TARGET_BATCH_NS / max(min(calls), 1000))
        size = sum(p.size_bytes for p in tensor_plans(self._problem, record.workload))
        return max(1, min(wanted, MAX_SETS, MAX_BATCH_BYTES // max(size, 1)))

    def _batch(self, record: WorkloadRecord) -> list[Stimulus]:
        """Fresh inputs for one batch; now and then of another family, as in verification.

        A candidate must not be able to tell a timed call from a verified one by its inputs.
        Leader and candidate get the same batches, so that families do not enter the ratio.
        """
        family = "normal"
        if secrets.randbelow(OTHER_FAMILY_EVERY) == 0:
            family = secrets.choice(families_for(self._problem, record.workload))
        return [self._stimulus(record.workload, family) for _ in range(record.sets)]

    def _stimulus(self, workload: Workload, family: str) -> Stimulus:
        self._workshop.interrupts.check()
        inputs = draw(self._problem, workload, family=family, seed=secrets.token_bytes(32))
        return Stimulus(inputs, self._reference.expected(inputs))


def _quads() -> list[str]:
    """The judge's coins for one block."""
    return ["ABBA" if secrets.randbits(1) else "BAAB" for _ in range(QUADS_PER_BLOCK)]
