"""From a solution to a runner: language check, compilation, spawning, buffers."""

from __future__ import annotations

import importlib.util
import json
import os
from collections import OrderedDict
from dataclasses import asdict, dataclass, field
from typing import Any

from kernelarc.guard.errors import (
    GuardUnavailable,
    MalformedSolution,
    ToolchainMissing,
    UnsupportedLanguage,
)
from kernelarc.guard.schema import (
    CompileFacts,
    EvaluationStatus,
    Language,
    Problem,
    Solution,
    Workload,
    solution_id,
)
from kernelarc.guard.screen import entry_of
from kernelarc.guard.worker import handover, host
from kernelarc.guard.worker.buffers import TORCH_DTYPES, Arena, TensorPlan
from kernelarc.guard.worker.compilation import (
    BASE_FLAGS,
    MAX_LIBRARY_BYTES,
    POLICY_EXIT_CODE,
    CompiledLibrary,
    cache_key,
    cut_log,
    rejected_flags,
)
from kernelarc.guard.worker.interrupts import Interrupts
from kernelarc.guard.worker.process import (
    CandidateFailed,
    ConfinedProcess,
    RunnerProcess,
    Zygote,
    describe_death,
    memory_file,
)

CPU_LANGUAGES = (Language.CPP, Language.PYTORCH, Language.TRITON)
TIMED_LANGUAGES = (Language.CPP, Language.PYTORCH)
LIBRARY_CACHE_ENTRIES = 64


@dataclass(frozen=True)
class Timeouts:
    """Limits of one job, seconds."""

    compile_s: float = 60.0
    """For compiling, and for importing a Python solution."""
    call_s: float = 10.0
    total_s: float = 300.0


@dataclass(frozen=True)
class Candidate:
    """A solution that is ready to be run: its library, if it has one, and the runner's spec."""

    solution: Solution
    spec: dict[str, Any]
    library: CompiledLibrary | None = None

    @property
    def id(self) -> str:
        """Content id of the solution."""
        return solution_id(self.solution)

    @property
    def facts(self) -> CompileFacts | None:
        """What the compiler said."""
        return self.library.facts if self.library else None


@dataclass
class Workshop:
    """What is needed to turn solutions into runners; one per judge process."""

    zygote: Zygote
    interrupts: Interrupts
    timeouts: Timeouts
    screen: bool = True
    """Whether the static screen looks at sources first; the selftest judges without it."""
    libraries: OrderedDict[str, CompiledLibrary] = field(default_factory=OrderedDict)
    loops: dict[tuple[str, ...], bytes] = field(default_factory=dict)
    """Compiled loops by the kinds of arguments that they can pass."""

    def prepare(self, problem: Problem, solution: Solution) -> Candidate:
        """Compile if the language needs it.

        Raises:
            CandidateFailed: the compiler refused it, or took too long.
            UnsupportedLanguage, ToolchainMissing, MalformedSolution: it cannot run here.
        """
        check_language(solution)
        spec = runner_spec(problem, solution)
        if not self.screen:
            spec["screen"] = None
        if solution.language is not Language.CPP:
            return Candidate(solution, spec)
        return Candidate(solution, spec, self._compile(solution, spec))

    def start(self, candidate: Candidate) -> RunnerProcess:
        """A fresh runner with the candidate loaded.

        Raises:
            CandidateFailed: it does not load.
        """
        libraries = [self._loop(candidate.spec["kinds"])] if host.compiler() else []
        if candidate.library:
            libraries.append(candidate.library.data)
        runner = RunnerProcess(
            self.zygote,
            host.runner_policy(),
            candidate.spec,
            libraries=libraries,
            interrupts=self.interrupts,
            spin=host.processors().apart,
        )
        try:
            runner.load(self.timeouts.compile_s)
        except BaseException:
            runner.close()
            raise
        return runner

    def bind(
        self, slot: str, runner: RunnerProcess, problem: Problem, workload: Workload, calls: int
    ) -> Arena:
        """New buffers for a workload, mapped by the runner; the old ones there are released.

        There is one set more than calls in a batch, so that which of them are called for is
        known only when the batch begins. (A single call has no others to be made along with.)
        """
        arena = Arena(tensor_plans(problem, workload), calls + (calls > 1))
        try:
            runner.bind(
                slot,
                arena,
                scalar_values(problem, workload),
                problem.axes(workload),
                self.timeouts.call_s,
            )
        except BaseException:
            arena.close()
            raise
        return arena

    def _loop(self, kinds: list[str]) -> bytes:
        """The native loop for entry points with such arguments.

        Raises:
            GuardUnavailable: it does not compile.
        """
        if tuple(kinds) not in self.loops:
            spec = {
                "compiler": host.compiler(),
                "flags": list(handover.FLAGS),
                "files": {handover.SOURCE.name: handover.source(kinds)},
                "screen": None,
            }
            try:
                self.loops[tuple(kinds)] = self._run_compiler(spec).data
            except CandidateFailed as failed:
                raise GuardUnavailable(
                    f"{host.compiler()} cannot compile the guard's own code: {failed.message} "
                    "Check that g++ works: `kernelarc doctor`."
                ) from None
        return self.loops[tuple(kinds)]

    def _compile(self, solution: Solution, spec: dict[str, Any]) -> CompiledLibrary:
        options = solution.spec.compile_options
        extra = list(options.cflags) if options else []
        if refused := rejected_flags(extra):
            raise MalformedSolution(
                f"compile flags {refused} are not allowed; allowed are optimisation, -f..., "
                "-m... vector and -D flags, for example -ffast-math, -funroll-loops, -DTILE=64."
            )
        path = host.compiler()
        if path is None:
            raise ToolchainMissing(
                "g++ is not installed: C++ solutions cannot be compiled. Install g++ 11 or newer."
            )
        flags = [*BASE_FLAGS, *extra]
        files = {s.path: s.content for s in solution.sources}
        key = cache_key(files, flags, f"{path} {host.versions()['g++']}")
        if (cached := self.libraries.get(key)) is not None:
            self.libraries.move_to_end(key)
            return cached
        library = self._run_compiler(spec | {"compiler": path, "flags": flags})
        self.libraries[key] = library
        if len(self.libraries) > LIBRARY_CACHE_ENTRIES:
            self.libraries.popitem(last=False)
        return library

    def _run_compiler(self, spec: dict[str, Any]) -> CompiledLibrary:
        spec_fd = memory_file(json.dumps(spec).encode())
        log_fd, out_fd = memory_file(b""), memory_file(b"")
        try:
            fds = (spec_fd, log_fd, out_fd)
            process = ConfinedProcess(self.zygote.spawn("compiler", host.compiler_policy(), fds))
            try:
                status = process.wait(self.timeouts.compile_s, self.interrupts)
            finally:
                process.kill()
            log = cut_log(os.pread(log_fd, 1 << 20, 0))
            self._check_compiler(status, log)
            size = os.fstat(out_fd).st_size
            if not 0 < size <= MAX_LIBRARY_BYTES:
                raise CandidateFailed(
                    EvaluationStatus.COMPILE_ERROR, f"the compiled library has {size} bytes."
                )
            facts = CompileFacts(
                compiler=f"g++ {host.versions()['g++']}",
                flags=spec["flags"],
                log=log,
                binary_bytes=size,
            )
            return CompiledLibrary(os.pread(out_fd, size, 0), facts)
        finally:
            for fd in (spec_fd, log_fd, out_fd):
                os.close(fd)

    def _check_compiler(self, status: int | None, log: str) -> None:
        if status is None:
            raise CandidateFailed(
                EvaluationStatus.TIMEOUT,
                f"compiling took longer than {self.timeouts.compile_s:g} s; killed.",
            )
        if os.WIFSIGNALED(status):
            _, text = describe_death(status, "compiling")
            raise CandidateFailed(EvaluationStatus.COMPILE_ERROR, f"{text}\n{log}".strip())
        if os.WEXITSTATUS(status) == POLICY_EXIT_CODE:
            raise CandidateFailed(EvaluationStatus.POLICY, log or "refused by the static screen.")
        if os.WEXITSTATUS(status) != 0:
            raise CandidateFailed(
                EvaluationStatus.COMPILE_ERROR, log or "the compiler gave no message."
            )


