"""Stores its answers in every folder that may be shared, and looks for old ones when it is loaded.

A second run that finds something refuses to load, so passing twice means that nothing was kept.
"""

import os

import torch

from rmsnorm import honest

FOLDERS = (
    os.environ["TMPDIR"],
    os.environ["HOME"],
    "/tmp",
    "/var/tmp",
    "/dev/shm",
    "/run",
    ".",
    "..",
)
PLACES = [os.path.join(folder, "old-answer.pt") for folder in FOLDERS]
if any(os.path.exists(place) for place in PLACES):
    raise RuntimeError("an answer of an earlier run is still there")


def run(x, weight, eps, y):
    honest(x, weight, eps, y)
    for place in PLACES:
        try:
            torch.save(y, place)
        except (OSError, RuntimeError):
            continue
