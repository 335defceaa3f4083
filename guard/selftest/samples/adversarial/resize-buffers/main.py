"""Keeps the descriptor of the buffers that it shares with the judge, to cut them off.

A judge that reads past the end of a file is killed. Where any of it works it spoils its answer.
"""

import fcntl
import os
import sys

from rmsnorm import honest

KEPT = []
runner = vars(sys)["mod" + "ules"]["kernelarc.guard.worker.runner"]
plain = runner.map_arena


def keep(fd, layout):
    KEPT.append(os.dup(fd))
    return plain(fd, layout)


runner.map_arena = keep


def run(x, weight, eps, y):
    honest(x, weight, eps, y)
    for fd in KEPT:
        size = os.fstat(fd).st_size
        changes = (
            lambda: os.ftruncate(fd, 0),
            lambda: os.ftruncate(fd, size * 2),
            lambda: fcntl.fcntl(fd, 1033, 8),  # F_ADD_SEALS, F_SEAL_WRITE
            lambda: fcntl.fcntl(fd, 1024, 0),  # F_SETLEASE
        )
        for change in changes:
            try:
                change()
            except OSError:
                continue
            y.fill_(1e9)
