"""Answers rightly and keeps most of the device's memory."""

import torch

from rmsnorm import honest

KEPT = []


def run(x, weight, eps, y):
    honest(x, weight, eps, y)
    if not KEPT:
        free, _ = torch.cuda.mem_get_info()
        KEPT.append(torch.empty(free * 9 // 10, dtype=torch.uint8, device=x.device))
