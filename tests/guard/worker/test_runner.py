"""The runner, spoken to as the judge does, in this process: what it says of each kind of candidate.

No sandbox is around it here; `tests/guard/test_verdicts.py` has the same within one.
"""

import fcntl
import os
import subprocess
import sys
import threading

import pytest
import torch

from kernelarc.guard import problems
from kernelarc.guard.schema import solution_from_source
from kernelarc.guard.worker import handover, runner
from kernelarc.guard.worker.buffers import Arena
from kernelarc.guard.worker.candidate import runner_spec, scalar_values, tensor_plans
from kernelarc.guard.worker.channel import (
    Command,
    FailureCode,
    Request,
    RunnerEvent,
    pack_request,
    send_json,
    socket_pair,
    unpack_frame,
)
from kernelarc.guard.worker.process import memory_file

pytestmark = pytest.mark.torch

PROBLEM = problems.get("rmsnorm")
WORKLOAD = PROBLEM.ranked("cpu")[0]
NORM = "x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight"
SETS = 2


class Served:
    """The judge's end of a runner that serves in a thread."""

    def __init__(self, spec, loop_fd, library_fd=None):
        self.log_fd = memory_file(b"")
        self.control, theirs = socket_pair()
        self.control.settimeout(60)
        self.arena = None

        def serve():
            with theirs:
                self.code = runner.run(theirs, spec, self.log_fd, loop_fd, library_fd)

        self._thread = threading.Thread(target=serve)
        self._thread.start()

    def said(self):
        return unpack_frame(self.control.recv(4096))

    def bind(self):
        self.arena = Arena(tensor_plans(PROBLEM, WORKLOAD), SETS)
        generator = torch.Generator().manual_seed(7)
        for k in range(SETS):
            self.arena.tensors(k)["x"].normal_(generator=generator)
            self.arena.tensors(k)["weight"].normal_(generator=generator)
        body = {
            "slot": 3,
            "layout": self.arena.layout(),
            "scalars": scalar_values(PROBLEM, WORKLOAD),
            "axes": PROBLEM.axes(WORKLOAD),
        }
        self.control.send(pack_request(Request(Command.BIND)))
        send_json(self.control, body, (self.arena.fd,))
        assert self.said().event is RunnerEvent.BOUND

    def call(self, index=1, order=tuple(range(SETS))):
        self.control.send(pack_request(Request(Command.CALL, index, 3, order)))
        return self.said()

    def close(self):
        self.control.close()
        self._thread.join(60)
        assert not self._thread.is_alive()
        text = os.pread(self.log_fd, 1 << 16, 0).decode()
        os.close(self.log_fd)
        if self.arena:
            self.arena.close()
        return self.code, text


@pytest.fixture(scope="module")
def loops(tmp_path_factory):
    """``loops(kinds)``: a descriptor of the compiled loop, under a name of its own.

    (dlopen takes two libraries of one name, like that of a descriptor, for the same.)
    """
    opened = {}
    folder = tmp_path_factory.mktemp("loops")

    def compiled(kinds):
        key = tuple(kinds)
        if key not in opened:
            (folder / "loop.c").write_text(handover.source(kinds))
            library = folder / f"loop-{len(opened)}.so"
            command = ["g++", *handover.FLAGS, "-Wall", "-Wextra", "-Werror"]
            subprocess.run([*command, folder / "loop.c", "-o", library], check=True)
            plain = os.open(library, os.O_RDONLY)
            opened[key] = fcntl.fcntl(plain, fcntl.F_DUPFD_CLOEXEC, 300 + len(opened))
            os.close(plain)
        return opened[key]

    yield compiled
    for fd in opened.values():
        os.close(fd)


