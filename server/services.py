"""What the tools work with, and how long it lives."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

from kernelarc.guard import problems as builtin_problems
from kernelarc.guard.errors import GuardUnavailable
from kernelarc.guard.pipeline import GuardSettings, open_guard
from kernelarc.guard.schema import Environment, Problem
from kernelarc.memory.archive import Archive, open_archive
from kernelarc.memory.rows import Agent
from kernelarc.server.blocking import off_loop
from kernelarc.server.identity import agent_of_pipe, caller
from kernelarc.server.jobs import JobRunner
from kernelarc.server.ports import Guard, ProblemSet
from kernelarc.server.settings import ServerSettings
from kernelarc.strategies import catalogue as playbooks
from kernelarc.strategies.catalogue import Catalogue

JUDGE_START_S = 40.0
"""Longest that a call waits for the judge to start; below the limit of a call."""


@dataclass(frozen=True)
class Services:
    """Everything a tool may use. One object per process, shared by all connections."""

    settings: ServerSettings
    archive: Archive
    guard: Guard
    problems: ProblemSet
    catalogue: Catalogue
    jobs: JobRunner
    local: Agent
    """The caller where no token comes with a request."""

    async def caller(self) -> Agent:
        """The agent that made the request which is being handled."""
        return await caller(self.archive, self.local)

    async def environment(self) -> Environment:
        """The guard's environment; starts the judge if need be.

        Raises:
            GuardUnavailable: The judge cannot start, or is still starting.
        """
        with anyio.move_on_after(JUDGE_START_S):
            return await self.guard.environment()
        raise GuardUnavailable("the guard's judge is still starting.")

    async def problem(self, name: str) -> Problem:
        """The problem, registered in the archive in this process's version."""
        problem = self.problems.get(name)
        await off_loop(self.archive.catalogue.register_problem, problem)
        return problem


@asynccontextmanager
async def open_services(
    settings: ServerSettings, *, token: str | None = None
) -> AsyncIterator[Services]:
    """The services of one server process: archive, guard, playbooks and a running worker.

    Args:
        settings: The server's settings.
        token: Token of the agent that works on a pipe; ``None``: the agent ``local``.

    Raises:
        BoardError: The database cannot be opened.
        NotPermitted: ``token`` belongs to no agent.
    """
    settings.database.parent.mkdir(parents=True, exist_ok=True)
    guard_settings = GuardSettings(
        home=settings.home, device=settings.device, isolation=settings.isolation
    )
    archive = await off_loop(open_archive, settings.database)
    try:
        local = await off_loop(agent_of_pipe, archive, token)
        async with (
            open_guard(guard_settings) as guard,
            run_services(
                settings,
                archive=archive,
                guard=guard,
                problems=builtin_problems,
                catalogue=playbooks.load(),
                local=local,
            ) as services,
        ):
            yield services
    finally:
        archive.close()


@asynccontextmanager
async def run_services(
    settings: ServerSettings,
    *,
    archive: Archive,
    guard: Guard,
    problems: ProblemSet,
    catalogue: Catalogue,
    local: Agent,
) -> AsyncIterator[Services]:
    """Services over given parts, with a worker that runs until the block is left.

    The judge begins to start in the background, so that the first verdict comes sooner.
    """
    instance = await off_loop(archive.register_instance)
    jobs = JobRunner(archive, instance, guard, problems, settings.device)
    services = Services(settings, archive, guard, problems, catalogue, jobs, local)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_warm_up, guard)
            tasks.start_soon(jobs.run)
            yield services
            tasks.cancel_scope.cancel()
    finally:
        instance.close()


async def _warm_up(guard: Guard) -> None:
    try:
        await guard.environment()
    except GuardUnavailable:
        return  # the first call that needs the judge says so to whoever made it
