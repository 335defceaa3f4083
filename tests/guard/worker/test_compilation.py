"""Compiling in this process, as the sandbox does it; and what its text becomes in a verdict."""

import contextlib
import ctypes
import fcntl
import itertools
import os
import shutil
import tempfile
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelarc.guard import problems
from kernelarc.guard.sandbox.policy import SCRATCH
from kernelarc.guard.schema import EvaluationStatus, solution_from_source
from kernelarc.guard.worker import compilation
from kernelarc.guard.worker.compilation import (
    BASE_FLAGS,
    MAX_LOG_CHARACTERS,
    POLICY_EXIT_CODE,
    cache_key,
    compile_in_sandbox,
    cut_log,
    load_failure,
    printable,
    rejected_flags,
    steady,
)
from kernelarc.guard.worker.process import memory_file

PROBLEM = problems.get("rmsnorm")
RUN = 'extern "C" void run() {}\n'
TWICE = {"a.cpp": "int same() { return 1; }\n" + RUN, "b.cpp": "int same() { return 2; }\n"}


@pytest.fixture
def compiled(monkeypatch):
    """``compiled(files)``: exit code, log and library of a build in a scratch folder of its own."""
    folders = []

    def build(files, *, screen=None, compiler="g++"):
        folders.append(tempfile.mkdtemp(prefix=f"{SCRATCH.name}-", dir=SCRATCH.parent))
        monkeypatch.setenv("TMPDIR", folders[-1])
        spec = {
            "compiler": compiler,
            "flags": list(BASE_FLAGS),
            "files": files,
            "screen": screen,
            "language": "cpp",
        }
        log_fd, out_fd = os.memfd_create("log"), os.memfd_create("out")
        try:
            code = compile_in_sandbox(spec, log_fd, out_fd)
            log = os.pread(log_fd, 1 << 20, 0)
            return code, log, os.pread(out_fd, os.fstat(out_fd).st_size, 0)
        finally:
            os.close(log_fd)
            os.close(out_fd)

    yield build
    for folder in folders:
        shutil.rmtree(folder)


NUMBERS = itertools.count(400)


@contextlib.contextmanager
def library_file(library):
    """A memory file with a library, under a number that was never loaded.

    The loader knows libraries by their names, and those that lack something may stay.
    """
    plain = memory_file(library)
    fd = fcntl.fcntl(plain, fcntl.F_DUPFD_CLOEXEC, next(NUMBERS))
    os.close(plain)
    try:
        yield fd
    finally:
        os.close(fd)


def failed_load(library, entry="run"):
    """The loader's message for a library, as the runner gets it."""
    with library_file(library) as fd:
        try:
            getattr(ctypes.CDLL(f"/proc/self/fd/{fd}", mode=os.RTLD_NOW), entry)
        except (OSError, AttributeError) as error:
            return load_failure(str(error), "main.cpp", entry)
    raise AssertionError("it loaded")


def test_only_the_bytes_of_the_library_come_back(compiled):
    code, log, library = compiled({"main.cpp": '#include "part/n.h"\n' + RUN, "part/n.h": ""})
    assert (code, log) == (0, b"")
    assert library.startswith(b"\x7fELF")


def test_an_error_of_the_compiler_is_its_exit_code_and_no_library(compiled):
    code, log, library = compiled({"main.cpp": "int x = ;"})
    assert code == 1
    assert b"main.cpp:1:9: error" in log
    assert library == b""


def test_a_file_whose_name_looks_like_an_option_is_a_file(compiled):
    assert compiled({"-v.cpp": RUN})[:2] == (0, b"")


def test_a_compiler_that_is_killed_has_an_exit_code_like_in_a_shell(compiled, tmp_path):
    program = tmp_path / "g++"
    program.write_text("#!/bin/sh\nkill -9 $$\n")
    program.chmod(0o755)
    assert compiled({"main.cpp": RUN}, compiler=str(program))[0] == 128 + 9


@pytest.mark.parametrize(
    ("source", "code", "said"),
    [
        ('extern "C" void run() { system("ls"); }', POLICY_EXIT_CODE, b"main.cpp:1:"),
        ("int other() { return 1; }", 1, b"run"),
    ],
)
def test_what_the_screen_refuses_is_not_compiled(compiled, source, code, said):
    from kernelarc.guard.worker.candidate import runner_spec

    screen = runner_spec(PROBLEM, solution_from_source(PROBLEM, source, "cpp"))["screen"]
    got, log, library = compiled({"main.cpp": source}, screen=screen, compiler="/nowhere/g++")
    assert got == code
    assert said in log
    assert library == b""


def test_the_linker_says_the_same_twice(compiled):
    first, second = compiled(TWICE)[1], compiled(TWICE)[1]
    assert first != second  # else this test is about nothing
    text = cut_log(first)
    assert text == cut_log(second)
    assert "<object>.o: in function `same()'" in text
    assert "b.cpp" in text
    assert str(SCRATCH) not in text


def test_an_undefined_function_of_cpp_is_named_as_in_the_source(compiled):
    source = 'void gone(float*, int);\nextern "C" void run() { gone(nullptr, 1); }\n'
    texts = {failed_load(compiled({"main.cpp": source})[2]) for _ in range(2)}
    assert len(texts) == 1
    text = texts.pop()
    assert text.startswith("solution.so: undefined symbol: _Z4gonePfi, that is gone(float*, int).")
    assert 'extern "C"' in text
    assert "define it" in text


def test_an_undefined_function_of_c_is_named(compiled):
    source = 'extern "C" void gone();\nextern "C" void run() { gone(); }\n'
    text = failed_load(compiled({"main.cpp": source})[2])
    assert text.startswith("solution.so: undefined symbol: gone. It is declared")


