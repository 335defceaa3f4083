"""A real guard for tests: one judge process per session, driven from synchronous tests."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal

from kernelarc.guard.errors import KernelArcError
from kernelarc.guard.pipeline import Guard, GuardSettings, open_guard
from kernelarc.guard.schema import BenchmarkResult, Problem, Solution, Verdict


class Judge:
    """Synchronous face of a ``Guard``."""

    def __init__(self, guard: Guard, portal: BlockingPortal) -> None:
        self.guard = guard
        self._portal = portal

    def verify(self, problem: Problem, solution: Solution) -> Verdict:
        return self.call(self.guard.verify, problem, solution)

    def benchmark(
        self, problem: Problem, solution: Solution, leader: Solution | None = None
    ) -> BenchmarkResult:
        return self.call(self.guard.benchmark, problem, solution, leader)

    def call(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        return self._portal.call(functools.partial(function, *arguments, **named))


@pytest.fixture(scope="session")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    pytest.importorskip("torch")
    settings = GuardSettings(
        home=tmp_path_factory.mktemp("home"),
        isolation="none",
        call_timeout_s=6.0,
        compile_timeout_s=20.0,
    )
    with (
        pytest.MonkeyPatch.context() as patched,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(open_guard(settings)) as guard,
    ):
        # The judge starts with the first call, and inherits it.
        patched.setenv("KERNELARC_TEST_SECRET", "hunter2")
        yield Judge(guard, portal)


__all__ = ["Judge", "KernelArcError"]
