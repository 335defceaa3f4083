"""The native loop agrees with the frames and with the arguments that Python hands it."""

import ctypes
import re
import subprocess

import pytest

pytest.importorskip("torch")

from kernelarc.guard import problems
from kernelarc.guard.worker import channel, handover
from kernelarc.guard.worker.handover import Loop, Served, Word, argument_kinds

KINDS = ["pointer", "real", "integer"] * 7 + ["pointer", "integer"] * 4


def test_the_arguments_of_a_problem_are_inputs_outputs_axes():
    assert argument_kinds(problems.get("rmsnorm")) == [
        *("pointer", "pointer", "real"),
        "pointer",
        *("integer", "integer"),
    ]


def test_frames_of_the_native_loop_have_the_sizes_and_numbers_of_the_protocol(tmp_path):
    probe = tmp_path / "probe.c"
    probe.write_text(
        handover.source([]) + '#include <stdio.h>\nint main(void) { printf("%zu %zu %u %d %d %d", '
        "sizeof(struct request), sizeof(struct event), (unsigned)MAGIC, COMMAND_CALL, EVENT_DONE, "
        "MAX_CALLS); }\n"
    )
    subprocess.run(["gcc", probe, "-o", tmp_path / "probe"], check=True)
    done = subprocess.run([tmp_path / "probe"], check=True, capture_output=True, text=True)
    assert [int(word) for word in done.stdout.split()] == [
        channel.REQUEST.size,
        channel.FRAME.size,
        channel.MAGIC,
        channel.Command.CALL,
        channel.RunnerEvent.DONE,
        channel.MAX_CALLS,
    ]
    reasons = re.search(r"enum \{ (HUNG_UP[^}]*) \}", handover.SOURCE.read_text()).group(1)
    assert dict(item.split(" = ") for item in reasons.split(", ")) == {
        reason.name: str(reason.value) for reason in Served
    }


@pytest.fixture
def library(tmp_path):
    """The loop for ``KINDS``, and an entry point ``sum`` that notes what it was given."""
    types = {"pointer": "void *", "real": "double", "integer": "int64_t"}
    parameters = ", ".join(f"{types[k]} a{i}" for i, k in enumerate(KINDS))
    noted = "".join(f"noted[{i}].{k} = a{i}; " for i, k in enumerate(KINDS))
    (tmp_path / "loop.c").write_text(
        handover.source(KINDS)
        + f"union word noted[{len(KINDS)}];\nvoid note({parameters}) {{ {noted}}}\n"
    )
    path = tmp_path / "loop.so"
    subprocess.run(["g++", *handover.FLAGS, tmp_path / "loop.c", "-o", path], check=True)
    return ctypes.CDLL(str(path))


def test_many_arguments_of_each_kind_arrive_as_they_were_given(library):
    entry = ctypes.cast(library.note, ctypes.c_void_p).value
    loop = Loop(library, entry=entry, kinds=KINDS)
    sets = [
        [(i + 1.5 if k == "real" else 100 * s + i) for i, k in enumerate(KINDS)] for s in (0, 1)
    ]
    loop.bind(2, sets)
    ours, theirs = channel.socket_pair()
    with theirs:
        with ours:
            call = channel.Request(channel.Command.CALL, 9, 2, (0, 1))
            ours.send(channel.pack_request(call))
            ours.send(channel.pack_request(channel.Request(channel.Command.BIND)))
            assert loop.serve(theirs) is Served.BIND_FOLLOWS
            done = channel.unpack_frame(ours.recv(64))
            assert (done.event, done.number) == (channel.RunnerEvent.DONE, 9)
        assert loop.serve(theirs) is Served.HUNG_UP
    noted = (Word * len(KINDS)).in_dll(library, "noted")
    assert [getattr(word, kind) for word, kind in zip(noted, KINDS, strict=True)] == sets[1]


def test_a_batch_of_a_null_candidate_takes_a_while_and_says_so(library):
    loop = Loop(library)
    ours, theirs = channel.socket_pair()
    with theirs, ours:
        ours.send(channel.pack_request(channel.Request(channel.Command.CALL, 1, 0, (0,))))
        ours.send(channel.pack_request(channel.Request(channel.Command.BIND)))
        loop.serve(theirs)
        assert channel.unpack_frame(ours.recv(64)).elapsed_ns >= handover.PAUSE_NS
