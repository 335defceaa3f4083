"""kill -9 at random moments of a real run: nothing acknowledged is lost, nothing runs twice."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("torch")

KILLS = 20
ATTEMPTS = 4
AGENTS = 2
RUN_TIMEOUT_S = 420

pytestmark = [pytest.mark.slow, pytest.mark.timeout(RUN_TIMEOUT_S + 120)]


def command(home: Path, *words: str) -> list[str]:
    return [
        sys.executable, "-m", "kernelarc.cli", *words, "--json", "--isolation", "none",
        "--home", str(home),
    ]  # fmt: skip


def start(home: Path, *words: str) -> subprocess.Popen[bytes]:
    with (home / "run.log").open("ab") as log:
        return subprocess.Popen(command(home, *words), stdout=subprocess.PIPE, stderr=log)


def processes(fragment: bytes) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if fragment in line:
                yield int(entry.name)


def kill(home: Path, role: bytes) -> bool:
    """SIGKILL the processes of that role which work for this home; whether there was one."""
    found = [pid for pid in processes(role) if _belongs(pid, home)]
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    return bool(found)


def _belongs(pid: int, home: Path) -> bool:
    try:
        return str(home).encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def query(home: Path, sql: str) -> list[tuple]:
    with closing(sqlite3.connect(home / "kernelarc.db", timeout=30)) as db:
        return db.execute(sql).fetchall()


def check_archive(home: Path) -> None:
    assert query(home, "PRAGMA integrity_check") == [("ok",)]
    assert query(home, "PRAGMA foreign_key_check") == []
    assert query(home, "SELECT count(*) FROM jobs WHERE state IN ('queued', 'running')") == [(0,)]
    # Promotions form one chain: each replaced exactly the leader before it.
    leaders = query(home, "SELECT solution_id, previous_id FROM promotions ORDER BY id")
    for (before, _), (_, previous) in pairwise(leaders):
        assert previous == before
    # A benchmark promotes at most once, and only if it says so.
    bad = query(
        home,
        "SELECT count(*) FROM promotions p JOIN benchmarks b ON b.id = p.benchmark_id"
        " WHERE b.outcome <> 'PROMOTED'",
    )
    assert bad == [(0,)]
    assert query(
        home,
        "SELECT count(*) FROM (SELECT benchmark_id FROM promotions GROUP BY 1 HAVING count(*) > 1)",
    ) == [(0,)]


def attempts_by_agent(home: Path) -> dict[int, int]:
    return dict(query(home, "SELECT agent_id, count(*) FROM submissions GROUP BY agent_id"))


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "home"
    folder.mkdir()
    yield folder
    for role in (
        b"kernelarc.cli\0run",
        b"kernelarc.cli\0resume",
        b"serve-socket",
        b"worker\0judge",
    ):
        kill(folder, role)


def test_a_run_survives_the_death_of_its_server_at_twenty_moments(home):
    rng = random.Random(20261130)
    run = start(
        home, "run", "rmsnorm", "--agents", str(AGENTS), "--attempts", str(ATTEMPTS),
        "--minutes", "6",
    )  # fmt: skip
    kills = 0
    deadline = time.monotonic() + RUN_TIMEOUT_S
    while kills < KILLS and run.poll() is None and time.monotonic() < deadline:
        # The moments must be random; waiting for the process to end is the only condition.
        try:
            run.wait(rng.uniform(0.2, 4.0))
        except subprocess.TimeoutExpired:
            kills += kill(home, b"serve-socket")
    output, _ = run.communicate(timeout=RUN_TIMEOUT_S)
    assert run.returncode in (0, 1), output.decode() + (home / "run.log").read_text()
    answer = json.loads(output)
    assert answer["state"] == "finished"
    check_archive(home)
    counts = attempts_by_agent(home)
    assert sorted(counts.values()) == [ATTEMPTS] * AGENTS
    assert kills == KILLS
    verdicts = query(home, "SELECT count(*) FROM verdicts")[0][0]
    assert verdicts >= 1


def test_a_killed_orchestrator_leaves_nothing_running_and_is_resumed_without_repeating(home):
    rng = random.Random(7)
    words = [
        "run", "rmsnorm", "--agents", str(AGENTS), "--attempts", str(ATTEMPTS), "--minutes", "6",
    ]  # fmt: skip
    for sitting in range(3):
        run = start(home, *words)
        with pytest.raises(subprocess.TimeoutExpired):
            run.wait(rng.uniform(6.0, 12.0))
        run.kill()
        run.communicate()
        before = attempts_by_agent(home)
        _wait_until_gone(home)
        assert all(count <= ATTEMPTS for count in before.values()), sitting
        words = ["resume", "r_1"]
    done = subprocess.run(
        command(home, "resume", "r_1"), capture_output=True, timeout=RUN_TIMEOUT_S, check=False
    )
    assert done.returncode in (0, 1), done.stderr.decode()
    assert json.loads(done.stdout)["state"] == "finished"
    check_archive(home)
    counts = attempts_by_agent(home)
    assert sorted(counts.values()) == [ATTEMPTS] * AGENTS


def _wait_until_gone(home: Path) -> None:
    """Server and judge end by themselves when the orchestrator is gone."""
    deadline = time.monotonic() + 20
    while any(_belongs(p, home) for r in (b"serve-socket", b"worker\0judge") for p in processes(r)):
        assert time.monotonic() < deadline, "a worker outlived its orchestrator"
        os.sched_yield()
