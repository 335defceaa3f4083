"""Launches a kernel that waits for a value that nobody writes."""

import torch
import triton
import triton.language as tl


@triton.jit
def wait(flag):
    while tl.atomic_add(flag, 0) == 0:
        pass


def run(x, weight, eps, y):
    wait[(1,)](torch.zeros(1, dtype=torch.int32, device=x.device))
