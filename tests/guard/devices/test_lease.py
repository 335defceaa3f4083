"""The device lease across processes."""

from __future__ import annotations

import subprocess
import sys
import uuid

import pytest

from kernelarc.guard.devices.lease import lease, lock_path
from kernelarc.guard.errors import DeviceBusy

HOLD = """
import sys
from kernelarc.guard.devices.lease import lease
with lease(sys.argv[1], exclusive=sys.argv[2] == "x", wait=lambda s: None, timeout_s=1):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def device():
    name = f"test-{uuid.uuid4().hex}"
    yield name
    lock_path(name).unlink(missing_ok=True)


def _holder(device: str, kind: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, device, kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_timing_excludes_everybody(device):
    holder = _holder(device, "x")
    with (
        pytest.raises(DeviceBusy, match="another process"),
        lease(device, exclusive=False, wait=lambda s: None, timeout_s=0.3),
    ):
        pytest.fail("the lease was given twice")
    _end(holder)


def test_verifications_share(device):
    holder = _holder(device, "s")
    with lease(device, exclusive=False, wait=lambda s: None, timeout_s=0):
        held = True
    assert held
    _end(holder)


def test_a_killed_holder_lets_go(device):
    _end(_holder(device, "x"))
    with lease(device, exclusive=True, wait=lambda s: None, timeout_s=0):
        held = True
    assert held


def test_waiting_may_be_given_up(device):
    holder = _holder(device, "x")

    def give_up(_seconds: float) -> None:
        raise KeyError("enough")

    with (
        pytest.raises(KeyError),
        lease(device, exclusive=True, wait=give_up, timeout_s=60),
    ):
        pytest.fail("the lease was given twice")
    _end(holder)
