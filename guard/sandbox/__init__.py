"""The sandbox: a process that can compute, and do nothing else.

``spawn_confined`` starts one, ``probe`` tells which walls stand on this host by trying to climb
them. Linux on x86_64 and aarch64; only the standard library and system calls.
"""

from __future__ import annotations

from kernelarc.guard.sandbox.confine import confine
from kernelarc.guard.sandbox.policy import (
    CANDIDATE_UID,
    SCRATCH,
    Confined,
    SandboxPolicy,
    WallName,
    Walls,
    compiler_paths,
    python_paths,
)
from kernelarc.guard.sandbox.probe import probe, standing
from kernelarc.guard.sandbox.spawn import raisable, spawn_confined, wait

__all__ = [
    "CANDIDATE_UID",
    "SCRATCH",
    "Confined",
    "SandboxPolicy",
    "WallName",
    "Walls",
    "compiler_paths",
    "confine",
    "probe",
    "python_paths",
    "raisable",
    "spawn_confined",
    "standing",
    "wait",
]
