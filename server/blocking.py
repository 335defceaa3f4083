"""Blocking work (the archive, the similarity of sources) off the event loop."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import anyio
import anyio.to_thread

P = ParamSpec("P")
R = TypeVar("R")

_THREADS = anyio.CapacityLimiter(16)
"""Own threads, so that the archive never waits behind other users of the default pool."""


async def off_loop(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """``work(*args, **kwargs)`` in a worker thread.

    A cancelled caller still waits for the thread: a transaction is never left to itself.
    """
    return await anyio.to_thread.run_sync(
        functools.partial(work, *args, **kwargs), limiter=_THREADS
    )
