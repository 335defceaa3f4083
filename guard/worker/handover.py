"""The native loop of a runner: its source for a problem's arguments, and how a runner drives it.

``handover.c`` says why it is native. It runs in the untrusted process, so the judge believes
nothing of it; it is only as fast as anything that a candidate could put in its place.
"""

from __future__ import annotations

import ctypes
import functools
import socket
from collections.abc import Callable, Sequence
from enum import IntEnum
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from kernelarc.guard.schema import Problem
from kernelarc.guard.worker.channel import (
    REQUEST,
    Command,
    RunnerEvent,
    pack_frame,
    unpack_request,
)

SOURCE = Path(__file__).parent / "handover.c"
FLAGS = ("-x", "c", "-O2", "-shared", "-fPIC")
_TYPES = {"pointer": "void *", "real": "double", "integer": "int64_t"}
PAUSE_NS = 300_000
"""How long a batch of a null candidate takes. Not nothing: while a real one is at work, the judge
gets ready to see its end, and that part of the hand-over does not add to its time."""
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint32, ctypes.c_uint32)

Words = Sequence[int | float]
"""Arguments of one call: addresses, scalars, axis sizes, in the order of the entry point's."""


class Word(ctypes.Union):
    """``union word`` of ``handover.c``."""

    _fields_ = [
        ("pointer", ctypes.c_void_p),
        ("real", ctypes.c_double),
        ("integer", ctypes.c_int64),
    ]


class Served(IntEnum):
    """Why the loop came back."""

    HUNG_UP = 0
    BIND_FOLLOWS = 1
    CALL_FAILED = 2
    NOT_A_REQUEST = 3


def argument_kinds(problem: Problem) -> list[str]:
    """Kind of each argument of a C++ entry point: inputs, outputs, then axes."""
    kinds = []
    for spec in problem.definition.inputs.values():
        if spec.shape is not None:
            kinds.append("pointer")
        else:
            kinds.append("real" if spec.dtype.is_float else "integer")
    kinds += ["pointer"] * len(problem.definition.outputs)
    kinds += ["integer"] * len(problem.definition.axes)
    return kinds


@functools.cache
def _loop() -> str:
    return SOURCE.read_text("utf-8")


def source(kinds: Sequence[str]) -> str:
    """C source of the loop that calls an entry point with such arguments."""
    types = ", ".join(_TYPES[kind] for kind in kinds)
    values = ", ".join(f"(a)[{i}].{kind}" for i, kind in enumerate(kinds))
    return f"#define CALL(f, a) ((void (*)({types}))(f))({values})\n{_loop()}"


class Loop:
    """The loop of one runner."""

    def __init__(
        self,
        library: ctypes.CDLL | None,
        *,
        entry: int | None = None,
        kinds: Sequence[str] = (),
        call: Callable[[int, int], bool] | None = None,
    ) -> None:
        """Either an ``entry`` point with arguments of ``kinds``, or ``call``, or a pause.

        Args:
            library: The compiled loop. ``None`` where there is no compiler: calls are then
                answered by Python, well enough to verify but not to time anything.
            entry: Address of a function; needs the library.
            kinds: As ``argument_kinds`` gives them.
            call: Called with the numbers of slot and set; returns whether it went well.
        """
        self._library = library
        self._entry = entry
        self._kinds = list(kinds)
        self._call = call
        # Kept: ctypes does not hold on to a function that C was given.
        self._callback = _CALLBACK(self._called) if call else _CALLBACK()
        self._slots: dict[int, Any] = {}

    def bind(self, slot: int, sets: Sequence[Words]) -> None:
        """Remember the arguments of an entry point for all sets of a slot."""
        table = (Word * (len(sets) * len(self._kinds)))()
        flat = (pair for words in sets for pair in zip(self._kinds, words, strict=True))
        for word, (kind, value) in zip(table, flat, strict=True):
            setattr(word, kind, value)
        self._slots[slot] = table

    def serve(self, control: socket.socket) -> Served:
        """Answer calls until something else is asked for."""
        if self._library is None:
            return self._serve_in_python(control)
        pointers = (ctypes.POINTER(Word) * (max(self._slots, default=0) + 1))()
        for slot, table in self._slots.items():
            pointers[slot] = table
        result = self._library.serve(
            ctypes.c_int(control.fileno()),
            ctypes.c_void_p(self._entry),
            pointers,
            ctypes.c_uint32(len(self._kinds)),
            self._callback,
            ctypes.c_int64(PAUSE_NS),
        )
        return Served(result)

    def _called(self, slot: int, set_index: int) -> int:
        assert self._call is not None
        return 0 if self._call(slot, set_index) else 1

    def _serve_in_python(self, control: socket.socket) -> Served:
        while data := control.recv(REQUEST.size):
            request = unpack_request(data)
            if request.command is not Command.CALL:
                return Served.BIND_FOLLOWS
            start = perf_counter_ns()
            for set_index in request.order:
                if self._call and not self._call(request.slot, set_index):
                    return Served.CALL_FAILED
            elapsed = perf_counter_ns() - start
            control.send(pack_frame(RunnerEvent.DONE, request.number, elapsed))
        return Served.HUNG_UP
