"""A server over a real archive, real playbooks and real problems; only the guard is scripted."""

import contextlib
import re
from dataclasses import dataclass, field

import anyio
import pytest
from mcp import Client

from kernelarc.guard import problems
from kernelarc.guard.errors import DeviceBusy, RequestError, WorkerLost
from kernelarc.guard.roofline import Floor
from kernelarc.guard.schema import (
    BenchmarkOutcome,
    BenchmarkResult,
    CompileFacts,
    Environment,
    Evaluation,
    EvaluationStatus,
    Interval,
    Isolation,
    Performance,
    Verdict,
    reference_solution,
    solution_id,
)
from kernelarc.guard.version import GUARD_VERSION
from kernelarc.memory.archive import open_archive
from kernelarc.server.app import build_server
from kernelarc.server.services import run_services
from kernelarc.server.settings import ServerSettings
from kernelarc.strategies import catalogue

ISOLATION = Isolation(level="full", walls=[])
"""What the scripted guard calls the reference when nobody leads."""


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(params=["auto", "legacy"])
def era(request):
    """The stateless protocol, and the one with a handshake."""
    return request.param


@dataclass
class ScriptedGuard:
    """Does what the candidate's first lines say: ``// verdict: S``, ``// outcome: O``,
    ``// raises: X``, ``// waits``. Everything else about it is honest: records, progress,
    cancellation."""

    screens: bool = True
    verified: list[str] = field(default_factory=list)
    timed: list[tuple[str, str | None]] = field(default_factory=list)
    killed: list[str] = field(default_factory=list)
    started: anyio.Event = field(default_factory=anyio.Event)
    death: anyio.Event = field(default_factory=anyio.Event)
    gate: anyio.Event = field(default_factory=anyio.Event)
    while_timing: list = field(default_factory=list)
    """Callables, one for each benchmark, run before its result is returned."""
    busy: int = 0
    """How many more times the device is held by somebody else."""

    async def environment(self):
        return Environment(
            device="cpu",
            device_name="Scripted CPU",
            device_id="d0",
            guard_version=GUARD_VERSION,
            versions={},
            threads=2,
            key="k0",
        )

    async def isolation(self):
        return ISOLATION

    async def floors(self, problem):
        floor = Floor(floor_us=10.0, bound="memory", bytes=1, flops=1)
        return {workload.uuid: floor for workload in problem.ranked("cpu")}

    async def verify(self, problem, solution, progress=None):
        identity = solution_id(solution)
        self.verified.append(identity)
        await self._obey(solution, progress)
        status = EvaluationStatus(self._said(solution, "verdict") or "PASSED")
        passed = status is EvaluationStatus.PASSED
        evaluations = [
            Evaluation(
                workload=workload.uuid,
                axes=problem.axes(workload),
                status=status,
                message="" if passed else f"wrong at {workload.uuid[:4]}",
            )
            for workload in problem.ranked("cpu")
        ]
        return Verdict(
            guard_version=GUARD_VERSION,
            problem=problem.name,
            problem_digest=problem.digest,
            solution_id=identity,
            language=solution.language,
            status=status,
            message="checked" if passed else evaluations[0].message,
            evaluations=evaluations,
            compile=CompileFacts(compiler="g++", log="main.cpp:1: error: scripted"),
            isolation=ISOLATION,
            environment_key="k0",
        )

    async def benchmark(self, problem, solution, leader, progress=None):
        identity = solution_id(solution)
        leader_id = None if leader is None else solution_id(leader)
        self.timed.append((identity, leader_id))
        if self.busy:
            self.busy -= 1
            raise DeviceBusy("the device is held by another server.")
        await self._obey(solution, progress)
        if self.while_timing:
            self.while_timing.pop(0)()
        return self.measured(problem, solution, leader_id)

    def measured(self, problem, solution, leader_id):
        """The record of a benchmark against that leader."""
        outcome = BenchmarkOutcome(self._said(solution, "outcome") or "PROMOTED")
        speedup = Interval(median=1.23456, low=1.2, high=1.3, coverage=0.983, blocks=22)
        decided = outcome not in (BenchmarkOutcome.REJECTED, BenchmarkOutcome.INCONCLUSIVE)
        timing = Performance(
            latency_us=20.0,
            runner_latency_us=20.0,
            leader_latency_us=24.7,
            ratio=0.81,
            floor_us=float(self._said(solution, "floor") or 10.0),
            bound="memory",
            calls=100,
        )
        rejected = outcome is BenchmarkOutcome.REJECTED
        return BenchmarkResult(
            guard_version=GUARD_VERSION,
            problem=problem.name,
            problem_digest=problem.digest,
            solution_id=solution_id(solution),
            leader_id=leader_id or solution_id(reference_solution(problem)),
            outcome=outcome,
            status=EvaluationStatus.STALE_OUTPUT if rejected else EvaluationStatus.PASSED,
            reason="as scripted.",
            speedup=speedup if decided else None,
            margin=0.0123456 if decided else None,
            speedup_over_reference=speedup if outcome is BenchmarkOutcome.PROMOTED else None,
            performance={workload.uuid: timing for workload in problem.ranked("cpu")},
            isolation=ISOLATION,
            environment_key="k0",
        )

    async def _obey(self, solution, progress):
        progress("compiling", 0, 0)
        self.started.set()
        match self._said(solution, "raises"):
            case "WorkerLost":
                raise WorkerLost("the judge died.")
            case "RequestError":
                raise RequestError("flag -fplugin is not allowed.")
            case "RuntimeError":
                raise RuntimeError("secret internals")
        if "// waits" in solution.entry_source:
            try:
                progress("checking", 1, 4)
                await self.gate.wait()
            except anyio.get_cancelled_exc_class():
                self.killed.append(solution_id(solution))
                self.death.set()
                raise

    @staticmethod
    def _said(solution, what):
        found = re.search(rf"^// {what}: (\S+)$", solution.entry_source, re.MULTILINE)
        return found and found[1]


