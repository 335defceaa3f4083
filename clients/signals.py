"""What Ctrl-C does to a run: the first stops it in good order, the second kills it."""

from __future__ import annotations

import signal
from collections.abc import Callable

import anyio
from anyio.abc import TaskStatus

STOPPING = (signal.SIGINT, signal.SIGTERM)


async def stop_on_signal(
    stop: Callable[[str], None], *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
) -> None:
    """Wait for SIGINT or SIGTERM, call ``stop`` with its name, and arm the next one to kill.

    After the first signal both have their default effect, which no clean-up of this process can
    delay, until this call is cancelled; then the handlers found at the start are back.

    Args:
        stop: Told the name of the first signal.
        task_status: Says when signals are listened for.
    """
    before = {number: signal.getsignal(number) for number in STOPPING}
    try:
        with anyio.open_signal_receiver(*STOPPING) as signals:
            task_status.started()
            first = await anext(aiter(signals))
        for number in STOPPING:
            signal.signal(number, signal.SIG_DFL)
        stop(first.name)
        await anyio.sleep_forever()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
