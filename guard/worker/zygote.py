"""The zygote: a process that imported torch once and forks sandboxed children on request.

It is started by the judge before the judge reads any secret, holds none itself, and never loads
anything of a candidate. A fork from here has torch ready in milliseconds instead of seconds.

Requests and answers are JSON datagrams with file descriptors on one socket. A request is
``{"kind": "runner"|"compiler", "policy": {...}, "walls": [...]}`` with the descriptors that the
child will use;
the answer is ``{"ok": true}`` with the process descriptors of ``Confined``, or an error text.
"""

from __future__ import annotations

import gc
import itertools
import os
import secrets
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from kernelarc.guard.errors import SandboxUnavailable
from kernelarc.guard.sandbox import Confined, SandboxPolicy, WallName, spawn_confined
from kernelarc.guard.worker import compilation, runner
from kernelarc.guard.worker.channel import recv_json, send_json

USERS = 1024
"""User ids from the policy's on that sandboxes take in turn."""
_users = itertools.count(secrets.randbelow(USERS))


def serve(control: socket.socket) -> None:
    """Answer spawn requests until the judge hangs up."""
    _warm_up()
    send_json(control, {"ok": True, "ready": True})
    while (request := recv_json(control)) is not None:
        message, fds = request
        try:
            confined = _spawn(message, fds)
        except (SandboxUnavailable, OSError) as error:
            send_json(control, {"ok": False, "error": str(error)})
        else:
            send_json(control, {"ok": True}, tuple(confined))
            for fd in confined:
                os.close(fd)
        finally:
            for fd in fds:
                os.close(fd)


def _warm_up() -> None:
    """Touch what every runner needs, without starting a thread: a fork keeps only one."""
    torch.set_num_threads(1)
    torch.zeros(8).add_(1)
    # Collected objects would be copied by every fork; frozen ones are left alone.
    gc.freeze()


def _spawn(message: dict[str, Any], fds: list[int]) -> Confined:
    policy = policy_from_json(message["policy"])
    # As root, the limit on processes counts a user's over all sandboxes: with one user each, no
    # candidate can use up the threads of the leader, or of another judge's candidate.
    policy = replace(policy, uid=policy.uid + next(_users) % USERS)
    walls = frozenset(WallName(name) for name in message["walls"])
    if message["kind"] == "compiler":
        spec_fd, log_fd, out_fd = fds
        return spawn_confined(
            policy,
            lambda: compilation.compile_in_sandbox(runner.read_spec(spec_fd), log_fd, out_fd),
            fds,
            walls=walls,
        )
    control_fd, spec_fd, log_fd, *libraries = fds

    def main() -> int:
        with socket.socket(fileno=control_fd) as control:
            return runner.run(control, runner.read_spec(spec_fd), log_fd, *libraries)

    return spawn_confined(policy, main, fds, walls=walls)


def policy_to_json(policy: SandboxPolicy) -> dict[str, Any]:
    """A policy as it travels from the judge to the zygote."""
    data = dict(vars(policy))
    data["readable"] = [str(p) for p in policy.readable]
    data["hidden"] = [str(p) for p in policy.hidden]
    data["environment"] = dict(policy.environment)
    return data


def policy_from_json(data: dict[str, Any]) -> SandboxPolicy:
    """The reverse of ``policy_to_json``."""
    data = dict(data)
    data["readable"] = tuple(Path(p) for p in data["readable"])
    data["hidden"] = tuple(Path(p) for p in data["hidden"])
    data["cpus"] = data["cpus"] and tuple(data["cpus"])
    return SandboxPolicy(**data)


def main(control_fd: int) -> int:
    """Serve the judge at the other end of ``control_fd``."""
    serve(socket.socket(fileno=control_fd))
    return 0
