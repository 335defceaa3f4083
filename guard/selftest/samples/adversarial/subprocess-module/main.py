"""Lets another interpreter do the work.

Where one starts, it spoils its answer, so passing means that none did.
"""

import subprocess
import sys

from rmsnorm import honest


def run(x, weight, eps, y):
    honest(x, weight, eps, y)
    try:
        subprocess.run([sys.executable, "-c", "pass"], check=False)
    except OSError:
        return
    y.fill_(1e9)
