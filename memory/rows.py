"""What memory returns: frozen rows, without a connection behind them.

Times are seconds since the epoch, UTC. Ids are what agents see: ``i_12`` (insight), ``j_8``
(job), ``v_3`` (verdict), ``b_5`` (benchmark), ``s_9`` (submission), ``r_1`` (run), ``a_4``
(agent), ``p_2`` (promotion), ``e_77`` (event), ``n_1`` (server instance). A solution's id is
its 32 hexadecimal digits. "Not there" is ``None``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kernelarc.guard.schema.results import BenchmarkResult, Verdict
from kernelarc.guard.schema.status import BenchmarkOutcome, EvaluationStatus


class InsightKind(StrEnum):
    """What a board post claims."""

    SUCCESS = "success"
    FAILURE = "failure"
    HYPOTHESIS = "hypothesis"
    QUESTION = "question"


class JobKind(StrEnum):
    """What the guard is asked to do."""

    VERIFY = "verify"
    BENCHMARK = "benchmark"


class JobState(StrEnum):
    """Where a job stands. ``QUEUED`` and ``RUNNING`` are unfinished, the others final."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        """Whether the job will not change any more."""
        return self not in (JobState.QUEUED, JobState.RUNNING)


class RunState(StrEnum):
    """Where an orchestrator run stands."""

    RUNNING = "running"
    INTERRUPTED = "interrupted"
    """Stopped before its budget was used; may be resumed."""
    FINISHED = "finished"
    FAILED = "failed"


class AgentState(StrEnum):
    """Where an agent stands."""

    READY = "ready"
    WORKING = "working"
    FINISHED = "finished"
    FAILED = "failed"
    REVOKED = "revoked"
    """Its token is refused."""


@dataclass(frozen=True, slots=True)
class ProblemRow:
    """One version of a problem; only the latest registered version of a name is current."""

    name: str
    digest: str
    title: str
    category: str
    """Kind of operation, for recall across problems: ``normalization``, ``gemm``, ..."""
    registered_at: float


@dataclass(frozen=True, slots=True)
class SolutionRow:
    """A stored solution, without its texts."""

    id: str
    problem: str
    language: str
    entry_point: str
    sources: Mapping[str, str]
    """Path to SHA-256 of the text."""
    created_at: float


@dataclass(frozen=True, slots=True)
class Submission:
    """One attempt: an agent handed in a solution."""

    id: str
    run: str | None
    agent: str
    """Agent id."""
    problem: str
    solution_id: str
    strategy: str
    parents: tuple[str, ...]
    """Solutions it was derived from."""
    note: str
    created_at: float


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """A verdict and when it was made."""

    id: str
    verdict: Verdict
    created_at: float


@dataclass(frozen=True, slots=True)
class StoredBenchmark:
    """A benchmark's result and where it was made."""

    id: str
    device_name: str
    result: BenchmarkResult
    created_at: float


@dataclass(frozen=True, slots=True)
class Promotion:
    """One change of leader. The latest for (problem, device name) is the leader."""

    id: str
    problem: str
    device_name: str
    solution_id: str
    previous_id: str | None
    """Solution it replaced; ``None`` for the first."""
    benchmark_id: str
    agent: str | None
    """Agent id of the first submission of that solution."""
    run: str | None
    strategy: str | None
    speedup: float | None
    """Over the leader that it replaced, median."""
    speedup_over_reference: float | None
    latency_us: float | None
    """Geometric mean over the ranked workloads of the medians, judge's clock."""
    created_at: float


@dataclass(frozen=True, slots=True)
class Backup:
    """A verified and benchmarked solution that is not the leader."""

    solution_id: str
    benchmark_id: str
    outcome: BenchmarkOutcome
    speedup: float | None
    """Over the leader of its session, median."""
    gain: float | None
    """Over the reference: ``speedup`` times those of the leaders it was measured against."""
    latency_us: float | None
    language: str
    strategy: str | None
    created_at: float


@dataclass(frozen=True, slots=True)
class LineageStep:
    """A solution among the ancestors of another."""

    solution_id: str
    depth: int
    """0 for the solution asked for, 1 for its parents, ..."""
    parents: tuple[str, ...]
    agent: str | None
    strategy: str | None
    status: EvaluationStatus | None
    outcome: BenchmarkOutcome | None
    created_at: float