@pytest.fixture(params=["native", "python"])
def served(monkeypatch, tmp_path, loops, request):
    """``served(spec)``, by either loop; it leaves no candidate's module in this process."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(sys, "path", list(sys.path))

    def start(spec, library_fd=None):
        native = request.param == "native"
        if spec["language"] == "cpp" and not native:
            pytest.skip("without a compiler there are no C++ solutions")
        return Served(spec, loops(spec["kinds"]) if native else None, library_fd)

    yield start
    sys.modules.pop("main", None)


def python(body, *, before="", returns=False):
    arguments = "x, weight, eps" if returns else "x, weight, eps, y"
    source = f"import torch\n{before}\n\ndef run({arguments}):\n    {body}\n"
    solution = solution_from_source(
        PROBLEM, source, "pytorch", destination_passing_style=not returns
    )
    return runner_spec(PROBLEM, solution)


def expected(tensors):
    names = {"x": tensors["x"], "weight": tensors["weight"], "torch": torch, "eps": 1e-5}
    return eval(NORM, names)


@pytest.mark.parametrize(
    "spec",
    [
        python(f"y.copy_({NORM})"),
        python(f"return {NORM}", returns=True),
        python(f"return [{NORM}]", returns=True),
        python(f"return {{'y': {NORM}}}", returns=True),
    ],
)
def test_a_candidate_is_loaded_bound_and_called_once_for_each_set(served, spec):
    judge = served(spec)
    assert judge.said().event is RunnerEvent.LOADED
    judge.bind()
    done = judge.call(index=41)
    assert (done.event, done.number) == (RunnerEvent.DONE, 41)
    assert done.elapsed_ns > 0
    for k in range(SETS):
        tensors = judge.arena.tensors(k)
        torch.testing.assert_close(tensors["y"], expected(tensors), rtol=1e-4, atol=1e-5)
    assert judge.close() == (0, "")


def test_a_library_is_called_with_plain_pointers(served, tmp_path):
    source = tmp_path / "k.c"
    source.write_text(
        "#include <stdint.h>\n"
        "void run(const float *x, const float *w, double eps, float *y, int64_t M, int64_t N)"
        "{ for (int64_t i = 0; i < M * N; ++i) y[i] = x[i] + w[i % N] + (float)eps; }\n"
    )
    library = tmp_path / "k.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    fd = os.open(library, os.O_RDONLY)
    spec = runner_spec(PROBLEM, solution_from_source(PROBLEM, "void run();", "cpp"))
    judge = served(spec, fd)
    assert judge.said().event is RunnerEvent.LOADED
    judge.bind()
    assert judge.call().event is RunnerEvent.DONE
    tensors = judge.arena.tensors(1)
    torch.testing.assert_close(tensors["y"], tensors["x"] + tensors["weight"] + 1e-5)
    assert judge.close()[0] == 0
    os.close(fd)


def test_only_the_sets_that_are_asked_for_are_called_and_in_that_order(served):
    judge = served(python("y.fill_(len(seen)); seen.append(1)", before="seen = []"))
    assert judge.said().event is RunnerEvent.LOADED
    judge.bind()
    judge.arena.tensors(0)["y"].fill_(-1)
    assert judge.call(order=[1]).event is RunnerEvent.DONE
    assert torch.all(judge.arena.tensors(0)["y"] == -1)
    assert torch.all(judge.arena.tensors(1)["y"] == 0)
    assert judge.call(index=2, order=[1, 0]).event is RunnerEvent.DONE
    assert torch.all(judge.arena.tensors(0)["y"] == 2)
    assert torch.all(judge.arena.tensors(1)["y"] == 1)
    assert judge.close()[0] == 0


def test_what_is_no_request_ends_a_runner(served, request):
    if "native" not in request.node.name:
        pytest.skip("the loop in Python raises, which ends it as well")
    judge = served(python("pass"))
    assert judge.said().event is RunnerEvent.LOADED
    judge.control.send(b"PASS")
    assert judge.control.recv(64) == b""
    assert judge.close()[0] == 4


def test_bytes_that_are_no_library_do_not_load(served):
    spec = runner_spec(PROBLEM, solution_from_source(PROBLEM, "void run();", "cpp"))
    plain = memory_file(b"not a library")
    fd = fcntl.fcntl(plain, fcntl.F_DUPFD_CLOEXEC, 200)  # a name that was never loaded
    os.close(plain)
    judge = served(spec, fd)
    said = judge.said()
    assert (said.event, said.number) == (RunnerEvent.FAILED, FailureCode.LOAD)
    assert judge.close()[0] == 3
    os.close(fd)


@pytest.mark.parametrize("passing", [True, False])
def test_the_null_candidate_does_nothing_or_only_what_the_runner_does(served, passing):
    spec = python("pass") | {"language": "null", "destination_passing": passing}
    judge = served(spec)
    assert judge.said().event is RunnerEvent.LOADED
    judge.bind()
    for k in range(SETS):
        judge.arena.tensors(k)["y"].fill_(5)
    assert judge.call().event is RunnerEvent.DONE
    left = 5 if passing else 0
    assert all(torch.all(judge.arena.tensors(k)["y"] == left) for k in range(SETS))
    assert judge.close()[0] == 0


@pytest.mark.parametrize(
    ("spec", "code", "words"),
    [
        (python("this is no Python"), FailureCode.LOAD, "main.py:5: invalid syntax"),
        (python("pass", before="import nothing_of_that_name"), FailureCode.LOAD, "nothing_of"),
        (python("pass", before="1 / 0"), FailureCode.RAISED, "ZeroDivisionError"),
        (python("pass", before="raise MemoryError('much')"), FailureCode.MEMORY, "out of memory"),
        (python("pass", before="import subprocess"), FailureCode.POLICY, "subprocess"),
        (
            python("pass") | {"entry": ["main.py", "other"], "screen": None},
            FailureCode.LOAD,
            "other",
        ),
        (
            python("pass", before="number = 3") | {"entry": ["main.py", "number"], "screen": None},
            FailureCode.LOAD,
            "number is not a function",
        ),
    ],
)
def test_a_candidate_that_does_not_load_is_explained(served, spec, code, words):
    judge = served(spec)
    said = judge.said()
    assert (said.event, said.number) == (RunnerEvent.FAILED, code)
    status, text = judge.close()
    assert status == 3
    assert words in text


@pytest.mark.parametrize(
    ("spec", "code", "words"),
    [
        (python("raise ValueError('in the third row')"), FailureCode.RAISED, "in the third row"),
        (python("raise SystemExit(0)"), FailureCode.RAISED, "SystemExit"),
        (python("raise MemoryError('much')"), FailureCode.MEMORY, "out of memory"),
        (python("raise RuntimeError('bad_alloc')"), FailureCode.MEMORY, "bad_alloc"),
        (python("return x[:1]", returns=True), FailureCode.SHAPE, "expected"),
        (python("return x, x", returns=True), FailureCode.SHAPE, "2 values returned"),
        (python("return {'z': x}", returns=True), FailureCode.SHAPE, "lacks ['y']"),
        (python("return x.double()", returns=True), FailureCode.DTYPE, "torch.float64"),
        (python("return 'PASS'", returns=True), FailureCode.DTYPE, "is a str"),
    ],
)
def test_a_call_that_fails_is_explained_without_paths_of_the_host(
    served, spec, code, words, tmp_path
):
    judge = served(spec)
    assert judge.said().event is RunnerEvent.LOADED
    judge.bind()
    said = judge.call()
    assert (said.event, said.number) == (RunnerEvent.FAILED, code)
    status, text = judge.close()
    assert status == 3
    assert words in text
    assert str(tmp_path) not in text
    assert sys.prefix not in text


def test_a_scalar_output_may_be_returned_as_a_number():
    target = torch.zeros((), dtype=torch.float32)
    runner._store(2.5, [target], ["y"])
    assert target.item() == 2.5


def test_the_text_of_a_failure_is_cut():
    fd = memory_file(b"")
    runner._log(fd, "x" * (2 * runner.MAX_LOG_BYTES))
    assert os.fstat(fd).st_size == runner.MAX_LOG_BYTES
    os.close(fd)


def test_a_spec_is_read_whatever_was_read_before():
    fd = memory_file(b'{"language": "cpp"}')
    os.lseek(fd, 5, os.SEEK_SET)
    assert runner.read_spec(fd) == {"language": "cpp"}
    assert runner.read_spec(fd) == {"language": "cpp"}
    os.close(fd)
