"""The reference itself, as a candidate: as fast as its opponent, so never promoted over it."""

import torch


def run(x, weight, eps):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    scale = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + eps)
    return (wide * scale * weight).to(x.dtype)
