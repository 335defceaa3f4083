"""A fair attempt at a problem whose reference gives another answer each time it is asked."""

import torch


def run(x, y):
    y.copy_(torch.nn.functional.dropout(x, 0.5, training=True))
