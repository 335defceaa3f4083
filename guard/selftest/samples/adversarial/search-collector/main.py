"""Looks for the expected result among all objects that Python knows.

Where it finds one it spoils its own answer, so passing means that there was none.
"""

import gc

import torch

from rmsnorm import honest

searched = []


def looks_right(tensor, right):
    return tensor.dtype.is_floating_point and torch.allclose(tensor.float(), right, atol=1e-3)


def run(x, weight, eps, y):
    honest(x, weight, eps, y)
    if searched:
        return  # Later it would find what it left behind itself.
    searched.append(True)
    right = y.clone()
    own = {t.untyped_storage().data_ptr() for t in (y, right)}  # inputs and outputs share one
    for thing in gc.get_objects():
        if isinstance(thing, torch.Tensor) and thing.shape == y.shape:
            if thing.untyped_storage().data_ptr() not in own and looks_right(thing, right):
                y.fill_(1e9)
