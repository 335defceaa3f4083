"""The promotion rule: a pure function of measured blocks.

A block is an interleaved ABBA (or BAAB) comparison of the leader A with the candidate B in one
session; its value is the ratio of geometric means, candidate / leader. A candidate is promoted if

* at most ``MAX_MISSES`` of ``BLOCKS`` blocks miss ``ratio < 1 - margin``, and
* the median gain is at least ``MINIMUM_GAIN``, and
* no ranked workload's median ratio is above ``1 + MAX_REGRESSION``.

If the true block median is not better than the margin, each block is a miss with probability at
least one half, whatever the distribution of the noise. The chance of at most 2 misses in 22
independent blocks is then at most sum(C(22, k), k <= 2) / 2**22 = 254 / 4194304 = 6.1e-5, and
stopping at the third miss does not raise it. The other conditions only lower it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelarc.guard.schema.results import Interval
from kernelarc.guard.schema.status import BenchmarkOutcome

SCREEN_BLOCKS = 3
BLOCKS = 22
MAX_MISSES = 2
MINIMUM_MARGIN = 0.005
MINIMUM_GAIN = 0.01
MAX_REGRESSION = 0.02
NOISE_BLOCKS = 20
NOISE_QUANTILE = 0.95
MAX_NOISE = 0.50
"""Above this noise floor nothing is decided: the host is too busy to compare kernels."""


@dataclass(frozen=True)
class Decision:
    """Outcome of the rule, with the numbers that led to it."""

    outcome: BenchmarkOutcome
    reason: str
    misses: int


def noise_floor(aa_ratios: Sequence[float]) -> float:
    """95th percentile of |ratio - 1| of leader-against-itself blocks (nearest rank)."""
    if len(aa_ratios) < NOISE_BLOCKS:
        raise ValueError(f"{len(aa_ratios)} A/A blocks; the noise floor needs {NOISE_BLOCKS}")
    deviations = sorted(abs(math.log(r)) for r in aa_ratios)
    rank = math.ceil(NOISE_QUANTILE * len(deviations))
    return math.expm1(float(deviations[rank - 1]))


def margin(noise: float) -> float:
    """d0: what a block has to gain before it counts as a gain."""
    return max(MINIMUM_MARGIN, noise)


def misses(ratios: Sequence[float], d0: float) -> int:
    """Blocks that did not gain more than ``d0``."""
    return sum(1 for r in ratios if not r < 1 - d0)


def screening(ratios: Sequence[float], *, noise: float | None) -> Decision | None:
    """The decision of the screening blocks, or ``None`` if the candidate goes on.

    It goes on if all of them show a gain. It is called slower only if all of them show that, by
    more than the noise: their own range where the noise floor is not known yet.
    """
    if all(r < 1 for r in ratios):
        return None
    missed = misses(ratios, 0)
    spread = max(ratios) / min(ratios) - 1
    if min(ratios) > 1 + margin(spread if noise is None else noise):
        return Decision(
            BenchmarkOutcome.BACKUP,
            f"correct but slower: {statistics.median(ratios):.3f}x the leader's time "
            f"({len(ratios)} screening blocks, {min(ratios):.3f}x to {max(ratios):.3f}x).",
            missed,
        )
    return Decision(
        BenchmarkOutcome.TIE,
        f"no gain in screening: {missed} of {len(ratios)} blocks were not faster than the leader "
        f"({min(ratios):.3f}x to {max(ratios):.3f}x its time), and all have to be before it is "
        "measured further.",
        missed,
    )


def interval(ratios: Sequence[float]) -> Interval:
    """Speed-up (1 / ratio) with its distribution-free order-statistic interval.

    The interval is the narrowest symmetric pair of order statistics whose exact binomial coverage
    is at least 98 %; with fewer than 7 blocks it is the whole range and says its coverage.
    For 22 blocks: ranks 6 and 17, coverage 0.9831.
    """
    ordered = sorted(1 / r for r in ratios)
    count = len(ordered)
    rank = 1
    for candidate in range(2, count // 2 + 1):
        if _coverage(count, candidate) < 0.98:
            break
        rank = candidate
    return Interval(
        median=statistics.median(ordered),
        low=ordered[rank - 1],
        high=ordered[count - rank],
        coverage=_coverage(count, rank),
        blocks=count,
    )


def _coverage(count: int, rank: int) -> float:
    outside = sum(math.comb(count, k) for k in range(rank)) * 2
    return max(0.0, 1.0 - outside / float(2**count))


def decide(
    ratios: Sequence[float], *, noise: float, workload_ratios: Mapping[str, float]
) -> Decision:
    """Apply the rule to the confirmation blocks.

    Args:
        ratios: Candidate / leader time of each block, in order; ``BLOCKS`` of them, or fewer
            when the session stopped early at the third miss.
        noise: Noise floor of this problem, see ``noise_floor``.
        workload_ratios: Median ratio of each ranked workload, by a name fit to show.
    """
    d0 = margin(noise)
    missed = misses(ratios, d0)
    median = statistics.median(ratios)
    if noise > MAX_NOISE:
        return Decision(
            BenchmarkOutcome.INCONCLUSIVE,
            f"the leader against itself varies by {noise:.1%} here, above {MAX_NOISE:.0%}: the "
            "host is too busy to compare kernels. Nothing was decided; try again when it is idle.",
            missed,
        )
    if missed > MAX_MISSES or len(ratios) < BLOCKS:
        return _not_promoted(ratios, d0, missed, median)
    if median > 1 - MINIMUM_GAIN:
        return Decision(
            BenchmarkOutcome.TIE,
            f"faster by {1 / median - 1:.2%}, below the smallest gain that is promoted "
            f"({MINIMUM_GAIN:.0%}).",
            missed,
        )
    worst = max(workload_ratios, key=lambda name: workload_ratios[name])
    if workload_ratios[worst] > 1 + MAX_REGRESSION:
        return Decision(
            BenchmarkOutcome.BACKUP,
            f"faster overall, but {workload_ratios[worst] - 1:.1%} slower on {worst}; a leader may "
            f"not lose more than {MAX_REGRESSION:.0%} on any ranked workload.",
            missed,
        )
    return Decision(
        BenchmarkOutcome.PROMOTED,
        f"{len(ratios) - missed} of {len(ratios)} blocks gained more than the margin of {d0:.1%}; "
        f"median speed-up {1 / median:.3f}x over the leader.",
        missed,
    )


def _not_promoted(ratios: Sequence[float], d0: float, missed: int, median: float) -> Decision:
    if median > 1 + d0:
        return Decision(
            BenchmarkOutcome.BACKUP,
            f"correct but slower: {median:.3f}x the leader's time "
            f"(median of {len(ratios)} blocks).",
            missed,
        )
    return Decision(
        BenchmarkOutcome.TIE,
        f"no gain beyond the noise: {missed} of {len(ratios)} blocks did not gain the margin of "
        f"{d0:.1%}, and at most {MAX_MISSES} of {BLOCKS} may. Median {1 / median:.3f}x.",
        missed,
    )
