"""A scripted server, made with the real SDK, that speaks the product's tools.

What a submission does is written in its source: ``wrong`` fails, ``queued`` becomes a job that
needs one more question, ``stuck`` becomes a job that never ends, ``held`` blocks inside the
call until it is released, ``refused`` is a tool error, ``crash`` an internal one, ``fast`` is
promoted when benchmarked, ``roof`` is promoted and reported as near the roofline.
"""

import contextlib
import hashlib
import json
import threading
from collections import defaultdict
from dataclasses import dataclass, field, replace

import anyio
import pytest
import uvicorn
from mcp import Client
from mcp.server import MCPServer
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp.server.transport_security import TransportSecuritySettings

from kernelarc.clients.agents.base import AgentEnd, AgentStep, ToolFailed
from kernelarc.clients.run_record import AgentState, RunState
from kernelarc.clients.session import Patience, Session
from kernelarc.guard.errors import PivotRequired, UnknownProblem

QUICK = Patience(
    request_s=10, reconnect_s=8, call_s=20, first_wait_s=1, poll_s=1, backoff_s=0.02, withdraw_s=2
)


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
def quick():
    return QUICK


@dataclass
class Script:
    """What the server is and remembers; outlives a restart, as the database would."""

    problems: dict = field(default_factory=lambda: {"rmsnorm": ["vectorise", "fuse-passes"]})
    patience: int = 1000
    attempts: dict = field(default_factory=lambda: defaultdict(list))
    calls: list = field(default_factory=list)
    jobs: dict = field(default_factory=dict)
    cancelled: list = field(default_factory=list)
    leaders: dict = field(default_factory=dict)
    released: threading.Event = field(default_factory=threading.Event)
    entered: threading.Event = field(default_factory=threading.Event)
    asked: threading.Event = field(default_factory=threading.Event)
    slow_start: bool = False
    """Whether the contract is held, as by a guard that is still being started."""

    def find(self, solution_id):
        return next(
            (problem, attempt["source"])
            for (_, problem), made in self.attempts.items()
            for attempt in made
            if attempt["solution_id"] == solution_id
        )

    def submit(self, agent, problem, source, strategy):
        made = self.attempts[agent, problem]
        self._demand_pivot(made, problem, strategy)
        solution_id = hashlib.sha256(source.encode()).hexdigest()[:32]
        if all(attempt["source"] != source for attempt in made):
            made.append({"source": source, "strategy": strategy, "solution_id": solution_id})
        return solution_id

    def _demand_pivot(self, made, problem, strategy):
        streak = made[-self.patience :]
        if len(streak) == self.patience and {a["strategy"] for a in streak} == {strategy}:
            tried = {attempt["strategy"] for attempt in made}
            options = [s for s in self.problems[problem] if s not in tried]
            options = options or [s for s in self.problems[problem] if s != strategy]
            raise ToolError(
                str(PivotRequired(f"{self.patience} attempts without a promotion.", options))
            )


class _Tokens:
    async def verify_token(self, token):
        if not token.startswith("token-"):
            return None
        name = token.removeprefix("token-")
        return AccessToken(token=token, client_id=name, scopes=["agent"], subject=name)


