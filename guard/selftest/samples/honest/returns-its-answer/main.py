# Value-returning: the harness copies.
import torch


def run(x, weight, eps):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight
