"""Forks a worker that would outlive the call.

Where it can, it spoils its answer, so passing means that it could not.
"""

import os
import time

from rmsnorm import honest


def run(x, weight, eps, y):
    honest(x, weight, eps, y)
    try:
        child = os.fork()
    except OSError:
        return
    if child == 0:
        while True:
            time.sleep(1)
    y.fill_(1e9)
