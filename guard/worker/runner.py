"""The runner: loads one candidate in the sandbox and calls it when told.

Everything in this process is untrusted from the moment the candidate is loaded. It can lie in its
frames and in its log; it cannot see the reference's result, the seeds, other candidates, or any
buffer but the ones it is given, and the judge believes nothing it says.

The process is forked from the zygote, so torch is imported already; this module must not import
anything after the sandbox closed that lies outside the readable folders.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from kernelarc.guard.worker.buffers import map_arena
from kernelarc.guard.worker.channel import (
    FailureCode,
    RunnerEvent,
    pack_frame,
    recv_json,
)
from kernelarc.guard.worker.compilation import load_failure, screened
from kernelarc.guard.worker.handover import Loop, Served
from kernelarc.guard.worker.interpreter import REASON, prepare_interpreter

MAX_LOG_BYTES = 64 * 1024

Call = Callable[[], None]
"""One bound call: arguments are fixed, only the contents of the buffers change."""
Tensors = dict[str, torch.Tensor]
Bind = Callable[[Tensors, dict[str, Any], dict[str, int]], Call]


class CandidateFailure(Exception):
    """The candidate failed; the code goes into a frame, the text into the log."""

    def __init__(self, code: FailureCode, text: str) -> None:
        self.code = code
        super().__init__(text)


def run(
    control: socket.socket,
    spec: dict[str, Any],
    log_fd: int,
    loop_fd: int | None = None,
    library_fd: int | None = None,
) -> int:
    """Serve one candidate until the judge hangs up. Returns the exit code.

    Args:
        control: Sequenced-packet socket to the judge.
        spec: What to load: ``language``, ``files``, ``entry``, ``destination_passing``,
            ``inputs``, ``outputs``, ``kinds`` (of the arguments of a native entry point),
            ``threads``.
        log_fd: Memory file for the text of a failure.
        loop_fd: Memory file with the compiled loop; ``None`` where there is no compiler.
        library_fd: Memory file with the compiled library, for ``cpp``.
    """
    mappings: dict[int, mmap.mmap] = {}
    try:
        torch.set_num_threads(int(spec["threads"]))
        # Before the candidate: whatever it brings along, this one finds its own symbols.
        loop = ctypes.CDLL(f"/proc/self/fd/{loop_fd}") if loop_fd is not None else None
        served = _load(spec, loop, library_fd)
        control.send(pack_frame(RunnerEvent.LOADED))
        while (reason := served.loop.serve(control)) is Served.BIND_FOLLOWS:
            message = recv_json(control)
            if message is None:
                return 0
            body, fds = message
            # A mapping that is replaced goes when the last view of it does.
            slot = body["slot"]
            mappings[slot], sets = map_arena(fds[0], body["layout"])
            os.close(fds[0])
            served.bind(slot, sets, body["scalars"], body["axes"])
            control.send(pack_frame(RunnerEvent.BOUND))
        if reason is Served.CALL_FAILED:
            assert served.failure is not None
            raise served.failure
    except CandidateFailure as failure:
        _log(log_fd, str(failure))
        control.send(pack_frame(RunnerEvent.FAILED, failure.code))
        return 3
    return 0 if reason is Served.HUNG_UP else 4


class Native:
    """A library's entry point, called by the loop itself."""

    failure: CandidateFailure | None = None

    def __init__(self, spec: dict[str, Any], loop: ctypes.CDLL | None, library_fd: int) -> None:
        path = f"/proc/self/fd/{library_fd}"
        try:
            # Held: the address is good as long as the library is loaded.
            self._library = ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
            function = getattr(self._library, spec["entry"][1])
        except (OSError, AttributeError) as error:
            text = load_failure(str(error), *spec["entry"])
            raise CandidateFailure(FailureCode.LOAD, text) from None
        self._inputs, self._outputs = spec["inputs"], spec["outputs"]
        entry = ctypes.cast(function, ctypes.c_void_p).value
        self.loop = Loop(loop, entry=entry, kinds=spec["kinds"])

    def bind(
        self, slot: int, sets: list[Tensors], scalars: dict[str, Any], axes: dict[str, int]
    ) -> None:
        """Plain pointers, scalars and axis sizes for each set."""
        self.loop.bind(slot, [self._words(tensors, scalars, axes) for tensors in sets])

    def _words(
        self, tensors: Tensors, scalars: dict[str, Any], axes: dict[str, int]
    ) -> list[int | float]:
        inputs = [tensors[n].data_ptr() if n in tensors else scalars[n] for n in self._inputs]
        outputs = [tensors[n].data_ptr() for n in self._outputs]
        return [*inputs, *outputs, *axes.values()]


