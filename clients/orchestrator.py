"""Runs a team of agents against one server until there is a reason to stop.

Each agent is a task with its own session and token. What ends an agent: its attempts, the
run's time, a leader near the physical floor, nothing left to try, its own exception (which
ends nobody else), or a signal. What ends the run: all its agents, or a signal. Everything
that a later sitting needs is with the server or the recorder before it is acted upon, so the
process may be killed at any moment.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, field, replace

import anyio
from pydantic import JsonValue

from kernelarc.clients.agents.base import Agent, AgentEnd, AgentStep, Assignment, Toolbox
from kernelarc.clients.answers import (
    LeaderFacts,
    current_leader,
    near_roofline,
    promoted_leader,
    submitted,
)
from kernelarc.clients.assignment import Seat, StrategyPool, assign, strategy_pools, survey
from kernelarc.clients.metering import AttemptBudget, MeteredToolbox, ProblemState
from kernelarc.clients.run_record import AgentState, Observer, RunEvent, RunRecorder, RunState
from kernelarc.clients.run_spec import AgentSpec, RunSpec
from kernelarc.clients.signals import stop_on_signal
from kernelarc.guard.errors import KernelArcError

logger = logging.getLogger(__name__)

GRACE_S = 30.0
"""How long after the run's time an agent may finish what it has begun."""

SAVE_S = 10.0
"""How long the last words of an interrupted run may take."""

_REASON_CHARS = 500


@dataclass(frozen=True)
class RunHandle:
    """A run and everything it needs from outside, put together by the composition root."""

    run_id: str
    spec: RunSpec
    recorder: RunRecorder
    connect: Callable[[str], AbstractAsyncContextManager[Toolbox]]
    """Opens a session under the token of the agent of that name."""
    agent: Callable[[AgentSpec], Agent]
    """Makes an agent of the kind that the specification names."""
    states: Mapping[str, AgentState] = field(default_factory=dict)
    """How agents stood when the run was last heard of; empty for a new run."""
    elapsed_s: float = 0.0
    """Wall-clock time of earlier sittings; counts towards ``budgets.minutes``."""


@dataclass(frozen=True)
class RunOutcome:
    """How a sitting ended."""

    state: RunState
    reason: str
    agents: Mapping[str, AgentState]


def ignore(event: RunEvent) -> None:
    """An observer that does not look."""


async def orchestrate(
    run: RunHandle, *, observe: Observer = ignore, handle_signals: bool = True
) -> RunOutcome:
    """Work on a run until it ends; with the same run id again: go on where it stopped.

    The first SIGINT or SIGTERM stops the agents: they withdraw their running jobs, and the run
    is recorded as interrupted. A second one kills the process at once, which loses nothing
    but the withdrawals. Cancelling this call does what the first signal does.

    Args:
        run: The run.
        observe: Told of each event, after it was recorded.
        handle_signals: Whether to listen for signals; only possible in the main thread.

    Raises:
        RequestError: the specification does not fit what the server offers.
        ToolFailed: the server does not know a problem.
        GuardUnavailable: the server cannot be reached at the start.
        BoardError: the recorder could not keep what it was told.
    """
    sitting = _Sitting(run, observe)
    try:
        async with anyio.create_task_group() as watchers:
            if handle_signals:
                await watchers.start(stop_on_signal, sitting.stop)
            with anyio.CancelScope(deadline=sitting.deadline + GRACE_S) as sitting.scope:
                seats = await sitting.begin()
                async with anyio.create_task_group() as agents:
                    for seat in seats:
                        agents.start_soon(sitting.work, seat)
            watchers.cancel_scope.cancel()
    except anyio.get_cancelled_exc_class():
        await sitting.end(RunState.INTERRUPTED, "cancelled")
        raise
    except ExceptionGroup as group:
        # Agents' exceptions end with their agent. This is the beginning's, which is recorded, or
        # the recorder's, which nothing survives.
        raise _first(group) from group
    return await sitting.end(*sitting.result())


