"""Waiting in the judge: for a descriptor, for the caller's change of mind, for the end of time."""

import os
import threading

import pytest

from kernelarc.guard.errors import JobCancelled
from kernelarc.guard.worker.interrupts import Interrupts, TotalTimeout


@pytest.fixture
def pipe():
    ends = os.pipe()
    yield ends
    for fd in ends:
        os.close(fd)


def test_what_can_be_read_ends_the_wait(pipe):
    os.write(pipe[1], b"x")
    assert Interrupts().wait([pipe[0]], 60) == [pipe[0]]


def test_nothing_to_read_ends_it_empty(pipe):
    assert Interrupts().wait([pipe[0]], 0) == []


def test_a_job_that_is_cancelled_does_not_wait_any_longer(pipe, monkeypatch):
    interrupts = Interrupts()
    interrupts.begin("j1", 60)
    thread = threading.Thread(target=interrupts.cancel, args=("j1",))
    check = interrupts.check

    def cancelled_right_after():
        check()
        thread.start()
        thread.join()

    monkeypatch.setattr(interrupts, "check", cancelled_right_after)
    with pytest.raises(JobCancelled):
        interrupts.wait([pipe[0]], 5)


def test_a_cancelled_job_stays_cancelled_until_it_ends(pipe):
    interrupts = Interrupts()
    interrupts.begin("j1", 60)
    interrupts.cancel("j1")
    for _ in range(2):
        with pytest.raises(JobCancelled):
            interrupts.check()
    interrupts.end()
    interrupts.begin("j1", 60)
    interrupts.check()


def test_another_jobs_cancellation_wakes_it_and_no_more(pipe):
    interrupts = Interrupts()
    interrupts.begin("j1", 60)
    interrupts.cancel("j2")
    os.write(pipe[1], b"x")
    assert interrupts.wait([pipe[0]], 60) == [pipe[0]]
    interrupts.end()
    interrupts.begin("j2", 60)
    with pytest.raises(JobCancelled):
        interrupts.check()


def test_a_job_without_time_left_does_not_wait(pipe):
    interrupts = Interrupts()
    interrupts.begin("j1", -1)
    with pytest.raises(TotalTimeout):
        interrupts.wait([pipe[0]], 60)
    interrupts.end()
    assert interrupts.wait([pipe[0]], 0) == []
