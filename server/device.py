"""Facts of the device that this server judges on, asked of the guard once."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import anyio

from kernelarc.guard.errors import GuardUnavailable
from kernelarc.guard.schema import Environment, Isolation, Problem
from kernelarc.server.blocking import off_loop
from kernelarc.server.ports import Floor, Guard

T = TypeVar("T")

JUDGE_START_S = 40.0
"""Longest that a call waits for the judge to start; below the limit of a call."""


class DeviceFacts:
    """What does not change while the process lives, so that no call waits for a busy judge."""

    def __init__(
        self, guard: Guard, *, keep: Callable[[Environment], None] = lambda _environment: None
    ) -> None:
        """``keep`` stores the environment for those who read results later."""
        self._guard = guard
        self._keep = keep
        self._environment: Environment | None = None
        self._isolation: Isolation | None = None
        self._floors: dict[str, Mapping[str, Floor]] = {}

    async def environment(self) -> Environment:
        """Where results are made; waits for the judge to start.

        Raises:
            GuardUnavailable: The judge cannot start, or is still starting.
        """
        if self._environment is None:
            self._environment = await self._within_start(self._guard.environment)
            await off_loop(self._keep, self._environment)
        return self._environment

    async def isolation(self) -> Isolation:
        """The sandbox in force; raises as ``environment``."""
        if self._isolation is None:
            self._isolation = await self._within_start(self._guard.isolation)
        return self._isolation

    async def environment_within(self, wait_s: float) -> Environment | None:
        """As ``environment``; ``None`` when it is not known after ``wait_s``, or at all."""
        with anyio.move_on_after(wait_s):
            try:
                return await self.environment()
            except GuardUnavailable:
                return None
        return None

    async def floors_within(self, problem: Problem, wait_s: float) -> Mapping[str, Floor]:
        """Measured floors by workload uuid; empty when they are not known after ``wait_s``."""
        known = self._floors.get(problem.digest)
        if known is not None:
            return known
        with anyio.move_on_after(wait_s):
            floors = await self._guard.floors(problem)
            self._floors[problem.digest] = floors
            return floors
        return {}

    async def warm_up(self) -> None:
        """Lets the judge start; a failure is told to the first call that needs it."""
        with contextlib.suppress(GuardUnavailable):
            environment = await self._guard.environment()
            await off_loop(self._keep, environment)
            self._environment = environment

    async def _within_start(self, ask: Callable[[], Awaitable[T]]) -> T:
        with anyio.move_on_after(JUDGE_START_S):
            return await ask()
        raise GuardUnavailable("the guard's judge is still starting.")
