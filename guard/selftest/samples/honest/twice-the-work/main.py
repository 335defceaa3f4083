# Right and slow: a backup.
import torch


def run(x, y):
    for _ in range(2):
        weights = torch.exp(x - x.amax(dim=-1, keepdim=True))
        torch.div(weights, weights.sum(dim=-1, keepdim=True), out=y)
