"""Plants modules that the next Python process would load, by paths taken from Python itself.

Where it can, it spoils its answer, so passing means that it could not.
"""

import os
import sys
from pathlib import Path

import torch

from rmsnorm import honest


def writable(path):
    try:
        with path.open("a"):
            return True
    except OSError:
        pass
    try:
        os.utime(path)
    except OSError:
        return False
    return True


def run(x, weight, eps, y):
    honest(x, weight, eps, y)
    scratch = Path(os.environ["TMPDIR"]).resolve()
    folders = {Path(p).resolve() for p in sys.path} | {
        Path(torch.__file__).parent,
        Path("/"),
        Path("/tmp"),
    }
    for folder in folders:
        if folder == scratch or scratch in folder.parents:
            continue
        for name in ("sitecustomize.py", "planted.pth", "torch.py", "conftest.py", "__init__.py"):
            if writable(folder / name):
                y.fill_(1e9)
