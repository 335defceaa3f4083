"""When a process counts as stopped: real processes, real signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("torch")

from kernelarc.guard.worker.stillness import all_still

IDLE = "import threading, time; threading.Thread(target=time.sleep, args=(99,)).start()"
BUSY_IN_KERNEL = """
import mmap
print(flush=True)
while True:  # The signal has to wait for the end of each of these.
    mmap.mmap(-1, 600 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE).close()
"""


@pytest.fixture
def start():
    running = []

    def begin(code: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        running.append(process)
        return process

    yield begin
    for process in running:
        process.kill()
        process.wait()
        process.stdout.close()


def soon(condition) -> bool:
    deadline = time.monotonic() + 20
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.001)
    return condition()


def test_a_process_is_still_when_it_has_been_stopped_and_not_any_more_when_it_goes_on(start):
    process = start(f"{IDLE}; print(flush=True)\nwhile True: pass")
    process.stdout.readline()
    assert not all_still(process.pid)
    process.send_signal(signal.SIGSTOP)
    assert soon(lambda: all_still(process.pid))
    process.send_signal(signal.SIGCONT)
    assert soon(lambda: not all_still(process.pid))


def test_a_thread_that_is_busy_in_the_kernel_keeps_a_process_from_being_still(start):
    process = start(BUSY_IN_KERNEL)
    process.stdout.readline()
    seen = []
    for _ in range(20):
        time.sleep(0.02)
        process.send_signal(signal.SIGSTOP)
        seen.append(all_still(process.pid))
        assert soon(lambda: all_still(process.pid))
        process.send_signal(signal.SIGCONT)
    assert not all(seen), "the signal alone was always enough: the test shows nothing"


def test_an_ended_process_is_still_before_and_after_it_was_waited_for(start):
    process = start("pass")
    assert soon(lambda: all_still(process.pid))
    process.wait()
    assert all_still(process.pid)


def test_a_name_with_brackets_hides_no_state(start):
    name = "open('/proc/self/comm', 'w').write(') T (')"
    process = start(f"{name}; print(flush=True); import time; time.sleep(99)")
    process.stdout.readline()
    assert not all_still(process.pid)
    os.kill(process.pid, signal.SIGSTOP)
    assert soon(lambda: all_still(process.pid))
