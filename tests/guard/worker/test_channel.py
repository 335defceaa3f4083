"""Frames from a runner: the only untrusted bytes that the judge reads."""

from __future__ import annotations

import os
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")

from kernelarc.guard.worker.channel import (
    FRAME,
    MAX_CALLS,
    MAX_JSON_BYTES,
    Command,
    Frame,
    ProtocolViolation,
    Request,
    RunnerEvent,
    pack_frame,
    pack_request,
    recv_json,
    send_json,
    socket_pair,
    unpack_frame,
    unpack_request,
)


@given(st.sampled_from(RunnerEvent), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_a_frame_survives_the_wire(event, number, elapsed_ns):
    assert unpack_frame(pack_frame(event, number, elapsed_ns)) == Frame(event, number, elapsed_ns)


@given(
    st.sampled_from(Command),
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(0, 255), max_size=MAX_CALLS),
)
def test_a_request_survives_the_wire(command, number, slot, order):
    request = Request(command, number, slot, tuple(order))
    assert unpack_request(pack_request(request)) == request


@given(st.binary(max_size=200))
def test_any_other_bytes_are_a_violation_and_nothing_worse(data):
    try:
        frame = unpack_frame(data)
    except ProtocolViolation:
        return
    assert len(data) == FRAME.size
    assert pack_frame(*frame) == data


@pytest.mark.parametrize("data", [b"", b"PASS", b"\0" * FRAME.size, b"x" * 65536])
def test_forged_messages_are_violations(data):
    with pytest.raises(ProtocolViolation):
        unpack_frame(data)


def test_json_travels_with_its_descriptors():
    left, right = socket_pair()
    with left, right:
        read_end, write_end = os.pipe()
        send_json(left, {"command": 1}, (read_end,))
        os.close(read_end)
        message, fds = recv_json(right)
        os.write(write_end, b"through")
        os.close(write_end)
        assert message == {"command": 1}
        assert os.read(fds[0], 16) == b"through"
        os.close(fds[0])


def test_the_end_of_the_connection_is_none():
    left, right = socket_pair()
    left.close()
    with right:
        assert recv_json(right) is None


def test_an_oversized_message_is_refused_by_the_sender():
    left, right = socket_pair()
    with left, right, pytest.raises(ValueError, match="exceeds"):
        send_json(left, {"text": "x" * MAX_JSON_BYTES})


def test_a_receiver_that_reads_nothing_does_not_stop_the_sender():
    ours, theirs = socket_pair()
    with ours, theirs:
        with pytest.raises(BlockingIOError):
            send_many(ours, 100_000)
        assert recv_json(theirs) == ({"command": 2}, [])
        send_many(ours, 1)


def send_many(sock: socket.socket, count: int) -> None:
    for _ in range(count):
        send_json(sock, {"command": 2}, flags=socket.MSG_DONTWAIT)
