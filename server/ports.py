"""What the server needs from the guard and from the set of problems, as protocols."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from kernelarc.guard.schema import (
    BenchmarkResult,
    Environment,
    Isolation,
    Problem,
    Solution,
    Verdict,
)

Progress = Callable[[str, int, int], None]
"""Phase, done, total; a total of 0 is unknown."""


class Floor(Protocol):
    """The physical floor of one workload on this device, measured."""

    @property
    def floor_us(self) -> float:
        """Time below which no kernel can go, microseconds."""

    @property
    def bound(self) -> str:
        """``memory`` or ``compute``."""


class Guard(Protocol):
    """The referee. A candidate's failure is in the record; errors are ``GuardUnavailable``.

    Cancelling a call kills the candidate.
    """

    @property
    def screens(self) -> bool:
        """Whether the static screen is on; without it, it is no guard for a server."""

    async def environment(self) -> Environment:
        """Where results are made; starts the judge when it is not running."""

    async def isolation(self) -> Isolation:
        """The sandbox in force."""

    async def verify(
        self, problem: Problem, solution: Solution, progress: Progress | None = None
    ) -> Verdict:
        """Compiles the solution and compares it with the reference."""

    async def benchmark(
        self,
        problem: Problem,
        solution: Solution,
        leader: Solution | None,
        progress: Progress | None = None,
    ) -> BenchmarkResult:
        """Times the solution against the leader; ``None`` stands for the reference."""

    async def floors(self, problem: Problem) -> Mapping[str, Floor]:
        """The floors of the ranked workloads, by uuid."""


class ProblemSet(Protocol):
    """Where problems come from; the module ``kernelarc.guard.problems`` is one."""

    def names(self) -> list[str]:
        """Names of all problems, sorted."""

    def get(self, name: str) -> Problem:
        """The problem of that name; ``UnknownProblem`` otherwise."""
