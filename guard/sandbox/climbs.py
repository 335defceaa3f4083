"""Attempts to climb the walls, run by ``probe`` inside the sandbox.

Each returns a sentence when it got over and raises ``OSError`` when it was stopped. None does
harm when it succeeds: they read marked files, touch marked folders and ask for rights.
"""

from __future__ import annotations

import mmap
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from kernelarc.guard.sandbox import kernel
from kernelarc.guard.sandbox.policy import WallName

LIMIT_DESCRIPTORS = 64
LIMIT_FILE_BYTES = 1 << 20
LIMIT_DATA_BYTES = 64 << 20
LIMIT_PROCESSES = 32

_PTRACE_SEIZE = 0x4206
_CLONE_NEWUSER = 0x10000000
_SHM_RDONLY = 0o10000


@dataclass(frozen=True)
class Target:
    """What the prober prepared to be attacked; it plays the judge."""

    pid: int
    """Of the prober."""
    address: int
    """Of 8 readable bytes in the prober's memory."""
    port: int
    """TCP port on which it listens, loopback."""
    abstract_name: str
    """Abstract Unix socket on which it listens."""
    named_socket: Path
    """Unix socket on which it listens, open to everybody."""
    shared_memory: int
    """Id of a System V segment that everybody may attach."""
    secret: Path
    """A file that everybody may read, in no readable folder of the policy."""
    private: Path
    """A file of the prober's alone, in a readable folder of the policy."""
    outside: Path
    """A folder in which everybody may write, outside the sandbox."""
    alive_fd: int
    """Write end of a pipe; as long as a process holds it, the prober sees it alive."""


Climb = Callable[[Target], str]


def write_outside(target: Target) -> str:
    """Create a file in a folder that is open to everybody."""
    (target.outside / f"{os.getpid()}").write_bytes(b"x")
    return "wrote a file outside the scratch folder"


def read_secret(target: Target) -> str:
    """Read a file that is open to everybody."""
    target.secret.read_bytes()
    return "read a file outside the readable folders"


def read_private(target: Target) -> str:
    """Read a file that only the prober's user may read, in a readable folder."""
    target.private.read_bytes()
    return "read a file that only the judge's user may read"


def read_memory(target: Target) -> str:
    """Read the prober's memory through ``/proc``."""
    with open(f"/proc/{_pid(target)}/mem", "rb", buffering=0) as memory:
        os.pread(memory.fileno(), 8, target.address)
    return "read the judge's memory"


def write_memory(target: Target) -> str:
    """Open the prober's memory for writing."""
    with open(f"/proc/{_pid(target)}/mem", "r+b", buffering=0):
        return "opened the judge's memory for writing"


def trace(target: Target) -> str:
    """Attach to the prober as a debugger."""
    kernel.call("ptrace", _PTRACE_SEIZE, _pid(target), 0, 0)
    return "attached to the judge as a debugger"


def signal_judge(target: Target) -> str:
    """Send the prober a signal (one that it ignores)."""
    os.kill(_pid(target), signal.SIGURG)
    return "sent the judge a signal"


def reschedule_judge(target: Target) -> str:
    """Set the prober's processors and priority (to what they are already)."""
    pid = _pid(target)
    os.sched_setaffinity(pid, os.sched_getaffinity(pid))
    os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, pid))
    return "set the judge's processors and priority"


def see_judge(target: Target) -> str:
    """Read the prober's command line."""
    Path(f"/proc/{_pid(target)}/cmdline").read_bytes()
    return "read the judge's command line"


def connect_tcp(target: Target) -> str:
    """Connect to a port of the prober's."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
        client.connect(("127.0.0.1", target.port))
    return "connected to a TCP port of the judge's host"


def connect_abstract(target: Target) -> str:
    """Connect to an abstract Unix socket of the prober's."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(f"\0{target.abstract_name}")
    return "connected to an abstract socket of the judge's host"


def connect_named(target: Target) -> str:
    """Connect to a Unix socket of the prober's by its path."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(str(target.named_socket))
    return "connected to a Unix socket of the judge's host"


def attach_memory(target: Target) -> str:
    """Attach a shared memory segment of the prober's."""
    kernel.call("shmat", target.shared_memory, None, _SHM_RDONLY)
    return "attached a shared memory segment of the judge's host"


def gain_rights(_target: Target) -> str:
    """Use a capability, or keep the way to one open."""
    if kernel.prctl(kernel.PR_GET_NO_NEW_PRIVS) != 1:
        return "privileged programs would still work"
    os.chroot("/")
    return "changed the root folder, which needs a capability"


def user_namespace(_target: Target) -> str:
    """Get all capabilities in a user namespace of one's own."""
    kernel.call("unshare", _CLONE_NEWUSER)
    return "made a user namespace"