class Tools:
    """The tools of one caller; ``agent`` is ``None`` where the token says who calls."""

    def __init__(self, script, agent):
        self._script = script
        self._agent = agent

    async def list_problems(self) -> dict:
        """Names."""
        return {"problems": [{"problem": name} for name in self._script.problems]}

    async def get_problem(self, problem: str) -> dict:
        """The contract."""
        self._known(problem)
        if self._script.slow_start:
            await self._held()
        lines = [{"id": name, "summary": name} for name in self._script.problems[problem]]
        return {"problem": problem, "strategies": lines}

    async def get_leader(self, problem: str, source: bool = True, backups: int = 3) -> dict:
        """The leader."""
        self._known(problem)
        leader = self._script.leaders.get(problem)
        return {"problem": problem, **({"leader": leader} if leader else {})}

    async def compile_and_verify(
        self, problem: str, source: str, strategy: str = "unspecified", wait_s: int = 45
    ) -> dict:
        """Judges."""
        self._note("compile_and_verify", source)
        self._known(problem)
        if "crash" in source:
            raise RuntimeError("internal")
        if "refused" in source:
            raise ToolError("the source is empty. Send C++ with an entry point.")
        solution_id = self._script.submit(self._who(), problem, source, strategy)
        if "held" in source:
            await self._held()
        done = _verdict(problem, source, solution_id)
        return self._queued(source, done) if {"queued", "stuck"} & set(source.split()) else done

    async def benchmark(self, solution_id: str, wait_s: int = 45) -> dict:
        """Times."""
        self._note("benchmark", solution_id)
        problem, source = self._script.find(solution_id)
        result = {"verdict": "TIE", "state": "done", "solution_id": solution_id}
        if "fast" in source or "roof" in source:
            interval = {"median": 2.5, "low": 2.4, "high": 2.6, "coverage": 0.98}
            timings = [{"roofline_fraction": 0.5}, {"roofline_fraction": 0.32}]
            result |= {"verdict": "PROMOTED", "speedup_over_reference": interval}
            result |= {"timings": timings, "guidance": {"near_roofline": "roof" in source}}
            leader = {"solution_id": solution_id, "speedup_over_reference": 2.5}
            self._script.leaders[problem] = leader
        return result

    async def get_result(self, job_id: str, wait_s: int = 45) -> dict:
        """Asks for a job."""
        script = self._script
        self._note("get_result", job_id)
        script.asked.set()
        if job_id not in script.jobs:
            raise ToolError(f"unknown job {job_id!r}.")
        if script.jobs[job_id] is None:
            with anyio.move_on_after(wait_s):
                await anyio.sleep_forever()
        state = "cancelled" if job_id in script.cancelled else "running"
        return script.jobs[job_id] or {"verdict": "PENDING", "state": state, "job_id": job_id}

    async def cancel_job(self, job_id: str) -> dict:
        """Withdraws."""
        self._script.cancelled.append(job_id)
        return {"verdict": "PENDING", "state": "cancelled", "job_id": job_id}

    async def attempts(self, problem: str) -> str:
        """Own attempts."""
        if problem not in self._script.problems:
            raise ResourceNotFoundError("no such problem")
        return json.dumps({"attempts": self._script.attempts[self._who(), problem]})

    def _who(self):
        return self._agent or get_access_token().subject

    def _note(self, tool, about):
        self._script.calls.append((self._who(), tool, about))

    def _known(self, problem):
        if problem not in self._script.problems:
            raise ToolError(str(UnknownProblem(problem, sorted(self._script.problems))))

    async def _held(self):
        self._script.entered.set()
        await anyio.to_thread.run_sync(self._script.released.wait, abandon_on_cancel=True)

    def _queued(self, source, done):
        script = self._script
        job_id = f"j_{len(script.jobs) + 1}"
        script.jobs[job_id] = None if "stuck" in source else done
        script.entered.set()
        return {"verdict": "PENDING", "state": "queued", "job_id": job_id}


def build(script, agent=None):
    """The server; ``agent`` names the caller in memory, a token does over HTTP."""
    auth = {}
    if agent is None:
        settings = AuthSettings(
            issuer_url="http://localhost", resource_server_url=None, required_scopes=["agent"]
        )
        auth = {"token_verifier": _Tokens(), "auth": settings}
    mcp = MCPServer("scripted", log_level="CRITICAL", **auth)
    tools = Tools(script, agent)
    for tool in (
        tools.list_problems,
        tools.get_problem,
        tools.get_leader,
        tools.compile_and_verify,
        tools.benchmark,
        tools.get_result,
        tools.cancel_job,
    ):
        mcp.tool()(tool)
    mcp.resource("kernelarc://agents/me/attempts/{problem}")(tools.attempts)
    return mcp


def _verdict(problem, source, solution_id):
    status = "INCORRECT_NUMERICAL" if "wrong" in source else "PASSED"
    return {"verdict": status, "state": "done", "problem": problem, "solution_id": solution_id}


@pytest.fixture
def script():
    script = Script()
    yield script
    script.released.set()


@pytest.fixture
def connect(script):
    """Opens a session in memory under an agent's name."""

    @contextlib.asynccontextmanager
    async def open_session(name, mode="auto"):
        server = build(script, name)
        yield Session(lambda: Client(server, mode=mode), patience=QUICK)

    return open_session