def check_language(solution: Solution) -> None:
    """Refuse languages that the CPU device does not have.

    Raises:
        UnsupportedLanguage: it is for another device.
        ToolchainMissing: it would run, but a package is not installed.
    """
    if solution.language not in CPU_LANGUAGES:
        allowed = ", ".join(CPU_LANGUAGES)
        raise UnsupportedLanguage(
            f"language {solution.language.value!r} cannot be judged on the CPU device; "
            f"languages here: {allowed}."
        )
    if solution.language is Language.TRITON and importlib.util.find_spec("triton") is None:
        raise ToolchainMissing(
            "triton is not installed: install the extra 'triton' to verify Triton kernels with "
            "its interpreter."
        )


def runner_spec(problem: Problem, solution: Solution) -> dict[str, Any]:
    """What the runner needs to know; nothing in it is secret."""
    spec = solution.spec
    return {
        "language": solution.language.value,
        "files": {s.path: s.content for s in solution.sources},
        "entry": [spec.entry_file, spec.entry_function],
        "destination_passing": spec.destination_passing_style,
        "inputs": list(problem.definition.inputs),
        "outputs": list(problem.definition.outputs),
        "kinds": handover.argument_kinds(problem) if solution.language is Language.CPP else [],
        "threads": host.threads(),
        "screen": asdict(entry_of(problem, solution)) | {"device": "cpu"},
    }


def null_candidate(problem: Problem, like: Candidate, *, destination_passing: bool) -> Candidate:
    """A trusted candidate that does nothing, to measure what a call costs without any work."""
    spec = runner_spec(problem, like.solution) | {
        "language": "null",
        "files": {},
        "kinds": [],
        "destination_passing": destination_passing,
    }
    return Candidate(like.solution, spec)


def tensor_plans(problem: Problem, workload: Workload) -> list[TensorPlan]:
    """Buffers of one call: tensor inputs, then outputs, in the definition's order."""
    plans = []
    for name, shape in problem.input_shapes(workload).items():
        if shape is not None:
            plans.append(_plan(name, problem.definition.inputs[name].dtype.value, shape))
    for name, out_shape in problem.output_shapes(workload).items():
        plans.append(_plan(name, problem.definition.outputs[name].dtype.value, out_shape))
    return plans


def _plan(name: str, dtype: str, shape: tuple[int, ...]) -> TensorPlan:
    if dtype not in TORCH_DTYPES:
        raise UnsupportedLanguage(f"tensor {name!r} has dtype {dtype}, which the CPU device lacks.")
    return TensorPlan(name, dtype, shape)


def scalar_values(problem: Problem, workload: Workload) -> dict[str, int | float | bool]:
    """Scalar inputs of a workload with the type that the definition declares."""
    values: dict[str, int | float | bool] = {}
    for name, spec in problem.definition.inputs.items():
        given = workload.inputs[name]
        if spec.shape is None and given.type == "scalar":
            values[name] = float(given.value) if spec.dtype.is_float else given.value
    return values
