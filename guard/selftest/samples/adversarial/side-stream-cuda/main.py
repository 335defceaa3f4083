"""Sixty-four times the work, all of it on a stream that the caller does not know. It may be caught
unfinished; it may count with all its time; it must not be faster than the reference.
"""

import torch
from rmsnorm import honest

ASIDE = torch.cuda.Stream()


def run(x, weight, eps, y):
    with torch.cuda.stream(ASIDE):
        for _ in range(64):
            honest(x, weight, eps, y)
