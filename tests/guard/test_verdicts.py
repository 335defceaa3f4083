"""Verdicts of the real guard: each way to fail has an honest twin, and harms nobody after it.

The candidates all solve ``rmsnorm``: x [M, N], weight [N], eps -> y [M, N].
"""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from kernelarc.guard import problems
from kernelarc.guard.errors import MalformedSolution, RequestError, UnsupportedLanguage
from kernelarc.guard.schema import (
    EvaluationStatus,
    SourceFile,
    reference_solution,
    solution_from_source,
)

S = EvaluationStatus
PROBLEM = problems.get("rmsnorm")

CPP = """
#include <cstdint>
#include <cmath>
#include <chrono>
#include <thread>
#include <vector>
#include <csignal>
#include <cstdlib>
{globals}
static void honest(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {{
  for (int64_t i = 0; i < M; ++i) {{
    float s = 0;
    for (int64_t j = 0; j < N; ++j) s += x[i*N+j] * x[i*N+j];
    float r = 1.0f / std::sqrt(s / N + (float)eps);
    for (int64_t j = 0; j < N; ++j) y[i*N+j] = x[i*N+j] * r * w[j];
  }}
}}
extern "C" void run(const float* x, const float* w, double eps, float* y, int64_t M, int64_t N) {{
  {body}
}}
"""
PYTHON = """
import torch
{globals}

def run(x, weight, eps, y):
{body}
"""
RIGHT = "torch.mul(x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps), weight, out=y)"


def cpp(body: str, globals_: str = ""):
    return solution_from_source(PROBLEM, CPP.format(body=body, globals=globals_), "cpp")


def python(body: str, globals_: str = ""):
    lines = "\n".join("    " + line for line in body.strip().splitlines())
    return solution_from_source(PROBLEM, PYTHON.format(body=lines, globals=globals_), "pytorch")


HONEST = {
    "cpp": cpp("honest(x, w, eps, y, M, N);"),
    "pytorch": python(RIGHT),
    "openmp": cpp(
        "#pragma omp parallel for\n"
        "  for (int64_t i = 0; i < M; ++i) honest(x+i*N, w, eps, y+i*N, 1, N);"
    ),
    "joined thread": cpp("std::thread t([=]{ honest(x, w, eps, y, M, N); }); t.join();"),
    "own memory": cpp(
        "std::vector<float> t(M*N); honest(x, w, eps, t.data(), M, N);"
        " for (int64_t i = 0; i < M*N; ++i) y[i] = t[i];"
    ),
    "module-level set-up": python(RIGHT, "TABLE = torch.arange(1000)"),
    "prints": python("print('PASS' * 1000)\n" + RIGHT),
    "returns": solution_from_source(
        PROBLEM,
        "import torch\ndef run(x, weight, eps):\n"
        "    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight\n",
        "pytorch",
    ).model_copy(
        update={"spec": python(RIGHT).spec.model_copy(update={"destination_passing_style": False})}
    ),
    "reference": reference_solution(PROBLEM),
}

