"""Starting a confined process.

::

    caller (zygote)
      └─ supervisor   holds the status pipe; the caller can kill it
           └─ init    first of its process ids; in all other new namespaces; reaps
                └─ confined process, which behaves as if it were alone

The confined process is not the first of its process ids itself, because the kernel ignores
signals to that one; so a crash ends as the signal that it was. The init drops its rights as well.
It runs none of the candidate's code, is not dumpable (same-user access through ``/proc`` is
refused), lies outside the candidate's Landlock domain, and its end is the end of the sandbox.

Where the host forbids process namespaces, supervisor and init adopt orphans and kill everything
below them instead; the init does so too when the supervisor dies.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NoReturn

from kernelarc.guard.errors import SandboxUnavailable
from kernelarc.guard.sandbox import filetree, kernel, limits, namespaces, privileges
from kernelarc.guard.sandbox.confine import confine, raising
from kernelarc.guard.sandbox.policy import (
    NAMESPACES,
    SCRATCH,
    Confined,
    SandboxPolicy,
    WallName,
    Walls,
    scratch_environment,
)

_READY = b"\0"
_READY_TIMEOUT_MS = 30_000
_STATUS_BYTES = 4
_KILLED = int(signal.SIGKILL).to_bytes(_STATUS_BYTES, "little")
_STANDARD_FDS = 3

_unreaped: set[int] = set()
"""Supervisors of this process that may have ended since."""


@dataclass(frozen=True)
class _Job:
    """What the three processes of one sandbox share; inherited by fork."""

    policy: SandboxPolicy
    main: Callable[[], int]
    keep_fds: tuple[int, ...]
    walls: Walls
    ready_fd: int
    status_fd: int
    data_in_use_bytes: int
    caller: int
    """Process id of whom the sandbox must not outlive."""


def spawn_confined(
    policy: SandboxPolicy,
    main: Callable[[], int],
    keep_fds: Sequence[int],
    *,
    walls: Walls | None = None,
) -> Confined:
    """Fork a process, raise the walls around it, and run ``main`` in it.

    The caller must have one thread. Returns when every wall stands and ``main`` begins. The
    supervisor is a child of the caller; it is reaped by a later call of this function.

    Args:
        policy: What the process may do.
        main: Runs in the confined process; its result is the exit code (0 to 255). An exception
            ends the process with exit code 1.
        keep_fds: Descriptors above 2 that stay open in the confined process, under their
            numbers; all others are closed, and 0 to 2 lead to ``/dev/null``.
        walls: Which walls to raise; those that this host allows when ``None``. Give those that
            ``probe`` found standing to fail when one of them cannot be raised any more.

    Raises:
        SandboxUnavailable: A wall could not be raised; nothing of ``main`` has run.
    """
    if any(fd < _STANDARD_FDS for fd in keep_fds):
        raise ValueError(f"descriptors 0 to 2 cannot be kept: {list(keep_fds)}")
    walls = raisable() if walls is None else walls
    _reap()
    status_read, status_write = os.pipe()
    ready_read, ready_write = os.pipe()
    job = _Job(
        policy,
        main,
        tuple(keep_fds),
        walls,
        ready_write,
        status_write,
        data_in_use_bytes=limits.data_in_use(),
        caller=os.getpid(),
    )
    if WallName.MOUNT_NAMESPACE in walls:
        filetree.plan(policy.readable, policy.hidden)  # Cached here, for the forks to come.
    pid = os.fork()
    if pid == 0:
        _run_forked(ready_write, lambda: _supervise(job))
    _unreaped.add(pid)
    os.close(status_write)
    os.close(ready_write)
    try:
        _await_ready(ready_read)
    except SandboxUnavailable:
        os.kill(pid, signal.SIGKILL)
        os.close(status_read)
        raise
    finally:
        os.close(ready_read)
    return Confined(os.pidfd_open(pid), status_read)


@cache
def raisable() -> Walls:
    """The walls that this host lets this process raise, each tried once in a child.

    Raises:
        SandboxUnavailable: The platform is not supported.
    """
    kernel.machine()
    return frozenset(wall for wall in WallName if _can_raise(wall))


def _can_raise(wall: WallName) -> bool:
    try:
        confined = spawn_confined(
            SandboxPolicy(readable=()), lambda: 0, (), walls=frozenset({wall})
        )
    except SandboxUnavailable:
        return False
    wait(confined)
    return True


def wait(confined: Confined) -> int | None:
    """Block until everything in the sandbox has ended, and close the descriptors.

    Returns:
        The wait status of the confined process (see ``os.waitstatus_to_exitcode``); ``None``
        when the supervisor was killed.
    """
    status = os.read(confined.status_fd, _STATUS_BYTES)
    os.close(confined.status_fd)
    select.select([confined.pidfd], [], [])
    os.close(confined.pidfd)
    return int.from_bytes(status, "little") if len(status) == _STATUS_BYTES else None


def _reap() -> None:
    for pid in tuple(_unreaped):
        with suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG) == (0, 0):
                continue
        _unreaped.discard(pid)


def _await_ready(fd: int) -> None:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    if not poll.poll(_READY_TIMEOUT_MS):
        raise SandboxUnavailable("the sandbox was not ready after 30 s; the host is overloaded")
    with os.fdopen(os.dup(fd), "rb") as stream:
        answer = stream.read(4096) if (first := os.read(fd, 1)) != _READY else b""
    if first != _READY:
        text = (first + answer).decode("utf-8", errors="replace")
        raise SandboxUnavailable(text or "the sandbox ended before it was ready")


def _run_forked(ready_fd: int, body: Callable[[], int]) -> NoReturn:
    """Run ``body`` in a forked child, which never returns into its parent's code."""
    code = 1
    try:
        code = body()
    finally:
        error = sys.exc_info()[1]
        if error is not None:
            with suppress(OSError):
                os.write(ready_fd, (str(error) or type(error).__name__).encode()[:4096])
        os._exit(code & 0xFF)


