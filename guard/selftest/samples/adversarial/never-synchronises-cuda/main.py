"""Every way to wait for the device from Python does nothing any more. Whoever trusts this process
to have waited measures a launch in place of two million cycles.
"""

import torch
from rmsnorm import honest

CYCLES = 2_000_000


def skip(*_, **__):
    return None


torch.cuda.synchronize = skip
torch.cuda.Stream.synchronize = torch.cuda.Event.synchronize = skip


def run(x, weight, eps, y):
    torch.cuda._sleep(CYCLES)
    honest(x, weight, eps, y)
