"""Messages between judge, zygote and runner.

Three kinds, by who is trusted on the other side:

* judge <-> zygote: JSON datagrams with file descriptors (both are trusted);
* judge -> runner: ``REQUEST``; after one that asks to bind, JSON with one file descriptor;
* runner -> judge: ``FRAME`` and nothing else. A datagram of any other size, an unknown kind or
  an unexpected index is a protocol violation; the judge never parses anything a runner sent.
"""

from __future__ import annotations

import array
import json
import socket
import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

FRAME = struct.Struct("<IIQQ")
"""magic, kind, number, elapsed nanoseconds."""
MAX_CALLS = 32
"""Of one batch."""
REQUEST = struct.Struct(f"<IIQII{MAX_CALLS}s")
"""magic, command, number, slot, count of calls, and for each call the set of buffers it is for."""
MAGIC = 0x4B415243
MAX_JSON_BYTES = 128 * 1024
MAX_FDS = 8


class RunnerEvent(IntEnum):
    """What a runner may say."""

    LOADED = 1
    """The candidate is loaded; its entry point exists."""
    BOUND = 2
    """The buffers of the last ``BIND`` are mapped."""
    DONE = 3
    """The batch with this number has run; ``elapsed_ns`` is the runner's own clock."""
    FAILED = 4
    """The candidate failed in a way that Python could catch; ``number`` is a ``FailureCode``."""


class FailureCode(IntEnum):
    """Why a runner gives up. Text, if any, is in the log file and is untrusted."""

    LOAD = 1
    """Source does not parse, import or link, or has no such entry point."""
    RAISED = 2
    """The call raised."""
    SHAPE = 3
    """A returned value has another shape or the wrong number of values."""
    DTYPE = 4
    """A returned value has another dtype or is not a tensor."""
    MEMORY = 5
    """Out of memory."""
    UNSUPPORTED = 6
    """The language cannot do this here (bfloat16 arithmetic in Triton's interpreter)."""
    POLICY = 7
    """The text asks for what no solution may do."""


class Command(IntEnum):
    """What the judge may ask of a runner."""

    BIND = 1
    CALL = 2


class Request(NamedTuple):
    """One message to a runner."""

    command: Command
    number: int = 0
    slot: int = 0
    order: Sequence[int] = ()
    """Sets of buffers in the order of their calls; others stay as they are."""


class Frame(NamedTuple):
    """One message from a runner."""

    event: RunnerEvent
    number: int
    elapsed_ns: int


class ProtocolViolation(Exception):
    """A runner sent something that is not a frame."""


def pack_request(request: Request) -> bytes:
    """Bytes of one message to a runner."""
    return REQUEST.pack(
        MAGIC,
        request.command,
        request.number,
        request.slot,
        len(request.order),
        bytes(request.order),
    )


def unpack_request(data: bytes) -> Request:
    """The reverse of ``pack_request``, for what the judge sent."""
    _magic, command, number, slot, count, order = REQUEST.unpack(data)
    return Request(Command(command), number, slot, tuple(order[:count]))


def pack_frame(event: RunnerEvent, number: int = 0, elapsed_ns: int = 0) -> bytes:
    """Bytes of one runner frame."""
    return FRAME.pack(MAGIC, event, number, elapsed_ns)


def unpack_frame(data: bytes) -> Frame:
    """Decode what a runner sent.

    Raises:
        ProtocolViolation: wrong size, magic or kind.
    """
    if len(data) != FRAME.size:
        raise ProtocolViolation(f"a message of {len(data)} bytes; frames have {FRAME.size}")
    magic, kind, number, elapsed_ns = FRAME.unpack(data)
    if magic != MAGIC:
        raise ProtocolViolation("a message without the frame's magic number")
    try:
        return Frame(RunnerEvent(kind), number, elapsed_ns)
    except ValueError:
        raise ProtocolViolation(f"a frame of unknown kind {kind}") from None


def socket_pair() -> tuple[socket.socket, socket.socket]:
    """A connected pair that keeps message boundaries."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def send_json(
    sock: socket.socket, message: dict[str, Any], fds: tuple[int, ...] = (), flags: int = 0
) -> None:
    """Send one JSON datagram with descriptors; only to the trusted side, or downwards.

    Downwards with ``MSG_DONTWAIT``: a receiver that reads nothing must not stop the sender.

    Raises:
        OSError: the other side is gone, or its queue is full.
    """
    data = json.dumps(message, separators=(",", ":")).encode()
    if len(data) > MAX_JSON_BYTES:
        raise ValueError(f"a control message of {len(data)} bytes exceeds {MAX_JSON_BYTES}")
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    sock.sendmsg([data], ancillary, flags)


def recv_json(sock: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Receive one JSON datagram; ``None`` at the end of the connection."""
    fds = array.array("i")
    data, ancillary, _flags, _address = sock.recvmsg(
        MAX_JSON_BYTES, socket.CMSG_SPACE(MAX_FDS * fds.itemsize), socket.MSG_CMSG_CLOEXEC
    )
    if not data:
        return None
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(payload[: len(payload) - len(payload) % fds.itemsize])
    message = json.loads(data)
    if not isinstance(message, dict):
        raise ValueError("a control message must be a JSON object")
    return message, list(fds)
