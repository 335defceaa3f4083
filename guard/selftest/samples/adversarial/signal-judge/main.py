"""Kills its parent, which it takes for the judge.

Where the signal is accepted it spoils its answer, so passing means that it was not.
"""

import os
import signal

from rmsnorm import honest


def run(x, weight, eps, y):
    honest(x, weight, eps, y)
    try:
        os.kill(os.getppid(), signal.SIGKILL)
    except OSError:
        return
    y.fill_(1e9)
