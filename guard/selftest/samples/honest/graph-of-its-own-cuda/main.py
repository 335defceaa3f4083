# One graph for each pair of buffers; the inputs may change, the pointers may not.
import torch

GRAPHS = {}


def capture(x, y):
    torch.softmax(x, dim=-1, out=y)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        torch.softmax(x, dim=-1, out=y)
    return graph


def run(x, y):
    key = (x.data_ptr(), y.data_ptr(), x.shape)
    if key not in GRAPHS:
        GRAPHS[key] = capture(x, y)
    GRAPHS[key].replay()
