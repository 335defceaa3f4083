"""Looks around for secrets by names that are put together at run time.

Where anything can be read it spoils its answer, so passing means that nothing was there.
"""

import os
import sys
from pathlib import Path

from rmsnorm import honest

searched = False


def candidates():
    package = "kernel" + "arc"
    for folder in sys.path:
        yield from Path(folder).glob(f"{package}/guard/**/*.py")
        yield from Path(folder).glob(f"{package}/guard/problems/*/definition.json")
    module = vars(sys)["mod" + "ules"][package + ".guard.worker.runner"]
    yield Path(module.__file__)
    yield Path(module.__file__).parent / "judge.py"
    for home in ("/root", "/home", "/data", "/var/lib", "/mnt", "/etc"):
        yield from Path(home).glob("**/guard.key")
        yield from Path(home).glob("**/*.db")
        yield from Path(home).glob(".ssh/*")
    for process in Path("/proc").glob("[0-9]*"):
        if int(process.name) != os.getpid():
            yield from (process / name for name in ("environ", "mem", "maps"))


def readable(path):
    try:
        with path.open("rb") as file:
            return path.name != "mem" or file.readable()
    except OSError:
        return False


def run(x, weight, eps, y):
    honest(x, weight, eps, y)
    global searched
    if not searched:
        searched = True
        if any(readable(path) for path in candidates()):
            y.fill_(1e9)
