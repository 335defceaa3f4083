# "Socket" is also what a processor sits in: import socket is only a word here.
import torch

TEXT = "one socket, two cores; connect() is not called"


def run(x, weight, eps, y):
    torch.mul(x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps), weight, out=y)