def start_program(_target: Target) -> str:
    """Start another program."""
    subprocess.run([sys.executable, "-I", "-S", "-c", ""], check=False)
    return "started a program"


def many_descriptors(_target: Target) -> str:
    """Open more files than allowed."""
    opened: list[int] = []
    try:
        for _ in range(LIMIT_DESCRIPTORS + 1):
            opened.append(os.open(os.devnull, os.O_RDONLY))  # noqa: PERF401 - kept when it fails
    finally:
        for fd in opened:
            os.close(fd)
    return f"opened {LIMIT_DESCRIPTORS + 1} files"


def large_file(_target: Target) -> str:
    """Make a file larger than allowed, in the scratch folder."""
    path = Path("large")
    try:
        with path.open("wb") as file:
            file.truncate(LIMIT_FILE_BYTES + 1)
    finally:
        path.unlink(missing_ok=True)
    return f"made a file of {LIMIT_FILE_BYTES + 1} bytes"


def much_memory(_target: Target) -> str:
    """Map more private memory than allowed."""
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    with mmap.mmap(-1, 2 * LIMIT_DATA_BYTES, flags=private):
        return f"mapped {2 * LIMIT_DATA_BYTES} bytes of private memory"


def many_processes(_target: Target) -> str:
    """Have more processes than allowed."""
    started: list[int] = []
    try:
        for _ in range(LIMIT_PROCESSES + 1):
            started.append(_fork_and_wait())  # noqa: PERF401 - kept when it fails
    finally:
        for pid in started:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return f"started {LIMIT_PROCESSES + 1} processes"


def dump_core(_target: Target) -> str:
    """Be allowed a core dump, which would hold the memory shared with the judge."""
    if resource.getrlimit(resource.RLIMIT_CORE) == (0, 0):
        raise PermissionError("core dumps are limited to 0 bytes")
    return "a crash would leave a core dump"


def leave_survivor(target: Target) -> str:
    """Leave a process behind, in a session of its own and with the init as its parent.

    The prober decides whether it lives on: the pipe stays open as long as it does.
    """
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                signal.pause()
        os._exit(0)
    os.waitpid(child, 0)
    raise ProcessLookupError(f"left to the prober, by descriptor {target.alive_fd}")


def _fork_and_wait() -> int:
    pid = os.fork()
    if pid == 0:
        while True:
            signal.pause()
    return pid


def _pid(target: Target) -> int:
    """The prober's number, unless in here that number is this process itself."""
    if target.pid == os.getpid():
        raise ProcessLookupError("the judge's process id is this process's own here")
    return target.pid


ALONE: dict[WallName, tuple[Climb, ...]] = {
    WallName.UID: (read_private,),
    WallName.PRIVILEGES: (gain_rights,),
    WallName.PID_NAMESPACE: (signal_judge, reschedule_judge),
    WallName.MOUNT_NAMESPACE: (write_outside, read_secret, connect_named),
    WallName.NET_NAMESPACE: (connect_tcp, connect_abstract),
    WallName.IPC_NAMESPACE: (attach_memory,),
    WallName.LIMITS: (many_descriptors, large_file, much_memory, dump_core),
    WallName.LANDLOCK: (write_outside, read_secret, read_memory, trace),
    WallName.SECCOMP: (
        *(user_namespace, start_program, trace, reschedule_judge),
        *(connect_tcp, connect_named),
    ),
}
"""What each wall must stop without any other."""

TOGETHER: dict[WallName, tuple[Climb, ...]] = {
    WallName.PID_NAMESPACE: (see_judge, leave_survivor),
    WallName.LIMITS: (many_processes,),
    WallName.LANDLOCK: (write_memory,),
}
"""What a wall stops with the help of the others."""

ESSENTIAL: tuple[Climb, ...] = (
    *(write_outside, read_secret, read_memory, write_memory, trace, signal_judge),
    *(reschedule_judge, connect_tcp, connect_abstract, connect_named, leave_survivor),
)
"""What no candidate may ever do, whichever wall stops it."""

EVERY: tuple[Climb, ...] = tuple(
    dict.fromkeys(climb for table in (ALONE, TOGETHER) for some in table.values() for climb in some)
)


def attempt(climbs: Iterable[Climb], target: Target) -> dict[str, tuple[bool, str]]:
    """Try each; by name, whether it got over, and what happened."""
    outcome: dict[str, tuple[bool, str]] = {}
    for climb in climbs:
        try:
            outcome[climb.__name__] = (True, climb(target))
        except OSError as error:
            outcome[climb.__name__] = (False, error.strerror or str(error))
    return outcome
