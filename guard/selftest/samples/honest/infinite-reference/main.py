"""Divides as the reference does, which is infinite or NaN everywhere."""

import torch


def run(x, y):
    torch.div(1, x - x, out=y)
