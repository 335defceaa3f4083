"""What the tools work with, and how long it lives."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

from kernelarc.guard import problems as builtin_problems
from kernelarc.guard.errors import NotPermitted, UnknownProblem
from kernelarc.guard.pipeline import GuardSettings, open_guard
from kernelarc.guard.schema import Problem
from kernelarc.memory.archive import Archive, open_archive
from kernelarc.memory.rows import Agent
from kernelarc.server.blocking import off_loop
from kernelarc.server.device import DeviceFacts
from kernelarc.server.guidance import UNSPECIFIED, History, Standing, category
from kernelarc.server.identity import agent_of_pipe, caller
from kernelarc.server.jobs import JobRunner
from kernelarc.server.ports import Guard, ProblemSet
from kernelarc.server.settings import ServerSettings
from kernelarc.strategies import catalogue as playbooks
from kernelarc.strategies.catalogue import Catalogue


@dataclass(frozen=True)
class Services:
    """Everything a tool may use. One object per process, shared by all connections."""

    settings: ServerSettings
    archive: Archive
    device: DeviceFacts
    problems: ProblemSet
    catalogue: Catalogue
    history: History
    jobs: JobRunner
    local: Agent
    """The caller where no token comes with a request."""

    async def caller(self) -> Agent:
        """The agent that made the request which is being handled."""
        return await caller(self.archive, self.local)

    async def problem(self, name: str) -> Problem:
        """The problem, registered in the archive in this process's version.

        Raises:
            UnknownProblem: There is none; the text lists those with workloads for this device.
        """
        if name not in (known := self.problems.names()):
            device = self.settings.device
            raise UnknownProblem(name, [n for n in known if self.problems.get(n).ranked(device)])
        problem = self.problems.get(name)
        await off_loop(self.archive.catalogue.register_problem, problem)
        return problem

    def strategy(self, name: str, problem: Problem) -> str:
        """The id of a strategy that an agent names; blank is ``unspecified``.

        Raises:
            RequestError: There is no such strategy; the text lists those that fit the problem.
        """
        cleaned = name.strip()
        if cleaned in ("", UNSPECIFIED):
            return UNSPECIFIED
        fitting = self.catalogue.applicable(category(problem), self.settings.device)
        return self.catalogue.get(cleaned, offer=[strategy.id for strategy in fitting]).id

    async def standing(self, problem: Problem) -> Standing:
        """The plateau rule's view of ``problem`` now; ``GuardUnavailable`` without a judge."""
        environment = await self.device.environment()
        return await off_loop(
            self.history.standing,
            problem,
            device=self.settings.device,
            device_name=environment.device_name,
        )


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

    Raises:
        NotPermitted: The guard's static screen is off: verdicts made so must not be stored.
    """
    if not guard.screens:
        raise NotPermitted(
            "a guard without its static screen is for `kernelarc selftest` only: its verdicts "
            "are never stored. Open the guard with screen=True."
        )
    instance = await off_loop(archive.register_instance)
    device = DeviceFacts(guard, keep=archive.results.record_environment)
    services = Services(
        settings=settings,
        archive=archive,
        device=device,
        problems=problems,
        catalogue=catalogue,
        history=History(archive, catalogue, settings.plateau),
        jobs=JobRunner(archive, instance, guard, device, problems, settings.device),
        local=local,
    )
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(device.warm_up)
            tasks.start_soon(services.jobs.run)
            yield services
            tasks.cancel_scope.cancel()
    finally:
        instance.close()
