"""Timing: is a verified solution faster than the leader? Produces a benchmark result.

Leader and candidate run in their own frozen-when-idle runners and take turns in ABBA (or BAAB, by
the judge's coin) blocks on the same fresh inputs. Every output of every timed call is verified.
The clock that ranks is the judge's, less the cost of a null call measured in the same blocks; the
runner's own clock only has to agree.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field, replace
from time import monotonic

from kernelarc.guard import promotion
from kernelarc.guard.errors import ToolchainMissing
from kernelarc.guard.roofline import impossible
from kernelarc.guard.schema import (
    BenchmarkOutcome,
    BenchmarkResult,
    EvaluationStatus,
    Interval,
    Isolation,
    Performance,
    Problem,
    Solution,
    axes_text,
    reference_id,
    reference_solution,
    solution_id,
)
from kernelarc.guard.version import GUARD_VERSION
from kernelarc.guard.worker import host
from kernelarc.guard.worker.arms import LeaderFailed, Unmeasurable
from kernelarc.guard.worker.blocks import BlockRunner, Pairing, Progress, WorkloadRecord
from kernelarc.guard.worker.candidate import TIMED_LANGUAGES, Candidate, Workshop
from kernelarc.guard.worker.contention import MAX_SHARE
from kernelarc.guard.worker.interrupts import TotalTimeout
from kernelarc.guard.worker.peaks import Peaks
from kernelarc.guard.worker.process import CandidateFailed
from kernelarc.guard.worker.reference import InvalidReference

REFERENCE_BLOCKS = 11
MISMATCH_SHARE = 0.5
MISMATCH_SLACK_US = 40.0
"""Clocks agree if they differ, in the turn where they differ least, by less than this share of the
judge's time, plus this slack per batch, plus twice what they differ for the leader. Hand-overs
differ by so much, and nothing is gained by a lie: the judge's clock ranks."""

NOISE_LIFETIME_S = 600.0
"""How long a noise floor is used: a host does not stay as quiet, or as busy, as it was."""


