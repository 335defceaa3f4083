"""kill -9 at random moments of a real run: nothing acknowledged is lost, nothing runs twice."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("torch")

KILLS = 20
ATTEMPTS = 4
AGENTS = 2
MINUTES = 12
"""Of a run, with all its restarts, on a machine that others use too."""
RUN_TIMEOUT_S = MINUTES * 60 + 60

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


def query(home: Path, sql: str, *values: float) -> list[tuple]:
    # Read-only, so that it never makes the file before the program does.
    address = f"{(home / 'kernelarc.db').as_uri()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, timeout=30)) as db:
        return db.execute(sql, values).fetchall()


def wait_for_work(home: Path, run: subprocess.Popen[bytes], since: float) -> None:
    """Until a job was begun after ``since`` (Unix time), or the run has ended."""
    while run.poll() is None:
        with suppress(sqlite3.OperationalError):  # no database yet
            if query(home, "SELECT 1 FROM jobs WHERE started_at > ? LIMIT 1", since):
                return
        with suppress(subprocess.TimeoutExpired):
            run.wait(0.1)


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
    """Submissions but those whose verification was given up: they are not charged."""
    return dict(
        query(
            home,
            "SELECT s.agent_id, count(*) FROM submissions s WHERE NOT EXISTS ("
            " SELECT 1 FROM jobs j WHERE j.solution_id = s.solution_id"
            "  AND j.kind = 'verify' AND j.state = 'failed') GROUP BY s.agent_id",
        )
    )


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
        "--minutes", str(MINUTES),
    )  # fmt: skip
    kills = 0
    killed_at = 0.0
    deadline = time.monotonic() + RUN_TIMEOUT_S
    while kills < KILLS and run.poll() is None:
        # Three of four kills hit a server at work: while its judge starts, verifies or times.
        # The fourth comes at any moment, most often while the server itself starts.
        longest_s = 3.0
        if kills % 4:
            wait_for_work(home, run, killed_at)
            longest_s = 10.0
        with suppress(subprocess.TimeoutExpired):
            run.wait(rng.uniform(0.2, longest_s))
        if run.poll() is None and kill(home, b"serve-socket"):
            kills += 1
            killed_at = time.time()
    output, _ = run.communicate(timeout=max(1.0, deadline - time.monotonic()))
    assert run.returncode in (0, 1), output.decode() + (home / "run.log").read_text()
    answer = json.loads(output)
    assert (answer["state"], answer["reason"]) == ("finished", "every agent has ended")
    check_archive(home)
    assert sorted(attempts_by_agent(home).values()) == [ATTEMPTS] * AGENTS
    assert kills == KILLS
    assert query(home, "SELECT count(*) FROM jobs WHERE interruptions > 0") > [(0,)]
    assert "retry_scheduled" not in (home / "run.log").read_text()
    assert query(home, "SELECT count(*) FROM verdicts") > [(0,)]


def test_a_killed_orchestrator_leaves_nothing_running_and_is_resumed_without_repeating(home):
    rng = random.Random(7)
    words = [
        "run", "rmsnorm", "--agents", str(AGENTS), "--attempts", str(ATTEMPTS),
        "--minutes", str(MINUTES),
    ]  # fmt: skip
    for sitting in range(3):
        begun = time.time()
        run = start(home, *words)
        wait_for_work(home, run, begun)
        with pytest.raises(subprocess.TimeoutExpired):
            run.wait(rng.uniform(0.2, 10.0))
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
    answer = json.loads(done.stdout)
    assert (answer["state"], answer["reason"]) == ("finished", "every agent has ended")
    check_archive(home)
    assert sorted(attempts_by_agent(home).values()) == [ATTEMPTS] * AGENTS


def _wait_until_gone(home: Path) -> None:
    """Server and judge end by themselves when the orchestrator is gone."""
    deadline = time.monotonic() + 20
    for role in (b"serve-socket", b"worker\0judge"):
        for pid in [pid for pid in processes(role) if _belongs(pid, home)]:
            with (
                suppress(ProcessLookupError),
                open(os.pidfd_open(pid), "rb", buffering=0) as process,
            ):
                left_s = max(0.0, deadline - time.monotonic())
                ended = select.select([process], [], [], left_s)[0]
                assert ended, "a worker outlived its orchestrator"
