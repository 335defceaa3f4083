"""What a caller hears while another process holds the device."""

from __future__ import annotations

import queue
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from kernelarc.guard import problems
from kernelarc.guard.devices.lease import lease
from kernelarc.guard.schema import EvaluationStatus, reference_solution

PATIENCE_S = 120.0
"""Other work on this host may hold the device too."""


@pytest.mark.torch
def test_a_wait_for_the_device_is_told_once_a_second(judge):
    problem = problems.get("rmsnorm")
    device = judge.call(judge.guard.environment).device_id
    words: queue.Queue[float] = queue.Queue()

    def progress(phase: str, _done: int, _total: int) -> None:
        if phase.startswith("waiting for the device"):
            words.put(time.monotonic())

    with ThreadPoolExecutor(1) as pool:
        with lease(device, exclusive=True, wait=time.sleep, timeout_s=PATIENCE_S):
            asked = (judge.guard.verify, problem, reference_solution(problem), progress)
            verdict = pool.submit(judge.call, *asked)
            first, _, third = (words.get(timeout=PATIENCE_S) for _ in range(3))
            assert not verdict.done()
        assert verdict.result().status is EvaluationStatus.PASSED
    assert third - first > 1.5  # two seconds, less what a busy machine takes to pass on the first
