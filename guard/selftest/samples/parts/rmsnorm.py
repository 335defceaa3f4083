"""The right answer of the built-in problem."""

import torch


def honest(x, weight, eps, y):
    torch.mul(x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps), weight, out=y)
