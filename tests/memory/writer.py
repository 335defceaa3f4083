"""Other processes for the tests of memory; run as a script, driven by lines of JSON on stdin.

It imports once and forks a child for every line, before anything is opened. A child writes one
line per acknowledged write; when it has ended, however, the line ``end`` follows.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from kernelarc.guard.schema import (
    BenchmarkOutcome,
    BenchmarkResult,
    Evaluation,
    EvaluationStatus,
    Interval,
    Isolation,
    SourceFile,
    Verdict,
)
from kernelarc.memory import Archive, InsightKind, Instance, Job, JobKind, open_archive
from kernelarc.memory.connection import Store, insert

DEVICE = "Test CPU"
ISOLATION = Isolation(level="full", walls=[])


def say(*words: object) -> None:
    """One line at once: lines of this length are written whole."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def count(path: Path, times: int) -> None:
    """Read-modify-write ``times`` times: the next number is one more than the newest."""
    store = Store(path)
    for _ in range(times):
        with store.write() as db:
            newest = db.execute("SELECT kind FROM events ORDER BY id DESC LIMIT 1").fetchone()
            kind = str(int(newest[0]) + 1 if newest else 1)
            insert(db, "events", {"kind": kind, "payload": "{}", "created_at": 0.0})
    say("counted", times)


def drain(path: Path, device: str) -> None:
    """Claim jobs until there are none."""
    with open_archive(path) as archive, archive.register_instance() as instance:
        while job := archive.jobs.claim(instance, device):
            say("claimed", job.id)


def hold(path: Path, device: str) -> None:
    """Claim a job and keep it until killed."""
    with open_archive(path) as archive, archive.register_instance() as instance:
        job = archive.jobs.claim(instance, device)
        say("claimed", job and job.id)
        signal.pause()


def work(path: Path, seed: str, agent: str, tag: str) -> None:
    """Do everything that writes, for ever."""
    archive = open_archive(path)
    instance = archive.register_instance()
    template = archive.catalogue.solution(seed)
    number = 0
    while True:
        number += 1
        source = SourceFile(path="main.cpp", content=f"void run() {{ /* {tag} {number} */ }}")
        solution = archive.catalogue.add_solution(template.model_copy(update={"sources": [source]}))
        say("solution", solution)
        submission = archive.catalogue.submit(
            "rmsnorm", solution, agent=agent, strategy="tiling", parents=[seed]
        )
        say("submission", submission.id)
        posted = archive.board.post(
            "rmsnorm",
            InsightKind.SUCCESS,
            "tiling",
            f"tile {tag} {number}",
            agent=agent,
            device_name=DEVICE,
            evidence_ids=[solution],
        )
        say("insight", posted.insight.id)
        for kind in JobKind:
            asked = archive.jobs.enqueue(
                kind, "rmsnorm", solution, agent=agent, device="cpu", guard_key="1/env"
            )
            say("job", asked.job.id)
            job = archive.jobs.claim(instance, "cpu")
            if job is not None:
                say("claimed", job.id)
                finish(archive, instance, job)


def finish(archive: Archive, instance: Instance, job: Job) -> None:
    """Judge a claimed job, whoever asked for it; every solution passes and wants to lead."""
    if job.kind is JobKind.VERIFY:
        verdict = Verdict(
            guard_version="1",
            problem=job.problem,
            solution_id=job.solution_id,
            language="cpp",
            status=EvaluationStatus.PASSED,
            message="m",
            evaluations=[Evaluation(workload="w1", status=EvaluationStatus.PASSED)],
            isolation=ISOLATION,
            environment_key="env",
        )
        say("verdict", archive.results.finish_verify(instance, job.id, verdict).id)
        return
    if archive.results.latest_verdict(job.problem, job.solution_id) is None:
        archive.jobs.release(instance, job.id)
        return
    leader = archive.leaders.leader(job.problem, DEVICE)
    expected = leader.solution_id if leader else None
    result = BenchmarkResult(
        guard_version="1",
        problem=job.problem,
        solution_id=job.solution_id,
        leader_id=expected or "f" * 32,
        outcome=BenchmarkOutcome.PROMOTED,
        status=EvaluationStatus.PASSED,
        reason="r",
        speedup=Interval(median=1.1, low=1.0, high=1.2, coverage=0.98, blocks=22),
        isolation=ISOLATION,
        environment_key="env",
    )
    finished = archive.results.finish_benchmark(
        instance, job.id, result, device_name=DEVICE, expected_leader=expected
    )
    say("benchmark", finished.benchmark.id)
    if finished.promotion:
        say("promotion", finished.promotion.id)


ACTIONS = {"count": count, "drain": drain, "hold": hold, "work": work}


def main() -> None:
    """Fork a child for each line and report its pid; end when stdin ends."""
    children = set()
    for line in sys.stdin:
        order = json.loads(line)
        if order == "wait":
            while children:
                children.discard(os.wait()[0])
            say("end")
            continue
        pid = os.fork()
        if pid == 0:
            ACTIONS[order.pop("action")](Path(order.pop("path")), **order)
            os._exit(0)
        children.add(pid)
        say("child", pid)


if __name__ == "__main__":
    main()
