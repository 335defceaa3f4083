"""What stands between an agent and its session: the budget, and eyes on the results."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

import anyio

from kernelarc.clients.agents.base import Toolbox, ToolFailed

SUBMIT = "compile_and_verify"
"""The tool whose calls are attempts."""

FREE_CALLS = 10
"""Submissions in a row that cost no attempt because the server refused them or the agent had made
them before. An agent that does not read its answers pays from then on, so that its budget ends
it."""

StopReason = Literal["budget", "time", "near_roofline"]


@dataclass
class ProblemState:
    """What all agents on one problem share."""

    near_roofline: bool = False
    """The guard's numbers say that there is hardly anything left to gain."""


@dataclass
class AttemptBudget:
    """The budget of one agent on one problem; implements ``agents.base.Budget``."""

    limit: int | None
    """Attempts in all; ``None``: not limited."""
    used: int
    """Attempts made, those of earlier sittings included."""
    deadline: float
    """On the event loop's clock (``anyio.current_time``), seconds; may be infinite."""
    problem: ProblemState = field(default_factory=ProblemState)

    def stop_reason(self) -> StopReason | None:
        """Why the agent must stop; ``None`` while it may go on."""
        if self.problem.near_roofline:
            return "near_roofline"
        if self.limit is not None and self.used >= self.limit:
            return "budget"
        if anyio.current_time() >= self.deadline:
            return "time"
        return None

    def spent(self) -> bool:
        """Whether the agent must stop before its next submission."""
        return self.stop_reason() is not None

    def attempts_left(self) -> int | None:
        """Submissions left; ``None`` when they are not limited."""
        return None if self.limit is None else max(0, self.limit - self.used)


Watch = Callable[[dict[str, object], str | None], Awaitable[None]]
"""Told of each tool's result, and of the strategy under which this agent submitted the solution
that it is about, where it did."""


class MeteredToolbox:
    """A toolbox that ends with its budget.

    An attempt is charged before the call, so that overlapping calls cannot overdraw, and given
    back when the server refuses it, or when it is code that the agent had submitted before: then
    nothing new was judged.

    Args:
        toolbox: Makes the calls.
        budget: What they are charged to.
        watch: Told of every result.
        submitted: Solutions that were charged in earlier sittings.
    """

    def __init__(
        self, toolbox: Toolbox, budget: AttemptBudget, watch: Watch, submitted: Iterable[str]
    ) -> None:
        self._toolbox = toolbox
        self._budget = budget
        self._watch = watch
        self._submitted = set(submitted)
        self._free = 0
        """In a row."""
        self._strategies: dict[str, str] = {}

    async def call(self, tool: str, **arguments: object) -> dict[str, object]:
        """Call a tool, if the budget allows it.

        Raises:
            ToolFailed: the budget is spent, or the server refused the call.
        """
        if tool == SUBMIT:
            result = await self._submit(arguments)
        else:
            result = await self._toolbox.call(tool, **arguments)
        await self._watch(result, self._strategies.get(str(result.get("solution_id"))))
        return result

    async def read(self, uri: str) -> str:
        """Return the text of a resource; costs nothing."""
        return await self._toolbox.read(uri)

    async def _submit(self, arguments: dict[str, object]) -> dict[str, object]:
        if reason := self._budget.stop_reason():
            raise ToolFailed(_REFUSAL[reason], tool=SUBMIT)
        self._budget.used += 1
        try:
            result = await self._toolbox.call(SUBMIT, **arguments)
        except ToolFailed:
            self._give_back()
            raise
        solution_id = str(result.get("solution_id"))
        if solution_id in self._submitted:
            self._give_back()
        else:
            self._free = 0
            self._submitted.add(solution_id)
        self._strategies[solution_id] = str(arguments.get("strategy", ""))
        return result

    def _give_back(self) -> None:
        self._free += 1
        if self._free <= FREE_CALLS:
            self._budget.used -= 1


_REFUSAL: dict[StopReason, str] = {
    "budget": "Your attempts are used up. Post what you have learned, then stop.",
    "time": "The time of this run is over. Post what you have learned, then stop.",
    "near_roofline": "The leader is near the physical limit of this device. Post what you have "
    "learned, then stop.",
}
