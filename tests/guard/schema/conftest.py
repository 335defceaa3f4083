"""A small problem in plain JSON, to be changed by each test."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelarc.guard.schema import Problem

REFERENCE = "def run(x, weight, eps):\n    return x * weight + eps\n"

DEFINITION: dict[str, Any] = {
    "name": "scale_rows",
    "axes": {
        "M": {"type": "var"},
        "H": {"type": "expr", "expression": "N / 2"},
        "N": {"type": "const", "value": 8, "description": "columns"},
    },
    "inputs": {
        "x": {"shape": ["M", "N"], "dtype": "float32"},
        "weight": {"shape": ["N"], "dtype": "bfloat16"},
        "eps": {"shape": None, "dtype": "float32"},
    },
    "outputs": {"y": {"shape": ["M", "H", "2"], "dtype": "float32"}},
    "reference": REFERENCE,
}

WORKLOAD: dict[str, Any] = {
    "axes": {"M": 3},
    "inputs": {
        "x": {"type": "random"},
        "weight": {"type": "random"},
        "eps": {"type": "scalar", "value": 1e-6},
    },
    "uuid": "first",
}


@pytest.fixture
def definition() -> dict[str, Any]:
    return copy.deepcopy(DEFINITION)


@pytest.fixture
def workload() -> dict[str, Any]:
    return copy.deepcopy(WORKLOAD)


@pytest.fixture
def problem(definition: dict[str, Any], workload: dict[str, Any]) -> Problem:
    return Problem.model_validate({"definition": definition, "workloads": [workload]})


@pytest.fixture
def write_problem(tmp_path: Path) -> Callable[..., Path]:
    """Write a problem's folder; text is written as it is, anything else as JSON."""

    def write(definition: object, workloads: object, contract: object = None) -> Path:
        lines = workloads if isinstance(workloads, str) else "\n".join(map(json.dumps, workloads))
        (tmp_path / "definition.json").write_text(
            definition if isinstance(definition, str) else json.dumps(definition)
        )
        (tmp_path / "workload.jsonl").write_text(lines)
        if contract is not None:
            (tmp_path / "contract.json").write_text(json.dumps(contract))
        return tmp_path

    return write
