"""A host without g++: Python solutions are verified, and nothing is timed."""

import pytest
from anyio.from_thread import start_blocking_portal

pytest.importorskip("torch")

from kernelarc.guard import problems
from kernelarc.guard.errors import ToolchainMissing
from kernelarc.guard.pipeline import GuardSettings, open_guard
from kernelarc.guard.schema import EvaluationStatus, reference_solution, solution_from_source

pytestmark = pytest.mark.torch

PROBLEM = problems.get("rmsnorm")


@pytest.fixture
def guard(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    settings = GuardSettings(home=tmp_path / "home", isolation="none", call_timeout_s=6.0)
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(open_guard(settings)) as opened,
    ):
        yield lambda name, *arguments: portal.call(getattr(opened, name), *arguments)


def test_verdicts_are_as_elsewhere_and_timing_is_refused_in_words(guard):
    reference = reference_solution(PROBLEM)
    wrong = solution_from_source(PROBLEM, "def run(x, weight, eps, y):\n    y.zero_()\n", "pytorch")
    assert guard("verify", PROBLEM, reference).status is EvaluationStatus.PASSED
    assert guard("verify", PROBLEM, wrong).status is EvaluationStatus.INCORRECT_NUMERICAL
    with pytest.raises(ToolchainMissing, match=r"g\+\+ is not installed.*not timed"):
        guard("benchmark", PROBLEM, reference, None)
    native = solution_from_source(PROBLEM, 'extern "C" void run() {}', "cpp")
    with pytest.raises(ToolchainMissing, match=r"C\+\+ solutions cannot be compiled"):
        guard("verify", PROBLEM, native)
