"""What a sample left behind on this host, seen from outside the sandbox.

A trace is taken before the first sample and after each. Whatever is new in the second is harm:
a process of the sandbox, a file where candidates have no business, a judge that is not as it was.
"""

from __future__ import annotations

import os
import select
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from kernelarc.guard.sandbox.policy import CANDIDATE_UID, WallName
from kernelarc.guard.schema import Isolation, JudgeState

CANDIDATE_UIDS = range(CANDIDATE_UID, CANDIDATE_UID + 1024)
WORKER = b"kernelarc.guard.worker"
"""In the command lines of judges and of all that they fork."""
SCRATCH_PREFIX = "kernelarc"
ENDING_S = 5.0
"""A killed process may take that long to disappear: the kernel frees its memory first."""
SHARED_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue")  # noqa: S108 - watched, not used


@dataclass(frozen=True)
class Process:
    """A process, told from a later one of the same number by when it started."""

    pid: int
    started: int
    """Clock ticks since the system started."""
    parent: int
    uid: int
    command: bytes

    @property
    def is_judge(self) -> bool:
        """Whether it is a judge: everything below one ends with it."""
        return self.command.split(b"\0")[2:4] == [WORKER, b"judge"]

    @property
    def is_sandboxed(self) -> bool:
        """Whether it is a zygote, or runs or ran below one."""
        arguments = self.command.split(b"\0")[2:4]
        return self.uid in CANDIDATE_UIDS or arguments == [WORKER, b"zygote"]


@dataclass(frozen=True)
class Trace:
    """What is there at one moment."""

    judge: JudgeState
    processes: frozenset[tuple[int, int]]
    """Pid and start of those below this judge, and of those that lost their judge."""
    files: frozenset[str]


def take(judge: JudgeState, isolation: Isolation, home: Path) -> Trace:
    """The trace now.

    Args:
        judge: What the judge says of itself.
        isolation: Tells whether candidates have user ids of their own.
        home: The guard's home folder.
    """
    return Trace(
        judge=judge,
        processes=frozenset((p.pid, p.started) for p in _sandbox_processes(judge.pid)),
        files=frozenset(_files(isolation, home)),
    )


def settled(trace: Trace, judge: JudgeState, isolation: Isolation, home: Path) -> Trace:
    """The trace once processes that are already dying are gone."""
    deadline = monotonic() + ENDING_S
    while True:
        after = take(judge, isolation, home)
        new = after.processes - trace.processes
        if not new or monotonic() >= deadline:
            return after
        _await_end(min(new)[0], deadline)


def differences(before: Trace, after: Trace) -> list[str]:
    """What is new or changed, one sentence each; empty: nothing is left."""
    found = [f"process {pid} is left" for pid, _ in sorted(after.processes - before.processes)]
    found += [f"file {path} is left" for path in sorted(after.files - before.files)]
    for name in JudgeState.model_fields:
        old, new = getattr(before.judge, name), getattr(after.judge, name)
        if old != new:
            found.append(f"the judge's {name} changed from {old} to {new}")
    return found


def _sandbox_processes(judge_pid: int) -> Iterator[Process]:
    """Processes below the judge, and sandboxed ones that no judge would take along.

    Those of another guard on this host have a judge above them and do not count.
    """
    table = {process.pid: process for process in _processes()}
    for process in table.values():
        above = list(_ancestors(process, table))
        is_below = any(p.pid == judge_pid for p in above)
        if is_below or (process.is_sandboxed and not any(p.is_judge for p in above)):
            yield process


def _ancestors(process: Process, table: dict[int, Process]) -> Iterator[Process]:
    while (parent := table.get(process.parent)) is not None:
        yield parent
        process = parent


def _processes() -> Iterator[Process]:
    """All processes that are alive; the dead who wait for their parent hold nothing."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with suppress(FileNotFoundError, ProcessLookupError):
            # The name, in parentheses, may have spaces of its own.
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            if fields[0] in "ZX":
                continue
            status = (folder / "status").read_text(errors="replace")
            yield Process(
                pid=int(folder.name),
                started=int(fields[19]),
                parent=int(fields[1]),
                uid=int(status.partition("\nUid:")[2].split()[0]),
                command=(folder / "cmdline").read_bytes(),
            )


def _await_end(pid: int, deadline: float) -> None:
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        select.select([fd], [], [], max(0.0, deadline - monotonic()))
    finally:
        os.close(fd)


def _files(isolation: Isolation, home: Path) -> Iterator[str]:
    """Everything in the guard's home, and what a candidate may own in shared folders."""
    yield from (str(path) for path in home.rglob("*"))
    own_uids = any(w.name == WallName.UID and w.stands for w in isolation.walls)
    for folder in sorted({*SHARED_FOLDERS, tempfile.gettempdir()}):
        with suppress(FileNotFoundError, PermissionError), os.scandir(folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    if _is_candidates(entry, own_uids=own_uids):
                        yield entry.path


def _is_candidates(entry: os.DirEntry[str], *, own_uids: bool) -> bool:
    """Whether a candidate may have made it.

    Where candidates run as the user, so does everything else of theirs: then only the sandbox's
    own folders are told from the rest.
    """
    owner = entry.stat(follow_symlinks=False).st_uid
    if own_uids:
        return owner in CANDIDATE_UIDS
    return owner == os.geteuid() and entry.name.startswith(SCRATCH_PREFIX)
