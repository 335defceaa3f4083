"""What the guard says about a solution. Pure data: pydantic, no torch.

Units are in the names. "Not measured" is ``None``, never zero.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from kernelarc.guard.schema.status import BenchmarkOutcome, EvaluationStatus

RESULT_FORMAT = 1
"""Version of the persisted form of ``Verdict`` and ``BenchmarkResult``."""


class Record(BaseModel):
    """Base of the result records: frozen, unknown keys refused, docstrings are descriptions."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Wall(Record):
    """One wall of the sandbox, as tested on this host by an attempt to climb it."""

    name: str
    """``landlock``, ``seccomp``, ``uid``, ``pid_namespace``, ``net_namespace``, ..."""
    stands: bool
    detail: str
    """What was tried and what the kernel answered."""


class Isolation(Record):
    """The sandbox in force while a result was made."""

    level: Literal["full", "reduced", "none"]
    """``full``: every wall of this platform stands. ``reduced``: candidates cannot read or
    write outside their folder, nor reach the network or the judge, but some wall is missing.
    ``none``: less than that; the server refuses to judge unless it was told to."""
    walls: list[Wall]


class Environment(Record):
    """Where a result was made. Timings compare only inside one ``key``."""

    device: str
    """``cpu`` or ``cuda``."""
    device_name: str
    """Model as the system names it."""
    device_id: str
    """Stable id of this physical device (GPU UUID; for the CPU a digest of the machine id)."""
    guard_version: str
    versions: dict[str, str]
    """Compiler and library versions that can change a timing: torch, g++, triton, python, ..."""
    threads: int
    """Hardware threads that candidates may use."""
    copy_gbps: float | None = None
    """Measured copy bandwidth, reads plus writes, GB/s."""
    peak_gflops: float | None = None
    """Measured fp32 matrix-multiply rate, GFLOP/s."""
    key: str
    """Digest of all the above that must be equal before two timings may be compared."""


class JudgeState(Record):
    """What no candidate may change of the judge's process; the selftest compares it."""

    pid: int
    folder: str
    """Its current directory."""
    processors: list[int]
    """Those that it may run on."""
    limits: dict[str, tuple[int, int]]
    """Soft and hard resource limits."""
    environment: str
    """Digest of its environment variables."""
    descriptors: int
    """How many are open."""


class Correctness(Record):
    """Largest errors over all outputs and input families of one workload."""

    max_absolute_error: float | None = None
    max_relative_error: float | None = None
    """Absolute error over the larger of |expected| and the output's root mean square."""
    mismatched: int = 0
    """Elements outside the tolerance."""
    total: int = 0
    """Elements compared."""


class Performance(Record):
    """Timing of one workload. Latencies are medians over all timed calls, microseconds."""

    latency_us: float
    """Judge's clock, null call subtracted."""
    runner_latency_us: float
    """The runner's own clock: finer, but the candidate could forge it."""
    leader_latency_us: float
    """The leader's, in the same interleaved session."""
    reference_latency_us: float | None = None
    """The reference's, in the same session; measured when the solution was promoted."""
    ratio: float
    """Median over blocks of candidate time / leader time; below 1 is faster."""
    floor_us: float | None = None
    """Physical floor: bytes over measured bandwidth, FLOPs over measured peak."""
    bound: Literal["memory", "compute"] | None = None
    calls: int
    """Timed calls per arm; the output of each was verified."""


class Evaluation(Record):
    """The result of one solution on one workload."""

    workload: str
    """uuid of the workload; ``hidden`` for an unranked neighbour shape."""
    axes: dict[str, int] | None = None
    """Axis values; absent for a hidden shape."""
    status: EvaluationStatus
    message: str = ""
    """What was wrong, in words that an agent can act on."""
    correctness: Correctness | None = None


class CompileFacts(Record):
    """What the compiler said."""

    compiler: str
    flags: list[str] = Field(default_factory=list)
    log: str = ""
    """Warnings and errors, cut to head and tail."""
    binary_bytes: int | None = None


class Verdict(Record):
    """The fold of all evaluations of a solution by one guard version.

    Equal solutions judged twice by one guard give equal bytes: no timing is in here.
    """

    format: int = RESULT_FORMAT
    guard_version: str
    problem: str
    problem_digest: str = ""
    """Digest of definition, workloads and contract: a verdict holds for these only."""
    solution_id: str
    language: str
    status: EvaluationStatus
    message: str
    """One paragraph: the first failure, or what was checked."""
    evaluations: list[Evaluation]
    compile: CompileFacts | None = None
    labels: list[str] = Field(default_factory=list)
    """Observations that are not failures: ``bitwise-nondeterministic``, ``interpreted``, ..."""
    isolation: Isolation
    environment_key: str

    @property
    def passed(self) -> bool:
        """Whether this verdict can make a leader."""
        return self.status is EvaluationStatus.PASSED

    @model_validator(mode="after")
    def _status_is_the_fold(self) -> Self:
        failed = [e for e in self.evaluations if e.status is not EvaluationStatus.PASSED]
        if self.status is EvaluationStatus.PASSED and (failed or not self.evaluations):
            raise ValueError("a verdict cannot pass with a failed evaluation or with none")
        return self


class Interval(Record):
    """A median with its order-statistic interval (distribution-free, exact coverage)."""

    median: float
    low: float
    high: float
    coverage: float
    """Probability that the interval holds the true median, e.g. 0.983."""
    blocks: int


class BenchmarkResult(Record):
    """The outcome of timing a verified solution against the leader."""

    format: int = RESULT_FORMAT
    guard_version: str
    problem: str
    problem_digest: str = ""
    solution_id: str
    leader_id: str
    """Solution it was compared with: the leader when the session began."""
    outcome: BenchmarkOutcome
    status: EvaluationStatus
    """``PASSED`` unless the outcome is ``REJECTED``."""
    reason: str
    """One sentence: why this outcome, and what would change it."""
    speedup: Interval | None = None
    """Leader time / candidate time over the confirmation blocks (or the screening blocks when
    it did not get further)."""
    speedup_over_reference: Interval | None = None
    """Reference time / candidate time, measured in the same session when promoted."""
    noise_floor: float | None = None
    """95th percentile of |leader against itself - 1| over the A/A blocks of this problem."""
    margin: float | None = None
    """d0: what a block must gain to count, ``max(0.005, noise_floor)``."""
    misses: int | None = None
    """Blocks that did not gain the margin."""
    block_ratios: list[float] = Field(default_factory=list)
    """Candidate / leader time of each block, in order."""
    performance: dict[str, Performance] = Field(default_factory=dict)
    """By workload uuid."""
    isolation: Isolation
    environment_key: str

    @model_validator(mode="after")
    def _outcome_fits_status(self) -> Self:
        rejected = self.outcome is BenchmarkOutcome.REJECTED
        if rejected == (self.status is EvaluationStatus.PASSED):
            raise ValueError("a benchmark is REJECTED exactly when its status is not PASSED")
        if self.outcome is BenchmarkOutcome.PROMOTED and self.speedup is None:
            raise ValueError("a promotion needs its measured speed-up")
        return self


class AdmissionCheck(Record):
    """One wrong answer that a problem's tolerance must refuse."""

    name: str
    """``zeros``, ``ones``, ``mean``, ``copy:x``, ``low-precision``, ``drop:weight``, ..."""
    refused: bool
    detail: str


class AdmissionReport(Record):
    """Whether a problem may be used: every wrong answer must fail, the honest one must pass."""

    problem: str
    admitted: bool
    checks: list[AdmissionCheck]
