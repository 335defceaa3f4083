"""A graph is bound to the buffers of its capture. The next pair of buffers of the same shape gets a
replay on the first pair, which writes the answer where it is not wanted.
"""

import torch

GRAPHS = {}


def run(x, y):
    if x.shape not in GRAPHS:
        torch.softmax(x, dim=-1, out=y)
        torch.cuda.synchronize()
        GRAPHS[x.shape] = graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            torch.softmax(x, dim=-1, out=y)
    GRAPHS[x.shape].replay()
