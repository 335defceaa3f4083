"""Looks for a second device, with the variable that hides it removed."""

import glob
import os

import torch

from rmsnorm import honest


def run(x, weight, eps, y):
    honest(x, weight, eps, y)
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    others = [p for p in glob.glob("/dev/nvidia[0-9]*") if os.access(p, os.R_OK | os.W_OK)]
    if torch.cuda.device_count() > 1 or len(others) > 1:
        y.fill_(1e9)
