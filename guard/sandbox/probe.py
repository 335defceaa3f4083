"""Which walls stand on this host, found out by trying to climb them.

Asking the kernel what it supports is not enough: a container may refuse what the kernel offers,
and a wall that was raised may enforce nothing. So each wall is raised alone and attacked, then
all of them together.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal

from kernelarc.guard.errors import SandboxUnavailable
from kernelarc.guard.sandbox import climbs, kernel, landlock
from kernelarc.guard.sandbox.climbs import Climb, Target
from kernelarc.guard.sandbox.policy import SandboxPolicy, WallName, Walls, python_paths
from kernelarc.guard.sandbox.spawn import spawn_confined, wait
from kernelarc.guard.schema.results import Isolation, Wall

_PROBE_TIMEOUT_S = 120
_IPC_PRIVATE, _IPC_CREAT, _IPC_RMID = 0, 0o1000, 0
_OPEN_TO_ALL = 0o666

Outcome = dict[str, tuple[bool, str]]


def probe() -> Isolation:
    """Raise the walls in child processes and try to climb them. Takes about a second.

    May be called from any thread: the work happens in a fresh interpreter.

    Raises:
        SandboxUnavailable: The probe itself failed, which says nothing about the walls.
    """
    try:
        kernel.machine()
    except SandboxUnavailable as error:
        return Isolation(
            level="none", walls=[Wall(name="platform", stands=False, detail=str(error))]
        )
    command = [sys.executable, "-I", "-m", "kernelarc.guard.sandbox"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PROBE_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SandboxUnavailable(
            f"the probe of the sandbox did not end within {_PROBE_TIMEOUT_S} s"
        ) from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise SandboxUnavailable(f"the probe of the sandbox failed: {last}")
    return Isolation.model_validate_json(done.stdout)


def standing(isolation: Isolation) -> Walls:
    """The walls that stand, as ``spawn_confined`` takes them."""
    known = {name.value for name in WallName}
    return frozenset(WallName(w.name) for w in isolation.walls if w.stands and w.name in known)


def probe_here() -> Isolation:
    """The work of ``probe``, in this process, which must have one thread.

    Raises:
        OSError: The targets could not be set up.
    """
    with prepared_target() as (target, policy, alive_read):
        refusals: dict[WallName, str] = {}
        alone: dict[WallName, Outcome] = {}
        for wall in WallName:
            try:
                alone[wall] = _attack(
                    frozenset({wall}), climbs.ALONE[wall], target, policy, alive_read
                )
            except SandboxUnavailable as error:
                refusals[wall] = str(error)
        together = _attack(frozenset(alone), climbs.EVERY, target, policy, alive_read)
    walls = [
        Wall(name=wall, stands=False, detail=refusals[wall])
        if wall in refusals
        else _judge_wall(wall, alone[wall], together)
        for wall in WallName
    ]
    return Isolation(level=_level(walls, together), walls=walls)


def _judge_wall(wall: WallName, alone: Outcome, together: Outcome) -> Wall:
    names = [climb.__name__ for climb in climbs.TOGETHER.get(wall, ())]
    results = alone | {name: together[name] for name in names}
    climbed = [text for over, text in results.values() if over]
    climbed += [f"with all walls: {together[name][1]}" for name in alone if together[name][0]]
    if climbed:
        return Wall(name=wall, stands=False, detail="; ".join(climbed))
    answers = "; ".join(f"{name}: {text}" for name, (_, text) in results.items())
    if wall is WallName.LANDLOCK:
        closes = ", ".join(("files", *landlock.reach(landlock.abi())))
        answers = f"version {landlock.abi()} ({closes}); {answers}"
    return Wall(name=wall, stands=True, detail=answers)


def _level(walls: list[Wall], together: Outcome) -> Literal["full", "reduced", "none"]:
    if any(together[climb.__name__][0] for climb in climbs.ESSENTIAL):
        return "none"
    return "full" if all(wall.stands for wall in walls) else "reduced"


def _attack(
    walls: Walls,
    attempts: tuple[Climb, ...],
    target: Target,
    policy: SandboxPolicy,
    alive_read: int,
) -> Outcome:
    read_fd, write_fd = os.pipe()

    def main() -> int:
        os.write(write_fd, json.dumps(climbs.attempt(attempts, target)).encode())
        return 0

    try:
        confined = spawn_confined(policy, main, (write_fd, target.alive_fd), walls=walls)
    finally:
        os.close(write_fd)
    with os.fdopen(read_fd, "rb") as results:
        status = wait(confined)
        answer = results.read() if status == 0 else b""
    if not answer:
        raise SandboxUnavailable(f"an attempt to climb ended with status {status}")
    outcome: Outcome = {name: (over, text) for name, (over, text) in json.loads(answer).items()}
    survivor = climbs.leave_survivor.__name__
    if survivor in outcome:
        outcome[survivor] = _survived(target, alive_read)
    return outcome


def _survived(target: Target, alive_read: int) -> tuple[bool, str]:
    """Whether any process but this one still holds the pipe. This one lets go of it here."""
    os.close(target.alive_fd)
    ended, _, _ = select.select([alive_read], [], [], 0)
    if ended:
        return False, "ended with the sandbox"
    return True, "a process outlived the sandbox"


@contextmanager
def prepared_target() -> Iterator[tuple[Target, SandboxPolicy, int]]:
    """Everything that the climbs attack, a policy for them, and the read end of the pipe."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kernelarc-probe-")))
        folder.chmod(0o755)
        readable, outside = folder / "readable", folder / "outside"
        for place, mode in ((readable, 0o755), (outside, 0o777)):
            place.mkdir()
            place.chmod(mode)
        secret, private = folder / "secret", readable / "private"
        for file, mode in ((secret, 0o644), (private, 0o600)):
            file.write_bytes(b"secret")
            file.chmod(mode)
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        name = f"kernelarc-probe-{os.getpid()}"
        abstract.bind(f"\0{name}")
        abstract.listen()
        named = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        named.bind(str(folder / "socket"))
        (folder / "socket").chmod(_OPEN_TO_ALL)
        named.listen()
        segment = kernel.call("shmget", _IPC_PRIVATE, 4096, _IPC_CREAT | _OPEN_TO_ALL)
        stack.callback(kernel.call, "shmctl", segment, _IPC_RMID, None)
        signal.signal(signal.SIGURG, signal.SIG_IGN)
        marked = ctypes.create_string_buffer(8)
        alive_read, alive_write = os.pipe()
        stack.callback(os.close, alive_read)
        target = Target(
            pid=os.getpid(),
            address=ctypes.addressof(marked),
            port=tcp.getsockname()[1],
            abstract_name=name,
            named_socket=folder / "socket",
            shared_memory=segment,
            secret=secret,
            private=private,
            outside=outside,
            alive_fd=alive_write,
        )
        policy = SandboxPolicy(
            readable=(*python_paths(), readable),
            open_files=climbs.LIMIT_DESCRIPTORS,
            file_bytes=climbs.LIMIT_FILE_BYTES,
            data_bytes=climbs.LIMIT_DATA_BYTES,
            processes=climbs.LIMIT_PROCESSES,
        )
        yield target, policy, alive_read
