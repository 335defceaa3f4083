# A dictionary of outputs in no order, not all of them contiguous.
import torch


def rotate(heads, cos, sin):
    low, high = heads.chunk(2, dim=-1)
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return torch.cat((low * cos - high * sin, high * cos + low * sin), dim=-1)


def run(q, k, v, cos, sin, slots, key_cache, value_cache):
    caches = torch.stack((key_cache, value_cache), dim=-1)
    caches[slots] = torch.stack((rotate(k, cos, sin), v), dim=-1)
    return {
        "value_cache_out": caches[..., 1],
        "key_cache_out": caches[..., 0],
        "q_out": rotate(q, cos, sin),
    }
