"""Slow at first and then nearly as fast as the reference: among three calls luck might make it
faster; among as many as the judge wants, it is not.
"""

import time

from rmsnorm import honest

calls = 0


def run(x, weight, eps, y):
    global calls
    calls += 1
    if calls <= 4:
        time.sleep(0.02)
    honest(x, weight, eps, y)
    honest(x[: x.shape[0] // 4], weight, eps, y[: x.shape[0] // 4])
