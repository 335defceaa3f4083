"""Kills its parent, which it takes for the judge.

Where the signal is accepted it spoils its answer, so passing means that it was not.
"""

import os
import signal

import torch


def honest(x, weight, eps, y):
    torch.mul(x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps), weight, out=y)


def run(x, weight, eps, y):
    honest(x, weight, eps, y)
    try:
        os.kill(os.getppid(), signal.SIGKILL)
    except OSError:
        return
    y.fill_(1e9)