def _supervise(job: _Job) -> int:
    """The supervisor: fork the init, wait, clear away, pass on the status."""
    _reset_signals()
    os.setsid()
    _keep_only((*job.keep_fds, job.ready_fd, job.status_fd))
    if WallName.UID in job.walls and not privileges.has_capability(privileges.CAP_SETUID):
        with raising(WallName.UID):
            raise PermissionError("only root can start processes as another user")
    privileges.set_dumpable(dumpable=True)  # Or its own files in /proc belong to root.
    if WallName.LIMITS in job.walls:
        with raising(WallName.LIMITS):
            limits.prefer_as_memory_victim()
    _leave_process_ids(job)
    _end_with_caller(job)
    privileges.set_dumpable(dumpable=False)
    namespaces.adopt_orphans()
    report_read, report_write = os.pipe()
    init = os.fork()
    if init == 0:
        os.close(job.status_fd)
        os.close(report_read)
        _run_forked(job.ready_fd, lambda: _be_init(job, report_write))
    for fd in (report_write, job.ready_fd, *job.keep_fds):
        os.close(fd)
    report = os.read(report_read, _STATUS_BYTES)
    if WallName.PID_NAMESPACE in job.walls:
        os.kill(init, signal.SIGKILL)
        os.waitpid(init, 0)  # The kernel ends this wait when the whole namespace is empty.
    else:
        namespaces.end_children()
    # Without a report the init was killed, which only the confined process could want.
    os.write(job.status_fd, report if len(report) == _STATUS_BYTES else _KILLED)
    return 0


def _end_with_caller(job: _Job) -> None:
    """End when the caller dies. A frozen process never learns that nobody is left to thaw it.

    Comes after the last change of rights, with which the kernel forgets this wish.
    """
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != job.caller:
        os._exit(1)


def _leave_process_ids(job: _Job) -> None:
    wanted = job.walls & NAMESPACES
    if wanted and not privileges.has_capability(privileges.CAP_SYS_ADMIN):
        # A user namespace maps one user only, so the user has to be the final one before.
        _become_candidate(job)
        with raising(min(wanted)):
            privileges.set_dumpable(dumpable=True)
            namespaces.enter_user_namespace()
    if WallName.PID_NAMESPACE in wanted:
        with raising(WallName.PID_NAMESPACE):
            namespaces.unshare(WallName.PID_NAMESPACE)


def _become_candidate(job: _Job) -> None:
    if WallName.UID in job.walls and os.getuid() != job.policy.uid:
        with raising(WallName.UID):
            privileges.become(job.policy.uid)