def test_a_missing_entry_point_is_described(compiled):
    text = failed_load(compiled({"main.cpp": "void run() {}"})[2])
    assert text.startswith("solution.so: undefined symbol: run. The entry point is missing")
    assert 'main.cpp must define extern "C" void run(...)' in text


@pytest.mark.torch
def test_the_runner_explains_a_library_that_does_not_load(compiled):
    from kernelarc.guard.worker.runner import CandidateFailure, Native

    library = compiled({"main.cpp": "void run() {}"})[2]
    said = r"^solution\.so: undefined symbol: run\. The entry"
    with library_file(library) as fd, pytest.raises(CandidateFailure, match=said):
        Native({"entry": ["main.cpp", "run"]}, None, fd)


def test_another_failure_of_the_loader_keeps_its_words():
    text = load_failure("/proc/self/fd/12: file too short", "main.cpp", "run")
    assert text == "solution.so: file too short"


def test_a_name_that_only_looks_like_one_of_cpp_is_left(monkeypatch):
    assert compilation._demangled("_Zzz") is None
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    assert compilation._demangled("_Z4gonev") is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<function f at 0x7f12ab34cd56>", "<function f at 0x...>"),
        ("<object object at 0x1fe2a10>", "<object object at 0x...>"),
        ("pointer 0x55d0c0ffee12 is bad", "pointer 0x... is bad"),
        ("main.cpp:(.text+0x40): undefined", "main.cpp:(.text+0x40): undefined"),
        ("mask 0xffffffff and 0x9e3779b97f4a7c15", "mask 0xffffffff and 0x9e3779b97f4a7c15"),
        ("<Thread(Thread-1, started 140234567890123)>", "<Thread(Thread-1, started ...)>"),
        ("<Thread(T, started daemon 139997)>", "<Thread(T, started daemon ...)>"),
        ("expected 1024, got 140234567890123", "expected 1024, got ..."),
        ("/tmp/kernelarc-scratch/ccAb12Cd.o: in", "<object>.o: in"),
        ("/tmp/kernelarc-scratch-ab_d3f9h/ccAb12Cd.ltrans0.o", "<object>.ltrans0.o"),
        ("/tmp/kernelarc-scratch/build/main.cpp:3", "build/main.cpp:3"),
        ("accEPt.o is started 3 times", "accEPt.o is started 3 times"),
    ],
)
def test_what_differs_between_runs_is_left_out_and_nothing_else(text, shown):
    assert steady(text) == shown


def test_objects_and_threads_of_this_process_are_shown_the_same_twice():
    def shown():
        kept = [object(), threading.current_thread(), lambda: None]
        return steady(f"{kept} {threading.get_ident()}"), kept

    (first, one), (second, two) = shown(), shown()
    assert first == second
    assert repr(one) != repr(two)


@given(st.text())
def test_a_text_is_made_steady_once(text):
    assert steady(steady(text)) == steady(text)


@given(st.binary())
def test_a_log_has_no_control_characters(raw):
    assert all(c in "\n\t" or c.isprintable() for c in cut_log(raw))


def test_a_long_log_keeps_both_ends():
    text = cut_log(b"first\n" + b"x" * (3 * MAX_LOG_CHARACTERS) + b"\nlast")
    assert text.startswith("first")
    assert text.endswith("last")
    assert "characters omitted" in text
    assert len(text) < MAX_LOG_CHARACTERS + 100


def test_escapes_of_a_terminal_are_removed():
    assert printable("a\x1b[31mb\r\n\tc\u202e") == "a[31mb\n\tc"


@pytest.mark.parametrize("flag", ["-fplugin=x", "-I/", "@file", "-O3 -I/", "-DX=/etc", "-B.", "-o"])
def test_a_flag_that_names_a_file_or_program_is_refused(flag):
    assert rejected_flags(["-O3", flag, "-ffast-math"]) == [flag]


def test_a_build_is_known_by_sources_flags_and_compiler():
    keys = [
        cache_key({"a": "b"}, ["-O3"], "g++ 13"),
        cache_key({"a": "c"}, ["-O3"], "g++ 13"),
        cache_key({"ab": ""}, ["-O3"], "g++ 13"),
        cache_key({"a": "b"}, ["-O2"], "g++ 13"),
        cache_key({"a": "b"}, ["-O3"], "g++ 14"),
    ]
    assert len(set(keys)) == len(keys)
    assert cache_key({"b": "1", "a": "2"}, [], "c") == cache_key({"a": "2", "b": "1"}, [], "c")


@pytest.mark.torch
@pytest.mark.parametrize(
    ("language", "source", "status", "said"),
    [
        (
            "cpp",
            "#include <cstdint>\nvoid gone(float*);\n"
            'extern "C" void run(const float*, const float*, double, float* y, int64_t, int64_t)'
            "{ gone(y); }",
            EvaluationStatus.COMPILE_ERROR,
            "solution.so: undefined symbol: _Z4gonePf, that is gone(float*).",
        ),
        (
            "pytorch",
            "def run(x, weight, eps, y):\n    raise ValueError(f'{run} is not {object()}')\n",
            EvaluationStatus.RUNTIME_ERROR,
            "<function run at 0x...> is not <object object at 0x...>",
        ),
    ],
)
def test_a_verdict_is_the_same_twice(judge, language, source, status, said):
    solution = solution_from_source(PROBLEM, source, language)
    first, second = judge.verify(PROBLEM, solution), judge.verify(PROBLEM, solution)
    assert first == second
    assert first.model_dump_json() == second.model_dump_json()
    assert first.status is status
    assert said in first.message
