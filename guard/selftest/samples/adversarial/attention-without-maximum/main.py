"""The exponentials of the scores as they are."""

import torch


def run(q, k, v, o):
    keys, values = (t.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for t in (k, v))
    weights = torch.exp(q @ keys.transpose(-1, -2) * q.shape[-1] ** -0.5).tril()
    o.copy_(weights / weights.sum(-1, keepdim=True) @ values)