class _Sitting:
    """One call of ``orchestrate``: who works on what, and what has been heard."""

    def __init__(self, run: RunHandle, observe: Observer) -> None:
        self.scope = anyio.CancelScope()
        self.deadline = _deadline(run)
        self._run = run
        self._observe = observe
        self._stopped_by = ""
        self._pools: Mapping[str, StrategyPool] = {}
        self._problems = {name: ProblemState() for name in run.spec.problems}
        self._states = {
            agent.name: run.states.get(agent.name, AgentState.READY) for agent in run.spec.agents
        }

    async def begin(self) -> list[Seat]:
        """Assign everybody; the seats of those who have not finished."""
        try:
            return await self._assign_all()
        except KernelArcError as error:
            await self.end(RunState.FAILED, _one_line(error))
            raise

    async def _assign_all(self) -> list[Seat]:
        await self._emit("", "run_started", self._facts())
        spec = self._run.spec
        async with self._run.connect(spec.agents[0].name) as toolbox:
            applicable = await survey(toolbox, spec.problems)
            self._pools = strategy_pools(spec, applicable)
            seats = assign(spec, self._pools, applicable)
            for problem in spec.problems:
                answer = await toolbox.call("get_leader", problem=problem, source=False, backups=0)
                await self._tell_leader(problem, current_leader(answer))
        return [seat for seat in seats if self._states[seat.agent.name] is not AgentState.FINISHED]

    def stop(self, signal_name: str) -> None:
        """Stop all agents; called by the signal watcher."""
        self._stopped_by = signal_name
        self._observe(RunEvent("", "stopping", {"signal": signal_name}))
        self.scope.cancel()

    def result(self) -> tuple[RunState, str]:
        """How the sitting ended, when it was not cancelled from outside."""
        if self._stopped_by:
            return RunState.INTERRUPTED, f"stopped by {self._stopped_by}"
        if all(state is AgentState.FAILED for state in self._states.values()):
            return RunState.FAILED, "every agent failed"
        if anyio.current_time() >= self.deadline:
            return RunState.FINISHED, "the time is over"
        if all(problem.near_roofline for problem in self._problems.values()):
            return RunState.FINISHED, "every leader is near the roofline"
        return RunState.FINISHED, "every agent has ended"

    async def end(self, state: RunState, reason: str) -> RunOutcome:
        """Record how the sitting ended."""
        with anyio.move_on_after(SAVE_S, shield=True):
            await self._emit("", "run_ended", {"state": state.value, "reason": reason})
            await self._run.recorder.finish(state, reason=reason)
        return RunOutcome(state, reason, dict(self._states))

    async def work(self, seat: Seat) -> None:
        """One agent from its first to its last step. Its exceptions end here."""
        name = seat.agent.name
        await self._set_state(name, AgentState.WORKING, "")
        try:
            async with self._run.connect(name) as toolbox:
                ends = [await self._assignment(seat, toolbox, task) for task in seat.assignments]
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(SAVE_S, shield=True):
                await self._interrupted(name)
            raise
        except KernelArcError as error:
            await self._leave(name, AgentState.FAILED, _one_line(error))
        except Exception as error:  # the frame that supervises code of any kind and origin
            logger.exception("agent %s failed", name)
            await self._leave(name, AgentState.FAILED, _one_line(error))
        else:
            gave_up = [end.text for end in ends if end.reason == "gave_up"]
            state = AgentState.FAILED if len(gave_up) == len(ends) else AgentState.FINISHED
            await self._leave(name, state, "; ".join(_ended(end) for end in ends))

    async def _assignment(self, seat: Seat, toolbox: Toolbox, task: Assignment) -> AgentEnd:
        earlier = submitted(await toolbox.read(_attempts_uri(task.problem)))
        budget = AttemptBudget(
            limit=self._run.spec.budgets.attempts,
            used=len(earlier),
            deadline=self.deadline,
            problem=self._problems[task.problem],
        )

        async def watch(result: dict[str, object], strategy: str | None) -> None:
            await self._learn(task.problem, seat.agent.name, result, strategy)

        async def report(step: AgentStep) -> None:
            await self._step(task.problem, seat.agent.name, step, budget)

        metered = MeteredToolbox(toolbox, budget, watch, earlier)
        while True:
            await self._emit(seat.agent.name, "agent_started", _task_facts(task, budget))
            end = await self._run.agent(seat.agent).run(metered, task, budget, report)
            fresh = self._next_strategy(seat, task, end, budget)
            if fresh is None:
                return end
            await self._emit(
                seat.agent.name, "reassigned", {"problem": task.problem, "strategy": fresh}
            )
            task = replace(task, strategy=fresh)

    def _next_strategy(
        self, seat: Seat, task: Assignment, end: AgentEnd, budget: AttemptBudget
    ) -> str | None:
        """Another angle for an agent that has nothing left to try but may go on."""
        if end.reason != "exhausted" or seat.pinned or budget.spent():
            return None
        return self._pools[task.problem].take_fresh()

    async def _learn(
        self, problem: str, agent: str, result: Mapping[str, object], strategy: str | None
    ) -> None:
        """Look at a tool's result for what concerns the whole run."""
        if leader := promoted_leader(result):
            await self._tell_leader(problem, replace(leader, agent=agent, strategy=strategy))
        state = self._problems[problem]
        if near_roofline(result) and not state.near_roofline:
            state.near_roofline = True
            await self._emit(
                agent, "problem_done", {"problem": problem, "reason": "near the roofline"}
            )

    async def _step(self, problem: str, agent: str, step: AgentStep, budget: AttemptBudget) -> None:
        if step.kind == "pivot" and step.strategy:
            self._pools[problem].claim(step.strategy)
        facts: dict[str, JsonValue] = {
            "problem": problem,
            "step": step.kind,
            "text": step.text,
            "strategy": step.strategy,
            "solution_id": step.solution_id,
            "status": step.status,
            "speedup": step.speedup,
            "compared_with": step.compared_with,
            "attempts": budget.used,
        }
        await self._emit(
            agent, "step", {key: value for key, value in facts.items() if value not in ("", None)}
        )

    async def _tell_leader(self, problem: str, leader: LeaderFacts | None) -> None:
        if leader is not None:
            facts = {key: value for key, value in asdict(leader).items() if value is not None}
            await self._emit(leader.agent or "", "leader", {"problem": problem, **facts})

    async def _interrupted(self, name: str) -> None:
        """The scope was cancelled: by the clock, which is an end, or by somebody."""
        if not self._stopped_by and anyio.current_time() >= self.deadline + GRACE_S:
            await self._leave(name, AgentState.FINISHED, "the time is over")
        else:
            await self._leave(name, AgentState.READY, "interrupted")

    async def _leave(self, name: str, state: AgentState, reason: str) -> None:
        await self._set_state(name, state, reason)
        await self._emit(name, "agent_ended", {"state": state.value, "reason": reason})

    async def _set_state(self, name: str, state: AgentState, reason: str) -> None:
        self._states[name] = state
        await self._run.recorder.agent_state(name, state, reason=reason)

    async def _emit(self, agent: str, kind: str, payload: Mapping[str, JsonValue]) -> None:
        await self._run.recorder.record_event(agent, kind, payload)
        self._observe(RunEvent(agent, kind, payload))

    def _facts(self) -> dict[str, JsonValue]:
        budgets = self._run.spec.budgets
        return {
            "run": self._run.run_id,
            "problems": list(self._run.spec.problems),
            "agents": {name: state.value for name, state in self._states.items()},
            "attempts": budgets.attempts,
            "minutes": budgets.minutes,
            "elapsed_s": round(self._run.elapsed_s, 1),
        }


def _deadline(run: RunHandle) -> float:
    if run.spec.budgets.minutes is None:
        return float("inf")
    return anyio.current_time() + run.spec.budgets.minutes * 60 - run.elapsed_s


def _attempts_uri(problem: str) -> str:
    return f"kernelarc://agents/me/attempts/{problem}"


def _task_facts(task: Assignment, budget: AttemptBudget) -> dict[str, JsonValue]:
    return {
        "problem": task.problem,
        "strategy": task.strategy,
        "seed": task.seed,
        "attempts": budget.used,
        "limit": budget.limit,
    }


def _ended(end: AgentEnd) -> str:
    return f"{end.reason}: {end.text}" if end.text else end.reason


def _first(error: Exception) -> Exception:
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


def _one_line(error: Exception) -> str:
    text = str(error) if isinstance(error, KernelArcError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())[:_REASON_CHARS]
