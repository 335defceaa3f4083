# Threads of its own, all of them done when the call returns.
from concurrent.futures import ThreadPoolExecutor

import torch

WORKERS = ThreadPoolExecutor(2)


def attend(q, k, v, o, heads):
    group, length = q.shape[1] // k.shape[1], q.shape[2]
    future = torch.ones(length, length, dtype=torch.bool).triu(1)
    for head in heads:
        scores = q[:, head] @ k[:, head // group].transpose(-1, -2) * q.shape[-1] ** -0.5
        probs = torch.softmax(scores.masked_fill_(future, float("-inf")), dim=-1)
        o[:, head] = probs @ v[:, head // group]


def run(q, k, v, o):
    parts = [range(first, q.shape[1], 2) for first in range(2)]
    for job in [WORKERS.submit(attend, q, k, v, o, heads) for heads in parts]:
        job.result()
