"""Forks a worker that would outlive the call.

Where it can, it spoils its answer, so passing means that it could not.
"""

import os
import time

import torch


def honest(x, weight, eps, y):
    torch.mul(x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps), weight, out=y)


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