WRONG = {
    "zeros": (cpp("for (int64_t i = 0; i < M*N; ++i) y[i] = 0;"), S.INCORRECT_NUMERICAL),
    "drops the weight": (
        cpp("std::vector<float> o(N, 1.0f); honest(x, o.data(), eps, y, M, N);"),
        S.INCORRECT_NUMERICAL,
    ),
    "does nothing": (cpp(""), S.STALE_OUTPUT),
    "half the rows": (cpp("honest(x, w, eps, y, M/2, N);"), S.STALE_OUTPUT),
    "one element past the end": (cpp("honest(x, w, eps, y, M, N); y[M*N] = 1;"), S.OUT_OF_BOUNDS),
    "one element before the start": (
        cpp("honest(x, w, eps, y, M, N); y[-1] = 1;"),
        S.OUT_OF_BOUNDS,
    ),
    "changes an input": (
        cpp("honest(x, w, eps, y, M, N); const_cast<float*>(x)[3] += 1;"),
        S.INPUT_MUTATED,
    ),
    "not a number": (cpp("for (int64_t i = 0; i < M*N; ++i) y[i] = NAN;"), S.NONFINITE),
    "replays the first answer": (
        cpp(
            "if (first.empty()) { honest(x, w, eps, y, M, N); first.assign(y, y + M*N); }"
            " else for (int64_t i = 0; i < M*N && i < (int64_t)first.size(); ++i) y[i] = first[i];",
            "static std::vector<float> first;",
        ),
        S.INCORRECT_NUMERICAL,
    ),
    "caches by address": (
        python(
            "key = x.data_ptr()\nif key not in CACHE:\n    " + RIGHT + "\n"
            "    CACHE[key] = y.clone()\nelse:\n    y.copy_(CACHE[key])",
            "CACHE = {}",
        ),
        S.INCORRECT_NUMERICAL,
    ),
    "wrong after twenty calls": (
        cpp("honest(x, w, eps, y, M, N); if (++calls > 20) y[0] += 1;", "static int calls = 0;"),
        S.INCORRECT_NUMERICAL,
    ),
    "late thread": (
        cpp("std::thread([=]{ honest(x, w, eps, y, M, N); }).detach();"),
        S.STALE_OUTPUT,
    ),
    "bfloat16 inside": (
        python(
            "h = x.bfloat16().float()\n"
            "y.copy_(h * torch.rsqrt(h.square().mean(-1, keepdim=True) + eps) * weight)"
        ),
        S.PRECISION,
    ),
    "segmentation fault": (cpp("*(volatile int*)8 = 1;"), S.CRASH),
    "abort": (cpp("std::abort();"), S.CRASH),
    "leaves early": (python("import os\ngetattr(os, '_ex' + 'it')(0)"), S.CRASH),
    "raises": (python("raise ValueError('no luck with this shape')"), S.RUNTIME_ERROR),
    "exits Python": (python("raise SystemExit(0)"), S.RUNTIME_ERROR),
    "endless": (cpp('for (;;) asm volatile("");'), S.TIMEOUT),
    "endless Python": (python("while True: pass"), S.TIMEOUT),
    "endless module": (python(RIGHT, "while True: pass"), S.TIMEOUT),
    "leaves early, in plain sight": (python("import os\nos._exit(0)"), S.POLICY),
    "not C++": (cpp("this is not C++;"), S.COMPILE_ERROR),
    "no entry point": (
        solution_from_source(PROBLEM, "int other() { return 1; }", "cpp"),
        S.COMPILE_ERROR,
    ),
    "not Python": (
        solution_from_source(PROBLEM, "def run(x, weight, eps, y:\n    pass", "pytorch"),
        S.COMPILE_ERROR,
    ),
    "missing module": (python(RIGHT, "import no_such_module_here"), S.COMPILE_ERROR),
    "forged frames": (
        python(
            "import os\nfor fd in range(3, 64):\n    try:\n        os.write(fd, b'PASSED')\n"
            "    except OSError:\n        pass\n" + RIGHT
        ),
        S.PROTOCOL,
    ),
    "oversized message": (
        python(
            "import os\nfor fd in range(3, 64):\n    try:\n        os.write(fd, b'x' * 100000)\n"
            "    except OSError:\n        pass\n" + RIGHT
        ),
        S.PROTOCOL,
    ),
    "all memory": (
        cpp("for (;;) { volatile char* p = new char[1u << 28]; p[0] = 1; }"),
        S.CRASH,
    ),
}


HARMFUL = {S.CRASH, S.TIMEOUT, S.OUT_OF_MEMORY, S.PROTOCOL, S.OUT_OF_BOUNDS}
"""After these the next candidate might suffer."""


@pytest.mark.parametrize("name", sorted(HONEST))
def test_an_honest_solution_passes(judge, name):
    verdict = judge.verify(PROBLEM, HONEST[name])
    assert verdict.status is S.PASSED, verdict.message


@pytest.mark.parametrize("name", sorted(WRONG))
def test_a_wrong_solution_is_named_for_what_it_did_and_the_next_one_is_judged(judge, name):
    solution, expected = WRONG[name]
    verdict = judge.verify(PROBLEM, solution)
    assert verdict.status is expected, verdict.message
    assert verdict.message
    if expected in HARMFUL:
        assert judge.verify(PROBLEM, HONEST["cpp"]).status is S.PASSED


def test_a_compile_error_shows_file_line_and_message(judge):
    verdict = judge.verify(PROBLEM, cpp("int z = undefined_name;"))
    assert "main.cpp:" in verdict.message
    assert "undefined_name" in verdict.message
    assert "/tmp" not in verdict.message


def test_a_python_error_shows_the_line_and_not_the_harness(judge):
    verdict = judge.verify(PROBLEM, python("return x.no_such_method()"))
    assert "no_such_method" in verdict.message
    assert "main.py" in verdict.message
    assert "runner.py" not in verdict.message