@dataclass
class Bench:
    """A client connected to a server, and everything behind it."""

    client: Client
    guard: ScriptedGuard
    services: object
    server: object

    async def call(self, tool, **arguments):
        """The structured content of a successful call."""
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result.content[0].text
        return result.structured_content

    async def refused(self, tool, **arguments):
        """The text of a failed call."""
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error, result.structured_content
        return result.content[0].text

    async def verify(self, source, problem="rmsnorm", **arguments):
        arguments = {"language": "cpp", "strategy": "vectorise"} | arguments
        return await self.call("compile_and_verify", problem=problem, source=source, **arguments)

    async def lead(self, source, **arguments):
        """Verifies and benchmarks ``source``; the benchmark's result."""
        verdict = await self.verify(source, **arguments)
        return await self.call("benchmark", solution_id=verdict["solution_id"])


@pytest.fixture
def archive(tmp_path):
    with open_archive(tmp_path / "archive.sqlite") as archive:
        yield archive


@pytest.fixture
def serving(tmp_path, archive, guard):
    """``async with serving(...) as services``: a running worker over a scripted guard."""

    @contextlib.asynccontextmanager
    async def serve(over=archive, **settings):
        async with run_services(
            ServerSettings(database=over.path, home=tmp_path / "home", **settings),
            archive=over,
            guard=guard,
            problems=problems,
            catalogue=catalogue.load(),
            local=over.runs.ensure_agent("local"),
        ) as services:
            yield services

    return serve


@pytest.fixture
def guard():
    return ScriptedGuard()


@pytest.fixture
def connected(serving, guard):
    """``async with connected(era) as bench``."""

    @contextlib.asynccontextmanager
    async def connect(era="auto", **settings):
        async with serving(**settings) as services:
            server = build_server(services)
            async with Client(server, mode=era) as client:
                yield Bench(client, guard, services, server)

    return connect


@pytest.fixture
def source():
    """Makes small candidates that differ in what they tell the scripted guard, and in code."""

    def make(*lines, body="y[0] = x[0];"):
        return "\n".join([*(f"// {line}" for line in lines), 'extern "C" void run() {', body, "}"])

    return make
