"""One percent too large everywhere."""

import torch


def run(x, weight, residual, y):
    torch.addmm(residual, x, weight.T, out=y)
    y.mul_(1.01)
