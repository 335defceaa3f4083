"""What a candidate would change of the judge's own process if it could reach it."""

from __future__ import annotations

import hashlib
import os
import resource

from kernelarc.guard.schema.results import JudgeState


def own_state() -> JudgeState:
    """The state of this process now."""
    environment = "\0".join(f"{name}={value}" for name, value in sorted(os.environ.items()))
    limits = {name: getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")}
    return JudgeState(
        pid=os.getpid(),
        folder=os.getcwd(),
        processors=sorted(os.sched_getaffinity(0)),
        limits={name: resource.getrlimit(number) for name, number in limits.items()},
        environment=hashlib.sha256(environment.encode(errors="surrogateescape")).hexdigest(),
        descriptors=len(os.listdir("/proc/self/fd")),
    )
