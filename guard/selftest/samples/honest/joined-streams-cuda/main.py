# A fork and a join, in stream order: whoever waits for the caller's stream waits for both halves.
import torch
from rmsnorm import honest

ASIDE = torch.cuda.Stream()


def run(x, weight, eps, y):
    caller, half = torch.cuda.current_stream(), x.shape[0] // 2
    ASIDE.wait_stream(caller)
    with torch.cuda.stream(ASIDE):
        honest(x[half:], weight, eps, y[half:])
    honest(x[:half], weight, eps, y[:half])
    caller.wait_stream(ASIDE)
