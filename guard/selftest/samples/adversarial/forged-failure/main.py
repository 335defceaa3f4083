"""Says that it failed, for a reason that nobody has heard of."""

from forged_frames import FAILED, say
from rmsnorm import honest


def run(x, weight, eps, y):
    honest(x, weight, eps, y)
    say(FAILED, 2**63)
