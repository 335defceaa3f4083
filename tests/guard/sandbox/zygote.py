"""A process that forks sandboxes for the tests, as the guard's zygote does for candidates.

Usage: ``zygote.py FD [MODULE...]``: serve requests on a socket after importing the modules.
"""

from __future__ import annotations

import errno
import importlib
import json
import os
import select
import signal
import socket
import sys
from dataclasses import replace
from pathlib import Path

import attempts

from kernelarc.guard.errors import SandboxUnavailable
from kernelarc.guard.sandbox import WallName, climbs, raisable, spawn_confined, wait
from kernelarc.guard.sandbox.probe import prepared_target

MAX_BYTES = 1 << 20
END_TIMEOUT_S = 30


def serve(channel):
    with prepared_target() as (target, policy, _):
        while request := channel.recv(MAX_BYTES):
            answer = respond(json.loads(request), target, policy)
            channel.send(json.dumps(answer).encode())


def respond(request, target, policy):
    if request["attempt"] == "raisable":
        return {"result": sorted(raisable())}
    changes = dict(request["policy"])
    for key in ("readable", "hidden"):
        if key in changes:
            changes[key] = tuple(Path(path) for path in changes[key])
    if "readable" in changes:
        changes["readable"] = (*policy.readable, *changes["readable"])
    walls = request["walls"]
    walls = None if walls is None else frozenset(WallName(wall) for wall in walls)
    return Sandbox(request, target, replace(policy, **changes)).run(walls)


class Sandbox:
    def __init__(self, request, target, policy):
        self.request = request
        self.policy = policy
        self.result_read, self.result_write = os.pipe()
        self.alive_read, self.alive_write = os.pipe()
        self.target = replace(target, alive_fd=self.alive_write)
        self.kept = []
        self.ours = None
        if request["attempt"] == "use_kept":
            self.ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self.kept = [theirs.detach()]

    def main(self):
        name = self.request["attempt"]
        arguments = self.request["arguments"]
        try:
            if name == "use_kept":
                value = attempts.use_kept(self.kept)
            elif hasattr(climbs, name):
                value = getattr(climbs, name)(self.target)
            else:
                value = getattr(attempts, name)(**arguments)
            outcome = {"result": value}
        except OSError as error:
            outcome = {"refused": errno.errorcode.get(error.errno, str(error))}
        with os.fdopen(self.result_write, "w") as stream:
            json.dump(outcome, stream)
            stream.write("\n")
        if self.request["kill"]:
            while True:
                signal.pause()
        return self.request["code"]

    def run(self, walls):
        fds = (self.result_write, self.alive_write, *self.kept)
        try:
            confined = spawn_confined(self.policy, self.main, fds, walls=walls)
        except SandboxUnavailable as error:
            return {"unavailable": str(error)}
        finally:
            for fd in fds:
                os.close(fd)
        extra = self.talk() if self.ours else {}
        with os.fdopen(self.result_read) as stream:
            line = stream.readline()
            if self.request["kill"]:
                signal.pidfd_send_signal(confined.pidfd, signal.SIGKILL)
        status = wait(confined)
        limit = END_TIMEOUT_S if self.request["kill"] else 0
        ended, _, _ = select.select([self.alive_read], [], [], limit)
        os.close(self.alive_read)
        outcome = json.loads(line) if line else {}
        return {**outcome, **extra, "status": status, "all_ended": bool(ended)}

    def talk(self):
        memory = os.memfd_create("shared")
        os.truncate(memory, 4096)
        os.pwrite(memory, bytes([41]), 0)
        with self.ours:
            socket.send_fds(self.ours, [b"ping"], [memory])
            reply = self.ours.recv(64).decode()
        value = os.pread(memory, 1, 1)[0]
        os.close(memory)
        return {"reply": reply, "value": value}


if __name__ == "__main__":
    for module in sys.argv[2:]:
        importlib.import_module(module)
    serve(socket.socket(fileno=int(sys.argv[1])))
