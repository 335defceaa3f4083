"""Writes far outside every allocation of the device."""

import torch
import triton
import triton.language as tl


@triton.jit
def fault(y):
    tl.store(y + (1 << 40), 1.0)


def run(x, weight, eps, y):
    fault[(1,)](y)
    torch.cuda.synchronize()