@dataclass
class NoiseFloors:
    """A/A noise by (problem digest, leader), for a while."""

    known: dict[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    """Noise floor and when it was measured (``time.monotonic``)."""

    def get(self, digest: str, leader: str) -> float | None:
        """The noise floor, if it was measured lately."""
        noise, measured = self.known.get((digest, leader), (0.0, -math.inf))
        return noise if monotonic() - measured < NOISE_LIFETIME_S else None

    def put(self, digest: str, leader: str, noise: float) -> None:
        """Remember a noise floor measured now."""
        self.known[digest, leader] = noise, monotonic()


@dataclass(frozen=True)
class TimingContext:
    """Everything about the session that is not about the two solutions."""

    workshop: Workshop
    peaks: Peaks
    noise: NoiseFloors
    device: str
    isolation: Isolation
    environment_key: str
    progress: Progress


def benchmark(
    context: TimingContext, problem: Problem, solution: Solution, leader: Solution | None
) -> BenchmarkResult:
    """Time a verified solution against the leader (``None``: the reference itself).

    Raises:
        RequestError, GuardUnavailable, JobCancelled: never for what the candidate did.
    """
    opponent = leader or reference_solution(problem)
    session = _Session(context, problem, solution, opponent)
    try:
        return session.run()
    except LeaderFailed as failed:
        return session.result(
            BenchmarkOutcome.INCONCLUSIVE,
            EvaluationStatus.PASSED,
            f"the leader itself failed in this session ({failed}); nothing was decided.",
        )
    except Unmeasurable:
        return session.result(
            BenchmarkOutcome.INCONCLUSIVE,
            EvaluationStatus.PASSED,
            "a turn took no longer than calls without any work: the host is too busy, or the work "
            "too small, to be measured. Nothing was decided; try again when the host is idle.",
        )
    except CandidateFailed as failed:
        return session.result(BenchmarkOutcome.REJECTED, failed.status, failed.message)
    except InvalidReference as invalid:
        return session.result(
            BenchmarkOutcome.REJECTED, EvaluationStatus.INVALID_REFERENCE, str(invalid)
        )
    except TotalTimeout:
        limit = context.workshop.timeouts.total_s
        return session.result(
            BenchmarkOutcome.REJECTED,
            EvaluationStatus.TIMEOUT,
            f"timing took longer than {limit:g} s in all.",
        )
    finally:
        session.close()


class _Session:
    def __init__(
        self, context: TimingContext, problem: Problem, solution: Solution, opponent: Solution
    ) -> None:
        self._context = context
        self._problem = problem
        self._solution = solution
        self._opponent = opponent
        self._against_reference = solution_id(opponent) == reference_id(problem)
        self._blocks = BlockRunner(context.workshop, problem, context.progress)
        self._records: list[WorkloadRecord] = []
        self._ratios: list[float] = []
        self._noise: float | None = None
        self._decision: promotion.Decision | None = None
        self._over_reference: Interval | None = None
        self._reference_us: dict[str, float] = {}

    def run(self) -> BenchmarkResult:
        """Screen, confirm, decide."""
        if self._solution.language not in TIMED_LANGUAGES:
            return self.result(
                BenchmarkOutcome.INCONCLUSIVE,
                EvaluationStatus.PASSED,
                f"{self._solution.language.value} is verified on the CPU device but never timed "
                "there: its interpreter's speed says nothing about a GPU.",
            )
        if host.compiler() is None:
            raise ToolchainMissing(
                "g++ is not installed: solutions can be verified but not timed, since what calls "
                "them must not be slower than need be. Install g++ 11 or newer."
            )
        self._context.progress("compiling", 0, 0)
        candidate = self._context.workshop.prepare(self._problem, self._solution)
        leader = self._prepare_leader()
        self._records = self._blocks.plan(
            leader,
            [
                WorkloadRecord(workload, self._context.peaks.floor(self._problem, workload))
                for workload in self._problem.ranked(self._context.device)
            ],
        )
        screen = self._pairing(leader, candidate, "screening")
        self._take(screen)
        self._blocks.run(screen, promotion.SCREEN_BLOCKS)
        if (contended := self._contended()) is not None:
            return contended
        self._check_clocks()
        self._noise = self._context.noise.get(self._problem.digest, leader.id)
        self._decision = promotion.screening(self._ratios, noise=self._noise)
        if self._decision is not None:
            return self.result(
                self._decision.outcome, EvaluationStatus.PASSED, self._decision.reason
            )
        self._blocks.watch_contention()
        if self._noise is None:
            self._noise = self._noise_floor(leader)
        if (contended := self._contended()) is not None:
            return contended
        # Confirmation blocks only: the published speed-up must not carry the screen's luck.
        confirmation = self._pairing(leader, candidate, "timing")
        self._take(confirmation)
        margin = promotion.margin(self._noise)
        self._blocks.watch_contention()
        self._blocks.run(confirmation, promotion.BLOCKS, stop_margin=margin)
        if (contended := self._contended()) is not None:
            return contended
        self._check_clocks()
        return self._decide(candidate)

    def _take(self, pairing: Pairing) -> None:
        """Let the result be about this comparison from now on."""
        self._records, self._ratios = pairing.records, pairing.ratios

    def close(self) -> None:
        """End all runners; idempotent."""
        self._blocks.close()

    def _prepare_leader(self) -> Candidate:
        try:
            return self._context.workshop.prepare(self._problem, self._opponent)
        except CandidateFailed as failed:
            raise LeaderFailed(failed.message) from None

    def _noise_floor(self, leader: Candidate) -> float:
        """|leader against itself| over A/A blocks, in two processes as for a candidate."""
        pairing = self._pairing(leader, leader, "measuring noise")
        passing = not self._against_reference
        pairing = replace(pairing, conventions={"A": passing, "B": passing})
        try:
            self._blocks.run(pairing, promotion.NOISE_BLOCKS)
        except CandidateFailed as failed:
            raise LeaderFailed(failed.message) from None
        noise = promotion.noise_floor(pairing.ratios)
        if self._blocks.contention() <= MAX_SHARE:
            self._context.noise.put(self._problem.digest, leader.id, noise)
        return noise

    def _pairing(self, leader: Candidate, candidate: Candidate, phase: str) -> Pairing:
        """A comparison with records of its own, so that it does not mix with the session's."""
        reference = leader.id == reference_id(self._problem)
        return Pairing(
            phase,
            leader,
            candidate,
            {"A": not reference, "B": True},
            [WorkloadRecord(r.workload, r.floor, r.sets) for r in self._records],
        )

    def _check_clocks(self) -> None:
        for record in self._records:
            judge = statistics.median(leg.net_us for leg in record.candidate)
            claimed = statistics.median(leg.runner_us for leg in record.candidate)
            # The least disturbed turn counts: a busy host delays a hand-over now and then, a lie
            # is there every time. (Ranking is by the judge's clock in any case.)
            gap = min((leg.gap_us for leg in record.candidate), key=abs)
            usual = min(abs(leg.gap_us) for leg in record.leader)
            slack = MISMATCH_SHARE * judge + MISMATCH_SLACK_US / record.sets + 2 * usual
            if abs(gap) > slack:
                raise CandidateFailed(
                    EvaluationStatus.TIMING_MISMATCH,
                    f"the process claims {claimed:.1f} us a call, the judge's clock says "
                    f"{judge:.1f} us: the two must agree.",
                )
            if impossible(judge, record.floor):
                raise CandidateFailed(
                    EvaluationStatus.BELOW_ROOFLINE,
                    f"{judge:.2f} us a call is below what this device can do: moving "
                    f"{record.floor.bytes} bytes and computing {record.floor.flops} operations "
                    f"takes {record.floor.floor_us:.2f} us at best.",
                )

    def _contended(self) -> BenchmarkResult | None:
        """The result when others used too much of the host, else ``None``."""
        share = self._blocks.contention()
        if share <= MAX_SHARE:
            return None
        return self.result(
            BenchmarkOutcome.INCONCLUSIVE,
            EvaluationStatus.PASSED,
            f"other programs used {share:.0%} of its processors while it was timed (at most "
            f"{MAX_SHARE:.0%} is tolerated). Nothing was decided; try again when the host is idle.",
        )

    def _decide(self, candidate: Candidate) -> BenchmarkResult:
        assert self._noise is not None
        decision = promotion.decide(
            self._ratios,
            noise=self._noise,
            workload_ratios={
                axes_text(self._problem.axes(r.workload)): statistics.median(r.ratios)
                for r in self._records
            },
        )
        self._decision = decision
        if decision.outcome is BenchmarkOutcome.PROMOTED:
            self._over_reference = self._compare_with_reference(candidate)
        return self.result(decision.outcome, EvaluationStatus.PASSED, decision.reason)

    def _compare_with_reference(self, candidate: Candidate) -> Interval:
        if self._against_reference:
            self._reference_us = _leader_latencies(self._records)
            return promotion.interval(self._ratios)
        reference = self._context.workshop.prepare(self._problem, reference_solution(self._problem))
        pairing = self._pairing(reference, candidate, "against the reference")
        self._blocks.run(pairing, REFERENCE_BLOCKS)
        self._reference_us = _leader_latencies(pairing.records)
        return promotion.interval(pairing.ratios)

    def result(
        self, outcome: BenchmarkOutcome, status: EvaluationStatus, reason: str
    ) -> BenchmarkResult:
        """The record of this session as far as it got."""
        decided = outcome not in (BenchmarkOutcome.INCONCLUSIVE, BenchmarkOutcome.REJECTED)
        measured = bool(self._ratios) and decided
        return BenchmarkResult(
            guard_version=GUARD_VERSION,
            problem=self._problem.name,
            problem_digest=self._problem.digest,
            solution_id=solution_id(self._solution),
            leader_id=solution_id(self._opponent),
            outcome=outcome,
            status=status,
            reason=reason,
            speedup=promotion.interval(self._ratios) if measured else None,
            speedup_over_reference=self._over_reference,
            noise_floor=self._noise,
            margin=promotion.margin(self._noise) if self._noise is not None else None,
            misses=self._decision.misses if self._decision else None,
            block_ratios=[round(r, 5) for r in self._ratios],
            performance=self._performance() if measured else {},
            isolation=self._context.isolation,
            environment_key=self._context.environment_key,
        )

    def _performance(self) -> dict[str, Performance]:
        return {
            record.workload.uuid: Performance(
                latency_us=round(statistics.median(x.net_us for x in record.candidate), 3),
                runner_latency_us=round(
                    statistics.median(x.runner_us for x in record.candidate), 3
                ),
                leader_latency_us=round(statistics.median(x.net_us for x in record.leader), 3),
                reference_latency_us=self._reference_us.get(record.workload.uuid),
                ratio=round(statistics.median(record.ratios), 5),
                floor_us=round(record.floor.floor_us, 3),
                bound=record.floor.bound,
                calls=len(record.candidate) * record.sets,
            )
            for record in self._records
            if record.candidate and record.ratios
        }


def _leader_latencies(records: list[WorkloadRecord]) -> dict[str, float]:
    return {
        record.workload.uuid: round(statistics.median(leg.net_us for leg in record.leader), 3)
        for record in records
    }
