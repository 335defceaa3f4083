"""Knows the protocol: reports its first batch as done before it did anything."""

import time

from forged_frames import DONE, say


def run(x, weight, eps, y):
    say(DONE, 1)
    time.sleep(2)