class Interpreted:
    """A function of Python, called back by the loop."""

    def __init__(self, loop: ctypes.CDLL | None, bind: Bind | None) -> None:
        """``bind`` makes one call of a set's tensors; ``None``: calls do nothing at all."""
        self.loop = Loop(loop, call=self._call if bind else None)
        self.failure: CandidateFailure | None = None
        self._bind = bind
        self._calls: dict[int, list[Call]] = {}

    def bind(
        self, slot: int, sets: list[Tensors], scalars: dict[str, Any], axes: dict[str, int]
    ) -> None:
        """One call for each set."""
        if self._bind is not None:
            self._calls[slot] = [self._bind(tensors, scalars, axes) for tensors in sets]

    def _call(self, slot: int, set_index: int) -> bool:
        try:
            self._calls[slot][set_index]()
        except CandidateFailure as failure:
            self.failure = failure
        except (MemoryError, torch.OutOfMemoryError) as error:
            self.failure = CandidateFailure(FailureCode.MEMORY, f"out of memory: {error}")
        except BaseException as error:  # noqa: BLE001 - whatever it raises, SystemExit too
            code = _code_of(error)
            text = REASON if code is FailureCode.UNSUPPORTED else _traceback_text()
            self.failure = CandidateFailure(code, text)
        return self.failure is None


def _code_of(error: BaseException) -> FailureCode:
    text = str(error)
    if "can't allocate memory" in text or "bad_alloc" in text or "Cannot allocate memory" in text:
        return FailureCode.MEMORY
    if REASON in text:  # Triton wraps it in an error of its own
        return FailureCode.UNSUPPORTED
    return FailureCode.RAISED


def _traceback_text() -> str:
    """The candidate's own frames and the error, without paths of the host."""
    kind, error, trace = sys.exc_info()
    folder = f"{_solution_folder()}/"
    frames = [f for f in traceback.extract_tb(trace) if f.filename.startswith(folder)]
    text = "".join(traceback.format_list(frames))
    text += "".join(traceback.format_exception_only(kind, error))
    return text.replace(folder, "").replace(sys.prefix, "<python>")


def _solution_folder() -> Path:
    return Path(os.environ["TMPDIR"]) / "solution"


def _log(log_fd: int, text: str) -> None:
    os.pwrite(log_fd, text.encode(errors="replace")[:MAX_LOG_BYTES], 0)


def _load(
    spec: dict[str, Any], loop: ctypes.CDLL | None, library_fd: int | None
) -> Native | Interpreted:
    if spec["language"] == "null":
        return Interpreted(loop, None if spec["destination_passing"] else _copying(spec))
    if spec["language"] == "cpp":
        assert library_fd is not None
        return Native(spec, loop, library_fd)
    return Interpreted(loop, _python(spec))


def _copying(spec: dict[str, Any]) -> Bind:
    """A trusted candidate without any work of its own: what a call costs.

    Like the runner with a value-returning solution's results, it copies ready-made ones.
    """

    def bind(tensors: Tensors, _scalars: Any, _axes: Any) -> Call:  # noqa: ANN401
        outputs = [tensors[name] for name in spec["outputs"]]
        ready = [torch.zeros_like(t) for t in outputs]

        def copy() -> None:
            for target, value in zip(outputs, ready, strict=True):
                target.copy_(value)

        return copy

    return bind


