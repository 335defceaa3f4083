"""Several processes on one file, and processes that die at any moment."""

import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from kernelarc.memory import JobState, open_archive
from kernelarc.memory.jobs import INTERRUPTED

WRITER = Path(__file__).with_name("writer.py")
DEVICE = "Test CPU"


class Writers:
    """Child processes of one script, and what they acknowledged."""

    def __init__(self, path):
        self.path = path
        self.process = subprocess.Popen(
            [sys.executable, str(WRITER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.acknowledged = Counter()
        self.children = []

    def start(self, action, **values):
        self._send({"action": action, "path": str(self.path), **values})

    def read_until(self, wanted):
        """Collect lines until ``wanted`` of them are acknowledged writes (-1: until the end)."""
        while wanted != 0:
            word, _, rest = self.process.stdout.readline().strip().partition(" ")
            assert word, "the writers died"
            if word == "child":
                self.children.append(int(rest))
            elif word == "end":
                return
            else:
                self.acknowledged[word, rest] += 1
                wanted -= 1

    def kill(self):
        for pid in self.children:
            os.kill(pid, signal.SIGKILL)
        self.children.clear()

    def wait(self):
        self._send("wait")
        self.read_until(-1)
        self.children.clear()

    def close(self):
        self.kill()
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def _send(self, order):
        self.process.stdin.write(json.dumps(order) + "\n")


@pytest.fixture
def writers(scene):
    made = Writers(scene.path)
    yield made
    made.close()


@pytest.mark.slow
def test_eight_processes_read_modify_and_write_without_a_lost_or_failed_one(scene, writers):
    for _ in range(8):
        writers.start("count", times=200)
    writers.wait()
    assert writers.acknowledged == {("counted", "200"): 8}
    with scene.archive._store.read() as db:
        kinds = [int(row[0]) for row in db.execute("SELECT kind FROM events ORDER BY id")]
    assert kinds == list(range(1, 1601))


@pytest.mark.slow
def test_every_job_is_claimed_by_exactly_one_of_four_processes(scene, writers):
    asked = [scene.enqueue(scene.solution()).job.id for _ in range(60)]
    for _ in range(4):
        writers.start("drain", device="cpu")
    writers.wait()
    assert writers.acknowledged == {("claimed", job): 1 for job in asked}
    assert set(scene.archive.jobs.requeue_orphans().requeued) == set(asked)


@pytest.mark.slow
def test_a_job_whose_server_is_killed_three_times_is_given_up(scene, writers):
    jobs = scene.archive.jobs
    job = scene.enqueue(scene.solution()).job.id
    for interruption in (1, 2, 3):
        writers.start("hold", device="cpu")
        writers.read_until(1)
        assert jobs.requeue_orphans().requeued == ()  # it is alive
        writers.kill()
        writers.wait()
        done = jobs.requeue_orphans()
        assert (done.requeued, done.failed) == (((), (job,)) if interruption == 3 else ((job,), ()))
        assert jobs.job(job).interruptions == interruption
    assert writers.acknowledged == {("claimed", job): 3}
    assert jobs.job(job).error == INTERRUPTED
    locks = scene.path.with_name("archive.db.instances")
    assert [lock.stem for lock in locks.iterdir()] == [str(scene.instance.row_id)]


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_when_writers_are_killed_at_any_moment(scene, writers):
    seed = scene.promoted()
    agents = [scene.archive.runs.ensure_agent(name).id for name in "ab"]
    chance = random.Random(20261130)
    for turn in range(10):
        for agent in agents:
            writers.start("work", seed=seed, agent=agent, tag=f"{agent} {turn}")
        writers.read_until(chance.randrange(5, 60))
        writers.kill()
        writers.wait()
        with open_archive(scene.path) as archive:
            _check_file(archive)
            _check_acknowledged(archive, writers.acknowledged)
            _check_consistent(archive)
            _check_orphans(archive)
    assert len(scene.archive.leaders.history("rmsnorm", DEVICE)) > 1


def _check_file(archive):
    with archive._store.write() as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
        # Raises when the index and the table say different things.
        db.execute("INSERT INTO insights_fts (insights_fts, rank) VALUES ('integrity-check', 1)")


def _check_acknowledged(archive, acknowledged):
    find = {
        "solution": archive.catalogue.solution,
        "submission": archive.catalogue.submission,
        "insight": archive.board.insight,
        "job": archive.jobs.job,
        "claimed": archive.jobs.job,
        "verdict": archive.results.verdict,
        "benchmark": archive.results.benchmark,
    }
    promotions = {p.id for p in archive.leaders.history("rmsnorm", DEVICE)}
    for word, record in acknowledged:
        if word == "promotion":
            assert record in promotions
        else:
            find[word](record)  # UnknownId when it is lost


def _check_consistent(archive):
    previous = None
    for promotion in archive.leaders.history("rmsnorm", DEVICE):
        assert promotion.previous_id == previous
        previous = promotion.solution_id
    with archive._store.read() as db:
        counts = dict(db.execute("SELECT kind, count(*) FROM events GROUP BY kind").fetchall())
        for kind, table in (
            ("verdict", "verdicts"),
            ("benchmark", "benchmarks"),
            ("promotion", "promotions"),
            ("submission", "submissions"),
            ("insight", "insights"),
        ):
            assert counts.get(kind, 0) == db[table].count
        done = dict(
            db.execute("SELECT kind, count(*) FROM jobs WHERE state = 'done' GROUP BY kind")
        )
        assert done["verify"] == db["verdicts"].count
        assert done["benchmark"] == db["benchmarks"].count
        # A post is verified exactly when the solution it rests on has a verdict.
        wrong = db.execute(
            "SELECT count(*) FROM insights i JOIN insight_evidence e ON e.insight_id = i.id "
            "WHERE i.verified != EXISTS "
            "(SELECT 1 FROM verdicts v WHERE v.solution_id = e.solution_id)"
        ).fetchone()
        assert wrong == (0,)


def _check_orphans(archive):
    running = {j.id for j in archive.jobs.unfinished() if j.state is JobState.RUNNING}
    done = archive.jobs.requeue_orphans()
    assert {*done.requeued, *done.failed} == running
    again = archive.jobs.requeue_orphans()
    assert (again.requeued, again.failed) == ((), ())