def test_a_failure_names_the_axes_and_shows_got_and_expected(judge):
    verdict = judge.verify(PROBLEM, WRONG["zeros"][0])
    assert "M=256" in verdict.message
    failed = verdict.evaluations[0]
    assert failed.axes == {"M": 256, "N": 1024}
    assert failed.correctness is not None
    assert failed.correctness.mismatched > 0


def test_code_that_only_fits_the_public_shapes_fails_on_a_hidden_one(judge):
    """Vector code without a tail: right whenever N is a multiple of 64."""
    solution = cpp(
        "if (N % 64 == 0) honest(x, w, eps, y, M, N);"
        " else for (int64_t i = 0; i < M*N; ++i) y[i] = 0;"
    )
    verdict = judge.verify(PROBLEM, solution)
    assert verdict.status is S.INCORRECT_NUMERICAL
    hidden = [e for e in verdict.evaluations if e.workload == "hidden"]
    assert hidden
    assert all(e.axes is None and e.correctness is None for e in hidden)
    assert "hidden shape" in verdict.message


@pytest.mark.parametrize("name", ["cpp", "openmp", "pytorch"])
def test_the_same_solution_gets_the_same_verdict_byte_for_byte(judge, name):
    first = judge.verify(PROBLEM, HONEST[name]).model_dump_json()
    assert judge.verify(PROBLEM, HONEST[name]).model_dump_json() == first


def test_a_wrong_solution_gets_the_same_verdict_byte_for_byte(judge):
    first = judge.verify(PROBLEM, WRONG["drops the weight"][0]).model_dump_json()
    assert judge.verify(PROBLEM, WRONG["drops the weight"][0]).model_dump_json() == first


def test_a_language_of_another_device_is_a_request_error(judge):
    solution = solution_from_source(PROBLEM, "__global__ void run() {}", "cuda_cpp")
    with pytest.raises(UnsupportedLanguage, match="cpp, pytorch, triton"):
        judge.verify(PROBLEM, solution)


def test_a_problem_of_another_device_is_a_request_error(judge):
    problem = problems.get("gemm_bf16")
    assert not problem.ranked("cpu")
    with pytest.raises(RequestError, match="no workload for the device 'cpu'"):
        judge.verify(problem, reference_solution(problem))


@pytest.mark.parametrize("flag", ["-fplugin=./evil.so", "-I/etc", "-wrapper", "@file", "-o/tmp/x"])
def test_flags_that_name_files_or_programs_are_refused(judge, flag):
    honest = HONEST["cpp"]
    options = {"cflags": [flag], "cuda_cflags": [], "ld_flags": []}
    spec = honest.spec.model_validate({**honest.spec.model_dump(), "compile_options": options})
    with pytest.raises(MalformedSolution, match="not allowed"):
        judge.verify(PROBLEM, honest.model_copy(update={"spec": spec}))


def test_an_include_cannot_read_a_file_of_the_host(judge, tmp_path):
    secret = tmp_path / "secret.h"
    secret.write_text("THE_SECRET_TEXT\n")
    # Through a macro, which the static screen does not follow.
    text = f'#define WHERE "{secret}"\n#include WHERE'
    verdict = judge.verify(PROBLEM, cpp("honest(x, w, eps, y, M, N);", text))
    assert verdict.status is S.COMPILE_ERROR
    assert "THE_SECRET_TEXT" not in verdict.message


@pytest.mark.parametrize("folder", ["solution.so", "a b", "ü$(id)"])
def test_a_folder_of_any_name_can_hold_the_sources(judge, folder):
    solution = solution_from_source(
        PROBLEM, HONEST["cpp"].entry_source, "cpp", entry_point=f"{folder}/main.cpp::run"
    )
    assert judge.verify(PROBLEM, solution).status is S.PASSED


@pytest.mark.parametrize("line", ["from helper import norm", "from .helper import norm"])
def test_an_entry_point_in_a_folder_can_import_its_neighbours(judge, line):
    solution = solution_from_source(
        PROBLEM,
        f"{line}\n\ndef run(x, weight, eps, y):\n    norm(x, weight, eps, y)\n",
        "pytorch",
        entry_point="kernels/main.py::run",
    )
    helper = SourceFile(
        path="kernels/helper.py",
        content=f"import torch\n\ndef norm(x, weight, eps, y):\n    {RIGHT}\n",
    )
    verdict = judge.verify(
        PROBLEM, solution.model_copy(update={"sources": [*solution.sources, helper]})
    )
    assert verdict.status is S.PASSED, verdict.message
