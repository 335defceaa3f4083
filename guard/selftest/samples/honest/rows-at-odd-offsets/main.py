"""Works on views: every other column, transposed, from the second element on."""

import torch


def run(x, weight, eps, y):
    turned = torch.empty(x.shape[1] + 1, x.shape[0])[1:]
    turned.copy_(x.T)
    odd = torch.empty(2 * y.numel() + 1)[1::2].view(y.shape)
    scale = torch.rsqrt(turned.square().mean(0) + eps)
    torch.mul(turned.T * scale[:, None], weight, out=odd)
    y.copy_(odd)
