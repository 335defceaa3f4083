# A program may look at itself; if it cannot, its answer is wrong.
from pathlib import Path

import torch

LINES = Path(__file__).read_text().count("import torch")


def run(x, weight, eps, y):
    if LINES:
        torch.mul(x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps), weight, out=y)
