"""Lets another interpreter do the work.

Where one starts, it spoils its answer, so passing means that none did.
"""

import subprocess
import sys

import torch


def honest(x, weight, eps, y):
    torch.mul(x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps), weight, out=y)


def run(x, weight, eps, y):
    honest(x, weight, eps, y)
    try:
        subprocess.run([sys.executable, "-c", "pass"], check=False)
    except OSError:
        return
    y.fill_(1e9)
