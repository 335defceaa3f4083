"""Takes the address of a tensor in host memory and writes to it from the device."""

import torch
import triton
import triton.language as tl


@triton.jit
def poke(address):
    tl.store(address.to(tl.pointer_type(tl.float32)), 1.0)


def run(x, weight, eps, y):
    poke[(1,)](torch.zeros(1024).data_ptr())
    torch.cuda.synchronize()
