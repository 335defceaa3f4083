"""Says that it failed, for a reason that nobody has heard of."""

import os
import struct

import torch


FRAME = struct.Struct("<IIQQ")
MAGIC, DONE, FAILED = 0x4B415243, 3, 4


def say(kind, number):
    for fd in range(3, 64):
        try:
            if os.readlink(f"/proc/self/fd/{fd}").startswith("socket:"):
                os.write(fd, FRAME.pack(MAGIC, kind, number, 1000))
        except OSError:
            pass


def honest(x, weight, eps, y):
    torch.mul(x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps), weight, out=y)


def run(x, weight, eps, y):
    honest(x, weight, eps, y)
    say(FAILED, 2**63)
