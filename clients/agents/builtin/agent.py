"""The loop: propose, verify, time, tell the others; through MCP tools only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelarc.clients.agents.base import (
    AgentEnd,
    AgentStep,
    Assignment,
    Budget,
    EndReason,
    Report,
    StepKind,
    Toolbox,
    ToolFailed,
)
from kernelarc.clients.agents.builtin import conclusions
from kernelarc.clients.agents.builtin.kernels import Kernel, kernel_for
from kernelarc.clients.agents.builtin.render import check_signature, render
from kernelarc.clients.agents.builtin.search import Hint, Proposal, Tried, propose
from kernelarc.clients.agents.builtin.space import describe, tail
from kernelarc.clients.answers import records
from kernelarc.guard.errors import PivotRequired, RequestError
from kernelarc.guard.schema import BenchmarkOutcome, EvaluationStatus

REFUSALS = 10
"""Submissions in a row that the server may refuse before the agent gives up."""

_PIVOT_TEXT = str(PivotRequired("", [])).strip(" .")
"""What every refusal for want of a pivot says before it lists the options."""


class BuiltinAgent:
    """A deterministic search over C++ templates. Needs no model, no key and no network."""

    kind = "builtin"

    async def run(
        self, toolbox: Toolbox, assignment: Assignment, budget: Budget, report: Report
    ) -> AgentEnd:
        """Work on the assignment until the budget is spent or no untried point is left.

        What was submitted before, in this run or an earlier one, is read from the server and
        never submitted again.

        Raises:
            ToolFailed: the problem or the own attempts cannot be read.
        """
        try:
            kernel = kernel_for(assignment.problem)
            contract = await toolbox.call("get_problem", problem=assignment.problem)
            signature = str(contract["cpp_signature"])
            check_signature(kernel, signature)
        except RequestError as error:
            return AgentEnd("gave_up", str(error), attempts=0)
        shapes = [
            {str(name): int(str(length)) for name, length in axes.items()}
            for workload in records(contract.get("workloads"))
            if isinstance(axes := workload.get("axes"), Mapping)
        ]
        own = await toolbox.read(f"kernelarc://agents/me/attempts/{assignment.problem}")
        history = conclusions.own_attempts(own, kernel.space)
        if history:
            await report(AgentStep("resumed", f"{len(history)} attempts were made before"))
        else:
            await report(AgentStep("started", f"{kernel.template} templates", assignment.strategy))
        return await _Search(
            toolbox, assignment, budget, report, kernel, signature, shapes, history
        ).run()


@dataclass
class _Search:
    """One call of ``BuiltinAgent.run``."""

    toolbox: Toolbox
    assignment: Assignment
    budget: Budget
    report: Report
    kernel: Kernel
    signature: str
    shapes: list[dict[str, int]]
    history: list[Tried]
    options: list[str] = field(default_factory=list)
    """Where a demanded pivot may go; empty while none is demanded."""
    attempts: int = 0
    refusals: int = 0
    """In a row."""
    near_roofline: bool = False
    last_refusal: str = ""
    strange_options: list[str] = field(default_factory=list)
    """What a demanded pivot offers when no template knows any of it."""

    async def run(self) -> AgentEnd:
        await self._finish_interrupted()
        while not self.budget.spent():
            if end := self._stuck():
                return end
            proposal = propose(
                self.kernel.space, self.history, self.assignment, await self._hints(), self.options
            )
            if proposal is None:
                where = f" under {', '.join(self.options)}" if self.options else ""
                return self._end("exhausted", f"every point{where} was tried")
            await self._attempt(proposal)
        return self._end("budget", "the budget is spent")

    def _stuck(self) -> AgentEnd | None:
        if self.near_roofline:
            return self._end("near_roofline", "the guard sees hardly anything left to gain")
        if self.refusals >= REFUSALS:
            text = f"{self.refusals} submissions in a row were refused, the last one: "
            return self._end("gave_up", text + self.last_refusal)
        if self.strange_options:
            offered = ", ".join(self.strange_options)
            return self._end("exhausted", f"no template follows any strategy on offer: {offered}")
        return None

    async def _attempt(self, proposal: Proposal) -> None:
        try:
            verdict = await self._submit(proposal)
        except ToolFailed as refusal:
            await self._refused(proposal, str(refusal))
            return
        self.attempts += 1
        self.refusals = 0
        status = EvaluationStatus(str(verdict["verdict"]))
        solution_id = str(verdict["solution_id"])
        message = str(verdict.get("message", ""))
        await self._report("verdict", message, proposal, solution_id, status)
        self._follow(verdict)
        if status is EvaluationStatus.PASSED:
            await self._time(proposal, solution_id)
        else:
            self.history.append(Tried(proposal.strategy, proposal.point, status, solution_id))
            await self._post(proposal, conclusions.rejected(proposal, verdict))

    async def _time(self, proposal: Proposal, solution_id: str) -> None:
        """Have a correct candidate timed, remember it and tell the others."""
        result = await self._benchmark(proposal, solution_id)
        answer = result or {}
        time = conclusions.latency_us(answer)
        self.history.append(
            Tried(
                proposal.strategy,
                proposal.point,
                EvaluationStatus.PASSED,
                solution_id,
                time,
                conclusions.speedup(answer),
                conclusions.compared_with(answer),
            )
        )
        if result is not None:
            self._follow(result)
            if time is not None:
                await self._post(proposal, conclusions.timed(proposal, result))

    async def _finish_interrupted(self) -> None:
        """Time what was found correct right before an earlier run was killed."""
        last = self.history[-1] if self.history else None
        if last is not None and last.passed and last.latency_us is None:
            self.history.pop()
            again = Proposal(last.strategy, last.point, "seed", "verified before, timed now.")
            await self._time(again, last.solution_id)

    async def _submit(self, proposal: Proposal) -> conclusions.Answer:
        source = render(self.kernel, proposal.point, self.signature, self.shapes)
        await self._report("submitted", describe(proposal.point), proposal)
        return await self.toolbox.call(
            "compile_and_verify",
            problem=self.assignment.problem,
            source=source,
            language="cpp",
            strategy=proposal.strategy,
            parents=[proposal.parent.solution_id] if proposal.parent else [],
            note=f"{proposal.reason} {tail(proposal.point)}",
        )

    async def _benchmark(self, proposal: Proposal, solution_id: str) -> conclusions.Answer | None:
        """Time a correct candidate; once more when the device was too noisy to decide."""
        try:
            result = await self.toolbox.call("benchmark", solution_id=solution_id)
            if result.get("verdict") == BenchmarkOutcome.INCONCLUSIVE:
                result = await self.toolbox.call("benchmark", solution_id=solution_id, force=True)
        except ToolFailed as failure:
            await self._report("benchmark", str(failure), proposal, solution_id, "failed")
            return None
        await self.report(
            AgentStep(
                "benchmark",
                str(result.get("message", "")),
                proposal.strategy,
                solution_id,
                str(result.get("verdict")),
                conclusions.speedup(result),
                conclusions.compared_with(result),
            )
        )
        return result

    async def _post(self, proposal: Proposal, insight: conclusions.Insight) -> None:
        try:
            await self.toolbox.call(
                "post_insight",
                problem=self.assignment.problem,
                kind=insight.kind,
                text=insight.text,
                strategy=proposal.strategy,
                evidence=list(insight.evidence),
            )
        except ToolFailed as failure:
            await self._report("insight", str(failure), proposal, "", "failed")
            return
        await self._report("insight", insight.text, proposal)

    async def _refused(self, proposal: Proposal, text: str) -> None:
        """Nothing was judged: remember the point, and go where the server says."""
        self.history.append(Tried(proposal.strategy, proposal.point, status=None))
        self.refusals += 1
        self.last_refusal = text
        _, pivot, options = text.partition(_PIVOT_TEXT)
        if pivot:
            self._pivot_to([option.strip(" :.") for option in options.split(",")])
        await self._report("pivot" if pivot else "verdict", text, proposal, "", "refused")

    def _follow(self, answer: conclusions.Answer) -> None:
        """Obey the guidance that came with a result."""
        guidance = conclusions.guidance(answer)
        self.near_roofline = guidance.get("near_roofline") is True
        options = guidance.get("pivot_to")
        self.options, self.strange_options = [], []
        if guidance.get("must_pivot") is True and isinstance(options, list):
            self._pivot_to([str(option) for option in options])

    def _pivot_to(self, options: list[str]) -> None:
        self.options = [option for option in options if option in self.kernel.space.angles]
        self.strange_options = [] if self.options else options

    async def _hints(self) -> list[Hint]:
        """What others found; nothing while the board cannot be read."""
        try:
            board = await self.toolbox.call(
                "read_board", problem=self.assignment.problem, kind="success", verified_only=True
            )
        except ToolFailed:
            return []
        return conclusions.hints(board, self.kernel.space, self.assignment.agent)

    async def _report(
        self,
        kind: StepKind,
        text: str,
        proposal: Proposal,
        solution_id: str = "",
        status: str = "",
    ) -> None:
        await self.report(AgentStep(kind, text, proposal.strategy, solution_id, status))

    def _end(self, reason: EndReason, text: str) -> AgentEnd:
        return AgentEnd(reason, text, self.attempts)
