# A cache of constants: the mask is the same for all inputs of a length.
import torch

MASKS = {}


def run(q, k, v, o):
    group, length = q.shape[1] // k.shape[1], q.shape[2]
    if length not in MASKS:
        MASKS[length] = torch.full((length, length), float("-inf")).triu(1)
    keys = k.repeat_interleave(group, dim=1)
    values = v.repeat_interleave(group, dim=1)
    scores = q @ keys.transpose(-1, -2) * q.shape[-1] ** -0.5
    torch.matmul(torch.softmax(scores + MASKS[length], dim=-1), values, out=o)