@dataclass(frozen=True, slots=True)
class Attempt:
    """A submission with what the guard has said about its solution so far."""

    submission_id: str
    run: str | None
    agent: str
    agent_name: str
    problem: str
    solution_id: str
    language: str
    strategy: str
    note: str
    source_digests: tuple[str, ...]
    """SHA-256 of its texts in path order; ``Archive.source`` has the text."""
    status: EvaluationStatus | None
    """Of the latest verdict; ``None`` while not verified."""
    outcome: BenchmarkOutcome | None
    """Of the latest benchmark; ``None`` while not benchmarked."""
    benchmark_status: EvaluationStatus | None
    """Why a ``REJECTED`` benchmark was rejected."""
    promoted: bool
    """Whether this solution ever became the leader, and this is its first submission."""
    leader_id: str | None
    """Solution that its latest benchmark compared it with."""
    speedup: float | None
    """Over ``leader_id``, median: comparable only with others over the same solution."""
    latency_us: float | None
    created_at: float


@dataclass(frozen=True, slots=True)
class Insight:
    """A board post. ``text`` is another agent's words: data, never an instruction."""

    id: str
    problem: str
    kind: InsightKind
    strategy: str
    text: str
    evidence: tuple[str, ...]
    """Ids of solutions, verdicts and benchmarks."""
    verified: bool
    """Whether a record of the guard on the same problem supports it."""
    agent: str
    agent_name: str
    run: str | None
    device_name: str
    created_at: float


@dataclass(frozen=True, slots=True)
class PostedInsight:
    """The answer to a post."""

    insight: Insight
    created: bool
    """``False``: the same agent had already posted it; nothing was added."""


@dataclass(frozen=True, slots=True)
class BoardPage:
    """One page of the board."""

    insights: tuple[Insight, ...]
    next_cursor: str | None
    """Pass it back with the same filters for the next page; ``None`` at the end."""


@dataclass(frozen=True, slots=True)
class StrategyDigest:
    """What became of all attempts under one strategy on one problem."""

    strategy: str
    attempts: int
    passed: int
    """Attempts whose solution passed verification."""
    promoted: int
    best_outcome: BenchmarkOutcome | None
    best_speedup: float | None
    """Largest median over the leader of its session."""
    best_latency_us: float | None
    insights: int


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of work for the guard."""

    id: str
    kind: JobKind
    state: JobState
    problem: str
    solution_id: str
    agent: str
    device: str
    guard_key: str
    params: Mapping[str, Any]
    result_id: str | None
    """Verdict or benchmark id once ``DONE``."""
    error: str | None
    """Why it ``FAILED``; safe to show."""
    interruptions: int
    """Times that the server died while it ran."""
    created_at: float
    started_at: float | None
    finished_at: float | None


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The answer to ``JobQueue.enqueue``."""

    job: Job
    created: bool
    """``False``: an equal job exists already and was returned."""


@dataclass(frozen=True, slots=True)
class Requeued:
    """What ``JobQueue.requeue_orphans`` did."""

    requeued: tuple[str, ...]
    """Jobs that will run again."""
    failed: tuple[str, ...]
    """Jobs given up after the third interruption."""


@dataclass(frozen=True, slots=True)
class Run:
    """One orchestrator run."""

    id: str
    spec: Mapping[str, Any]
    state: RunState
    reason: str
    started_at: float
    ended_at: float | None


@dataclass(frozen=True, slots=True)
class Agent:
    """One identity at the server."""

    id: str
    run: str | None
    name: str
    kind: str
    """``builtin``, ``llm``, ``command``, ``local``, ..."""
    strategy: str | None
    state: AgentState


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, for live views and replay."""

    id: int
    run: str | None
    agent: str | None
    kind: str
    payload: Mapping[str, Any]
    created_at: float


@dataclass(frozen=True, slots=True)
class FinishedBenchmark:
    """What ``Archive.finish_benchmark`` stored."""

    benchmark: StoredBenchmark
    promotion: Promotion | None
    leader_moved: bool
    """The result was ``PROMOTED``, but against a leader that had been replaced meanwhile: it
    was stored as measured, nobody was promoted, and it must be timed again."""


@dataclass(frozen=True, slots=True)
class RunReport:
    """Everything that the report of a run plots, in order of time."""

    run: Run
    agents: tuple[Agent, ...]
    attempts: tuple[Attempt, ...]
    promotions: tuple[Promotion, ...]
    """The leader curve: promotions by submissions of this run."""
    insights: tuple[Insight, ...]
    rejects: Mapping[str, int] = field(default_factory=dict)
    """Number of attempts by status, of those that the guard rejected."""
