"""Fills the only folder that it can write to.

Where it gets more than 2 GB it spoils its answer, so passing means that there is an end to it.
"""

import os
from pathlib import Path

from rmsnorm import honest

FILLED = []


def run(x, weight, eps, y):
    honest(x, weight, eps, y)
    if FILLED:
        return
    FILLED.append(True)
    block, written, folder = b"x" * (16 << 20), 0, Path(os.environ["TMPDIR"])
    try:
        for number in range(160):
            (folder / f"block-{number}").write_bytes(block)
            written += len(block)
    except OSError:
        pass
    for file in folder.glob("block-*"):
        file.unlink()
    if written > 2 << 30:
        y.fill_(1e9)