class Served:
    """The scripted server in a thread, on a Unix socket or on loopback: it can be stopped and
    started again."""

    def __init__(self, script, socket):
        self.socket = socket
        self._script = script

    def start(self, listener=None):
        app = build(self._script).streamable_http_app(
            stateless_http=True,
            transport_security=TransportSecuritySettings(
                allowed_hosts=["localhost", "127.0.0.1:*"]
            ),
        )
        # Without a limit uvicorn waits for open calls to end, be it told to hurry or not: from
        # Python 3.12 on, closing a listener (asyncio's Server.wait_closed) waits for its clients.
        config = uvicorn.Config(
            app,
            uds=str(self.socket),
            log_config=None,
            access_log=False,
            lifespan="on",
            timeout_graceful_shutdown=0,
        )
        started = threading.Event()

        class Announcing(uvicorn.Server):
            async def startup(self, sockets=None):
                await super().startup(sockets)
                started.set()

        self._server = Announcing(config)
        sockets = None if listener is None else [listener]
        self._thread = threading.Thread(target=self._server.run, args=(sockets,))
        self._thread.start()
        assert started.wait(10)

    def stop(self):
        """As a kill would: open calls are cut."""
        self._server.force_exit = True
        self._server.should_exit = True
        self._thread.join(10)
        assert not self._thread.is_alive()
        self.socket.unlink(missing_ok=True)


@pytest.fixture
def served(script, tmp_path):
    served = Served(script, tmp_path / "mcp.sock")
    served.start()
    yield served
    script.released.set()
    served.stop()


@dataclass
class Recorder:
    """A recorder that keeps everything in memory."""

    events: list = field(default_factory=list)
    states: dict = field(default_factory=dict)
    reasons: dict = field(default_factory=dict)
    ended: tuple[RunState, str] | None = None

    async def record_event(self, agent, kind, payload):
        json.dumps(payload, allow_nan=False)
        self.events.append((agent, kind, dict(payload)))

    async def agent_state(self, agent, state, *, reason):
        assert isinstance(state, AgentState)
        self.states[agent] = state
        self.reasons[agent] = reason

    async def finish(self, state, *, reason):
        self.ended = (state, reason)

    def kinds(self, agent):
        return [kind for name, kind, _ in self.events if name == agent]


@pytest.fixture
def recorder():
    return Recorder()


@dataclass
class Worker:
    """An agent that submits what it is told to, then variations of ``body`` for ever."""

    body: str = "plain"
    first: tuple = ()
    error: Exception | None = None
    stop_after: int | None = None
    kind: str = "builtin"

    async def run(self, toolbox, assignment, budget, report):
        history = json.loads(
            await toolbox.read(f"kernelarc://agents/me/attempts/{assignment.problem}")
        )
        number = len(history["attempts"])
        await report(AgentStep("resumed" if number else "started", "begins"))
        made = 0
        while not budget.spent():
            if made == self.stop_after:
                return AgentEnd("exhausted", "nothing left", made)
            if self.error:
                raise self.error
            body = self.first[made] if made < len(self.first) else self.body
            assignment = await self._attempt(toolbox, assignment, f"{body} {number}", report)
            made += 1
            number += 1
        return AgentEnd("budget", "", made)

    async def _attempt(self, toolbox, assignment, source, report):
        arguments = {"problem": assignment.problem, "source": f"{assignment.agent} {source}"}
        try:
            result = await toolbox.call(
                "compile_and_verify", strategy=assignment.strategy, **arguments
            )
        except ToolFailed as refusal:
            if "Submit under one of these" not in str(refusal):
                return assignment
            option = str(refusal).rstrip(".").rpartition(": ")[2].split(", ")[0]
            await report(AgentStep("pivot", str(refusal), strategy=option))
            return await self._attempt(
                toolbox, replace(assignment, strategy=option), source, report
            )
        status = result["verdict"]
        await report(AgentStep("verdict", status, assignment.strategy, status=status))
        if status == "PASSED":
            timed = await toolbox.call("benchmark", solution_id=result["solution_id"])
            await report(AgentStep("benchmark", timed["verdict"], status=timed["verdict"]))
        return assignment


@pytest.fixture
def worker():
    return Worker
