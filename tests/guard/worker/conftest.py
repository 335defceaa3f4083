"""Small problems made on the spot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from kernelarc.guard.schema import Contract, Definition, Problem, Workload


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """On a busy machine threads that wait for each other are slower than one by far."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


MakeProblem = Callable[..., Problem]


@pytest.fixture(scope="session")
def make_problem() -> MakeProblem:
    def make(
        reference: str,
        *,
        inputs: dict[str, tuple[list[str] | None, str]],
        outputs: dict[str, tuple[list[str], str]],
        axes: dict[str, int],
        contract: dict[str, Any] | None = None,
        tolerance: dict[str, Any] | None = None,
        specs: dict[str, Any] | None = None,
        entry: str | None = None,
    ) -> Problem:
        """A problem whose axes are all ``var``; ``specs`` overrides how inputs are made."""
        sources = {name: {"type": "random"} for name in inputs} | (specs or {})
        definition = Definition.model_validate(
            {
                "name": "sample",
                "axes": {name: {"type": "var"} for name in axes},
                "inputs": {n: {"shape": s, "dtype": d} for n, (s, d) in inputs.items()},
                "outputs": {n: {"shape": s, "dtype": d} for n, (s, d) in outputs.items()},
                "reference": reference,
                "custom_inputs_entrypoint": entry,
            }
        )
        workload = Workload.model_validate(
            {"axes": axes, "inputs": sources, "uuid": "w", "tolerance": tolerance or {}}
        )
        return Problem(
            definition=definition,
            workloads=(workload,),
            contract=Contract.model_validate(contract or {}),
        )

    return make
