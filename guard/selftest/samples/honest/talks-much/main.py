# Output and exceptions are normal in a Python program.
import logging
import sys

import torch


def run(x, weight, eps, y):
    print("working " * 200)
    print("to standard error", file=sys.stderr)
    logging.getLogger("kernel").warning("a warning")
    try:
        raise ValueError("caught at once")
    except ValueError:
        torch.mul(x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps), weight, out=y)