def _be_init(job: _Job, report_fd: int) -> int:
    """The init: build the rest of the walls that need rights, fork, reap, report."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, signal.SIGTERM})
    namespaces.adopt_orphans()
    for wall in sorted(job.walls & NAMESPACES - {WallName.PID_NAMESPACE}):
        with raising(wall):
            namespaces.unshare(wall)
    with _scratch(job) as scratch:
        status = _contain(job, scratch, report_fd)
    if status is not None:
        os.write(report_fd, status.to_bytes(_STATUS_BYTES, "little"))
    return 0


def _contain(job: _Job, scratch: Path, report_fd: int) -> int | None:
    """Drop the rights, fork the confined process, outlive it; its wait status."""
    if WallName.PRIVILEGES in job.walls:
        with raising(WallName.PRIVILEGES):
            privileges.bound_capabilities()
    _become_candidate(job)
    if WallName.PRIVILEGES in job.walls:
        with raising(WallName.PRIVILEGES):
            privileges.clear_capabilities()
    privileges.set_dumpable(dumpable=False)
    _end_with_parent(job, report_fd)
    pid = os.fork()
    if pid == 0:
        os.close(report_fd)
        _run_forked(job.ready_fd, lambda: _run_confined(job, scratch))
    for fd in (job.ready_fd, *job.keep_fds):
        os.close(fd)
    status = _await_child(pid)
    if WallName.PID_NAMESPACE not in job.walls:
        namespaces.end_children()
    return status


@contextmanager
def _scratch(job: _Job) -> Iterator[Path]:
    """The writable folder: a file system of its own, or else a folder in the host's.

    The latter is not limited in size as a whole, only file by file.
    """
    uid = job.policy.uid if WallName.UID in job.walls else os.geteuid()
    if WallName.MOUNT_NAMESPACE in job.walls:
        with raising(WallName.MOUNT_NAMESPACE):
            filetree.enter(
                filetree.plan(job.policy.readable, job.policy.hidden),
                scratch_bytes=job.policy.scratch_bytes,
                uid=uid,
                own_proc=WallName.PID_NAMESPACE in job.walls,
            )
        yield SCRATCH
        return
    scratch = Path(tempfile.mkdtemp(prefix=f"{SCRATCH.name}-", dir=SCRATCH.parent))
    try:
        if uid != os.geteuid():
            with raising(WallName.UID):
                os.chown(scratch, uid, uid)
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _end_with_parent(job: _Job, report_fd: int) -> None:
    """End when the supervisor dies; with it already dead, end now."""
    own_ids = WallName.PID_NAMESPACE in job.walls
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL if own_ids else signal.SIGTERM)
    poll = select.poll()
    poll.register(report_fd, 0)
    if poll.poll(0):  # Nobody can read the report any more.
        os._exit(1)


def _await_child(pid: int) -> int | None:
    """Reap until ``pid`` has ended; its wait status, or ``None`` when told to end before."""
    while signal.sigwait({signal.SIGCHLD, signal.SIGTERM}) == signal.SIGCHLD:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG)) != (0, 0):
                if ended[0] == pid:
                    return ended[1]
    return None


def _run_confined(job: _Job, scratch: Path) -> NoReturn:
    """The confined process: the walls around itself, then ``main``."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.environ.clear()
    os.environ.update(job.policy.environment)
    os.environ.update(scratch_environment(scratch))
    os.chdir(scratch)
    privileges.set_dumpable(dumpable=True)  # CUDA names its threads in /proc/self.
    confine(job.policy, walls=job.walls, scratch=scratch, data_in_use_bytes=job.data_in_use_bytes)
    os.write(job.ready_fd, _READY)
    os.close(job.ready_fd)
    code = 1
    try:
        code = job.main()
    finally:
        os._exit(code & 0xFF)


def _reset_signals() -> None:
    """Default actions and an empty mask, whatever the caller had; Python's own exceptions stay."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with suppress(OSError):
            signal.signal(number, signal.SIG_DFL)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _keep_only(fds: Sequence[int]) -> None:
    """Close all other descriptors and lead 0 to 2 to ``/dev/null``."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(_STANDARD_FDS):
        os.dup2(null, fd)
    start = _STANDARD_FDS
    for fd in sorted(set(fds)):
        os.closerange(start, fd)
        start = fd + 1
    os.closerange(start, os.sysconf("SC_OPEN_MAX"))
