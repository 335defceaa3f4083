"""Calls the C library through ctypes to leave its namespaces.

Where it can, it spoils its answer, so passing means that it could not.
"""

import ctypes

from rmsnorm import honest

LIBC = ctypes.CDLL(None, use_errno=True)


def run(x, weight, eps, y):
    honest(x, weight, eps, y)
    if LIBC.unshare(0x10000000) == 0 or LIBC.mount(b"none", b"/", b"tmpfs", 0, None) == 0:
        y.fill_(1e9)
