"""Hangs up."""

import os

from rmsnorm import honest


def run(x, weight, eps, y):
    honest(x, weight, eps, y)
    os.closerange(3, 256)
