# Set-up at import, from nothing but constants.
import torch

TABLE = torch.arange(4096, dtype=torch.float64)


def run(x, weight, eps, y):
    assert TABLE.numel() == 4096
    torch.mul(x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps), weight, out=y)
