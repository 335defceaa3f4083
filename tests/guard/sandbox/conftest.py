"""Hosts on which the sandbox is tested: what this machine is, and what it can be made into."""

from __future__ import annotations

import json
import os
import platform
import shlex
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NOBODY = 65534
MAX_BYTES = 1 << 20

if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"):
    collect_ignore_glob = ["test_*.py"]

AS_NOBODY = (
    f"setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups --inh-caps=-all --bounding-set=-all"
)
WITHOUT_USER_NAMESPACES = (
    "unshare -U --map-current-user --keep-caps sh -c "
    "'echo 0 > /proc/sys/user/max_user_namespaces && "
    'exec setpriv --ambient-caps=-all --inh-caps=-all "$@"\' sh'
)
# An interpreter below a closed home folder is moved to where another user can reach it.
OPEN_HOME = """
mount --make-rprivate / && mkdir -p {stage} && mount --rbind {home} {stage} &&
mount -t tmpfs -o mode=755 tmpfs {top} && mkdir -p {home} && mount --move {stage} {home} &&
rmdir {stage}
"""


@dataclass(frozen=True)
class Answer:
    """What came of one attempt in a sandbox."""

    status: int | None = None
    result: object = None
    refused: str | None = None
    unavailable: str | None = None
    all_ended: bool | None = None
    reply: str | None = None
    value: int | None = None


class Host:
    """A zygote on one kind of host."""

    def __init__(self, prefix: str, modules: tuple[str, ...] = ()) -> None:
        self._prefix = prefix
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, str(HERE / "zygote.py"), str(theirs.fileno()), *modules]
        self._channel = ours
        self._process = subprocess.Popen(
            ["sh", "-c", f"exec {prefix} {shlex.join(command)}"]
            if "\n" not in prefix
            else ["unshare", "-m", "sh", "-c", f"{prefix} {shlex.join(command)}"],
            pass_fds=(theirs.fileno(),),
            env={"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"},
        )
        theirs.close()

    def attempt(self, name, /, *, walls=None, policy=None, kill=False, code=0, **arguments):
        request = {
            "attempt": name,
            "walls": None if walls is None else sorted(walls),
            "policy": policy or {},
            "kill": kill,
            "code": code,
            "arguments": arguments,
        }
        self._channel.send(json.dumps(request).encode())
        answer = self._channel.recv(MAX_BYTES)
        assert answer, "the zygote of the tests died"
        return Answer(**json.loads(answer))

    def raisable(self) -> frozenset[str]:
        return frozenset(self.attempt("raisable").result)

    def probe(self):
        command = shlex.join([sys.executable, "-I", "-m", "kernelarc.guard.sandbox"])
        prefix = self._prefix
        shell = ["unshare", "-m", "sh", "-c"] if "\n" in prefix else ["sh", "-c"]
        done = subprocess.run(
            [*shell, f"{prefix} {command}"], capture_output=True, text=True, check=True
        )
        return done.stdout

    def close(self) -> None:
        self._channel.close()
        assert self._process.wait(30) == 0


def _closed_folder() -> Path | None:
    """The outermost folder above the interpreter that other users may not enter."""
    home = Path(os.path.realpath(sys.base_prefix))
    return next((p for p in reversed(home.parents) if not p.stat().st_mode & 0o001), None)


def _as_nobody(command: str) -> str:
    if os.geteuid() != 0:
        return command.removeprefix(AS_NOBODY).strip()
    top = _closed_folder()
    if top is None:
        return command
    home = Path(os.path.realpath(sys.base_prefix))
    stage = f"/tmp/kernelarc-test-{os.getpid()}"
    return OPEN_HOME.format(stage=stage, home=home, top=top) + "exec " + command


def _open_host(prefix: str, modules: tuple[str, ...] = ()):
    host = Host(prefix, modules)
    yield host
    host.close()


@pytest.fixture(scope="session")
def root_host():
    if os.geteuid() != 0:
        pytest.skip("needs root")
    yield from _open_host("")


@pytest.fixture(scope="session")
def user_host():
    yield from _open_host(_as_nobody(AS_NOBODY))


@pytest.fixture(scope="session")
def bare_host():
    """An ordinary user where user namespaces are forbidden."""
    yield from _open_host(_as_nobody(f"{AS_NOBODY} {WITHOUT_USER_NAMESPACES}"))


@pytest.fixture(scope="session")
def container_host():
    """Root as in a container: it may change users, but not mount."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    yield from _open_host("setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin")


@pytest.fixture(scope="session")
def generous_host():
    """Root on a host that grants high ranks to everybody."""
    raised = ["prlimit", "--rtprio=50", "--nice=40"]
    if shutil.which(raised[0]) is None or subprocess.run([*raised, "true"], check=False).returncode:
        pytest.skip("needs prlimit and the right to raise limits (CAP_SYS_RESOURCE)")
    yield from _open_host(shlex.join(raised))


@pytest.fixture(scope="session", params=["root_host", "user_host", "bare_host", "container_host"])
def host(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def best_host(request):
    """Root where the tests run as root, else the user."""
    return request.getfixturevalue("root_host" if os.geteuid() == 0 else "user_host")


@pytest.fixture(scope="session")
def torch_host():
    yield from _open_host("", ("torch",))