def _python(spec: dict[str, Any]) -> Bind:
    """Import the solution's files as modules and call ``run`` with torch tensors."""
    if refusal := screened(spec):
        code = FailureCode.POLICY if refusal.is_policy else FailureCode.LOAD
        raise CandidateFailure(code, refusal.text)
    folder = _solution_folder()
    for name, text in spec["files"].items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    sys.path.insert(0, str(folder))
    if spec["language"] == "triton":
        prepare_interpreter()
    module_file, function_name = spec["entry"]
    function = _entry_point(folder, Path(module_file), function_name)

    def bind(tensors: Tensors, scalars: dict[str, Any], _axes: Any) -> Call:  # noqa: ANN401
        inputs = [tensors[n] if n in tensors else scalars[n] for n in spec["inputs"]]
        outputs = [tensors[n] for n in spec["outputs"]]
        if spec["destination_passing"]:
            return lambda: function(*inputs, *outputs)
        return lambda: _store(function(*inputs), outputs, spec["outputs"])

    return bind


def _entry_point(folder: Path, file: Path, function_name: str) -> Callable[..., Any]:
    path = folder / file
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    # In a folder, its neighbours can be imported with and without a leading dot.
    module.__package__ = ".".join(file.parts[:-1])
    sys.path.append(str(path.parent))
    sys.modules[path.stem] = module
    try:
        # linecache serves this file to tracebacks and to triton.jit, which needs the source.
        exec(compile(path.read_text("utf-8"), str(path), "exec"), module.__dict__)  # noqa: S102
        function = getattr(module, function_name)
    except MemoryError as error:
        raise CandidateFailure(FailureCode.MEMORY, f"out of memory: {error}") from None
    except BaseException as error:  # noqa: BLE001 - whatever the candidate raises, SystemExit too
        loading = isinstance(error, (SyntaxError, ImportError, AttributeError, NameError))
        code = FailureCode.LOAD if loading else FailureCode.RAISED
        raise CandidateFailure(code, _traceback_text()) from None
    if not callable(function):
        raise CandidateFailure(FailureCode.LOAD, f"{function_name} is not a function")
    return function  # type: ignore[no-any-return]


def _store(result: object, outputs: Sequence[torch.Tensor], names: Sequence[str]) -> None:
    """Copy returned values into the output buffers, checking number, dtype and shape."""
    if isinstance(result, dict):
        missing = [name for name in names if name not in result]
        if missing:
            raise CandidateFailure(FailureCode.SHAPE, f"the returned dict lacks {missing}")
        values: list[object] = [result[name] for name in names]
    elif isinstance(result, (tuple, list)):
        values = list(result)
    else:
        values = [result]
    if len(values) != len(outputs):
        raise CandidateFailure(
            FailureCode.SHAPE, f"{len(values)} values returned, {len(outputs)} expected: {names}"
        )
    for value, target, name in zip(values, outputs, names, strict=True):
        if not isinstance(value, torch.Tensor):
            if target.dim() == 0 and isinstance(value, (int, float, bool)):
                target.fill_(value)
                continue
            raise CandidateFailure(
                FailureCode.DTYPE, f"output {name!r} is a {type(value).__name__}, not a tensor"
            )
        if value.shape != target.shape:
            raise CandidateFailure(
                FailureCode.SHAPE,
                f"output {name!r} has shape {tuple(value.shape)}, expected {tuple(target.shape)}",
            )
        if value.dtype != target.dtype:
            raise CandidateFailure(
                FailureCode.DTYPE,
                f"output {name!r} has dtype {value.dtype}, expected {target.dtype}",
            )
        target.copy_(value)


def read_spec(fd: int) -> dict[str, Any]:
    """The job description that the judge wrote into a memory file."""
    with os.fdopen(os.dup(fd), "rb") as file:
        file.seek(0)
        spec = json.loads(file.read())
    assert isinstance(spec, dict)
    return spec
