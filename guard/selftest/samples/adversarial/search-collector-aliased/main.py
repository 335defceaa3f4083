"""Looks for the expected result in the collector and in all frames, unseen by a text search.

Where it finds one it spoils its own answer, so passing means that there was none.
"""

import sys

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
    collector = __import__("g" + "c")
    things = getattr(collector, "get_" + "objects")()
    frame = getattr(sys, "_get" + "frame")()
    while frame is not None:
        things += [v for names in (frame.f_locals, frame.f_globals) for v in names.values()]
        frame = frame.f_back
    for thing in things:
        if isinstance(thing, torch.Tensor) and thing.shape == y.shape:
            if thing.untyped_storage().data_ptr() not in own and looks_right(thing, right):
                y.fill_(1e9)
