"""The server's side of the judge process."""

from __future__ import annotations

import sys

import anyio
import pytest

from kernelarc.guard import pipeline


@pytest.mark.parametrize("output", ["print('x' * 300_000)", "print('x' * 10)", "pass"])
def test_a_judge_that_says_too_much_or_too_little_is_given_up_without_an_error(output, monkeypatch):
    """An error there would end the task group of the whole server."""
    monkeypatch.setattr(pipeline, "MAX_LINE_BYTES", 1000)

    async def listen() -> None:
        async with await anyio.open_process([sys.executable, "-c", output]) as process:
            judge = pipeline._JudgeProcess(process)
            await judge._listen()
            assert judge.lost

    anyio.run(listen)
