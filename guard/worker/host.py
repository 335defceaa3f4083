"""Facts of this host and the sandbox policies of its candidates."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import kernelarc
from kernelarc.guard.sandbox import SandboxPolicy, compiler_paths, python_paths
from kernelarc.guard.schema import Environment
from kernelarc.guard.version import GUARD_VERSION
from kernelarc.guard.worker.launch import WAIT_POLICY

MAX_THREADS = 16
"""Threads that a candidate may use, at most: thread counts are part of the environment key."""


@functools.cache
def compiler() -> str | None:
    """Path of g++, or ``None``."""
    return shutil.which("g++")


@functools.cache
def versions() -> dict[str, str]:
    """Versions of everything that can change a timing or a result on the CPU device."""
    found = {"python": platform.python_version(), "torch": importlib.metadata.version("torch")}
    if (path := compiler()) is not None:
        done = subprocess.run(
            [path, "-dumpfullversion"], capture_output=True, text=True, check=True, timeout=20
        )
        found["g++"] = done.stdout.strip()
    if importlib.util.find_spec("triton") is not None:
        found["triton"] = importlib.metadata.version("triton")
    return found


@dataclass(frozen=True)
class Processors:
    """Who runs where."""

    candidates: tuple[int, ...]
    """For candidates: a timing in which a candidate has to share its processor says more about
    the scheduler than about the kernel."""
    reserved: tuple[int, ...]
    """For the judge, and what is left for server and agents: a quarter, at least one."""

    @property
    def apart(self) -> bool:
        """Whether the judge can be busy without taking a candidate's processor."""
        return not set(self.candidates) & set(self.reserved)


@functools.cache
def processors() -> Processors:
    """The division of this host's processors; first called before the judge pins itself.

    With a single processor everybody shares it.
    """
    mine = sorted(os.sched_getaffinity(0))
    reserve = max(1, len(mine) // 4)
    candidates = tuple(mine[reserve:] or mine)[:MAX_THREADS]
    return Processors(candidates, tuple(mine[:reserve]))


def threads() -> int:
    """Hardware threads that candidates may use."""
    return len(processors().candidates)


@functools.cache
def processor_name() -> str:
    """The processor's model as the kernel names it."""
    for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def environment(copy_gbps: float | None, peak_gflops: float | None) -> Environment:
    """The environment of results made now on the CPU device."""
    name = f"{processor_name()} ({threads()} threads)"
    digest = hashlib.sha256(_machine_id()).hexdigest()
    parts = [GUARD_VERSION, name, digest, *(f"{k}={v}" for k, v in sorted(versions().items()))]
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return Environment(
        device="cpu",
        device_name=name,
        device_id=f"cpu-{digest[:12]}",
        guard_version=GUARD_VERSION,
        versions=versions(),
        threads=threads(),
        copy_gbps=copy_gbps,
        peak_gflops=peak_gflops,
        key=key,
    )


def _machine_id() -> bytes:
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        if (file := Path(path)).exists():
            return file.read_bytes()
    return platform.node().encode()


def _environment() -> dict[str, str]:
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": str(threads()),
        **WAIT_POLICY,
    }


@functools.cache
def runner_policy() -> SandboxPolicy:
    """What a candidate may see and use: the interpreter and its libraries, but not this package.

    The references of the built-in problems lie in it, and nobody needs to read them from a
    runner.
    """
    package = Path(kernelarc.__file__).resolve().parent
    return SandboxPolicy(
        readable=python_paths(),
        hidden=(package,),
        allow_fork=False,
        cpus=processors().candidates,
        environment=_environment(),
    )


@functools.cache
def compiler_policy() -> SandboxPolicy:
    """What g++ may see and use while it compiles a candidate."""
    return SandboxPolicy(readable=compiler_paths(), allow_exec=True, environment=_environment())
