"""Runs samples against a guard, one after the other, and looks at what each left behind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from time import monotonic

import anyio.to_thread

from kernelarc.guard.errors import RequestError, ToolchainMissing, UnsupportedLanguage, WorkerLost
from kernelarc.guard.pipeline import Guard, Progress
from kernelarc.guard.schema import BenchmarkOutcome, EvaluationStatus, Isolation, JudgeState
from kernelarc.guard.selftest import remains
from kernelarc.guard.selftest.sample import Sample
from kernelarc.guard.selftest.tally import Row

PROBE_EVERY = 10
"""Samples between two judgements of the probe: an honest sample, whose verdict must not change."""
PROBE_TIMES = 3
"""Judgements of the probe at the start, whose slowest is what later ones are compared with."""
PROBE_SLOWER = 2.0
"""By so much the fastest of as many may be slower later: a host's noise is no trace of a sample."""
ATTEMPTS = 3
"""Benchmarks of a sample at most: an inconclusive one says something of the host, not of it."""


class Suite:
    """A run of samples. The guard must be this suite's alone."""

    def __init__(self, guard: Guard, probe: Sample) -> None:
        self._guard = guard
        self._screen = guard.screens
        self._probe = probe
        self._probe_verdict = ""
        self._probe_s = 0.0
        self._since_probe = 0

    async def run(
        self, samples: Sequence[Sample], progress: Progress | None = None
    ) -> AsyncIterator[Row]:
        """Judge the samples.

        Yields:
            One row a sample, and one for the probe where its verdict is another at the end.

        Raises:
            GuardUnavailable: there is no judge on this host, or none any more.
        """
        isolation = await self._guard.isolation()
        self._probe_verdict, _ = await self._judge_probe()  # compiles it, too
        self._probe_s = max([(await self._judge_probe())[1] for _ in range(PROBE_TIMES)])
        before = await self._trace(isolation)
        for sample in samples:
            row = await self._judge(sample, progress)
            if row.skipped is not None:
                yield row
                continue
            after = await self._trace(isolation, before)
            left = [*row.left, *remains.differences(before, after)]
            before = after  # what one left is not held against the next
            self._since_probe += 1
            if left or self._since_probe >= PROBE_EVERY:
                left += await self._probe_again()
            yield row.model_copy(update={"left": left, "as_expected": row.as_expected and not left})
        if self._since_probe and (left := await self._probe_again()):
            probe = self._probe
            yield Row(
                name=probe.name,
                kind=probe.kind,
                expected=["PASSED"],
                got="another verdict or time",
                as_expected=False,
                left=left,
            )

    async def _judge(self, sample: Sample, progress: Progress | None) -> Row:
        wanted = sample.expected(screen=self._screen)
        expected = _shown(sample, wanted)
        row = Row(
            name=sample.name, kind=sample.kind, expected=expected, got=None, as_expected=False
        )
        if sample.expectation.device != self._guard.settings.device:
            return row.model_copy(update={"skipped": f"needs a {sample.expectation.device} device"})
        began = monotonic()
        changes: dict[str, object]
        try:
            got, message = await self._outcome(sample, progress)
            changes = {"got": got, "message": message, "as_expected": got in expected}
        except (ToolchainMissing, UnsupportedLanguage) as missing:
            changes = {"skipped": str(missing)}
        except RequestError as refused:
            changes = {"got": type(refused).__name__, "message": str(refused)}
        except WorkerLost as lost:
            # The worst that a candidate can do to its judge; the next call starts another.
            changes = {"got": type(lost).__name__, "left": [str(lost)], "message": str(lost)}
        return row.model_copy(update=changes | {"seconds": round(monotonic() - began, 2)})

    async def _outcome(self, sample: Sample, progress: Progress | None) -> tuple[str, str]:
        """What the guard said: a status, or where it was timed and not rejected, an outcome."""
        verdict = await self._guard.verify(sample.problem, sample.solution, progress)
        if sample.expectation.stage == "verify" or not verdict.passed:
            return verdict.status.value, verdict.message
        for _ in range(ATTEMPTS):
            result = await self._guard.benchmark(
                sample.problem, sample.solution, sample.leader, progress
            )
            if result.outcome is not BenchmarkOutcome.INCONCLUSIVE:
                break
        if result.outcome is BenchmarkOutcome.REJECTED:
            return result.status.value, result.reason
        return result.outcome.value, result.reason

    async def _trace(
        self, isolation: Isolation, before: remains.Trace | None = None
    ) -> remains.Trace:
        state: JudgeState = await self._guard.judge_state()
        home = self._guard.settings.home
        if before is None:
            return await anyio.to_thread.run_sync(remains.take, state, isolation, home)
        return await anyio.to_thread.run_sync(remains.settled, before, state, isolation, home)

    async def _probe_again(self) -> list[str]:
        since, self._since_probe = self._since_probe, 0
        limit = PROBE_SLOWER * self._probe_s
        fastest = float("inf")
        try:
            for _ in range(PROBE_TIMES):
                verdict, seconds = await self._judge_probe()
                if verdict != self._probe_verdict:
                    return [
                        f"{self._probe.name} gets another verdict since one of the last "
                        f"{since} samples"
                    ]
                fastest = min(fastest, seconds)
                if fastest <= limit:
                    return []
        except WorkerLost as lost:
            return [f"{self._probe.name} cannot be judged any more: {lost}"]
        return [
            f"{self._probe.name} takes {fastest:.2f} s to judge since one of the last {since} "
            f"samples, and took at most {self._probe_s:.2f} s before"
        ]

    async def _judge_probe(self) -> tuple[str, float]:
        """Verdict of the probe, and seconds that it took."""
        began = monotonic()
        verdict = await self._guard.verify(self._probe.problem, self._probe.solution)
        return verdict.model_dump_json(), monotonic() - began


def _shown(sample: Sample, wanted: Sequence[EvaluationStatus]) -> list[str]:
    """Right answers; where a benchmark ends well, its outcomes stand for ``PASSED``."""
    if sample.expectation.stage == "verify":
        return [status.value for status in wanted]
    statuses = [s.value for s in wanted if s is not EvaluationStatus.PASSED]
    return [*statuses, *(outcome.value for outcome in sample.expectation.outcomes)]
