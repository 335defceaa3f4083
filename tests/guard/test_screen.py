"""The screen helps, and never gets in the way of what is legitimate."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelarc.guard import problems
from kernelarc.guard.schema import (
    EvaluationStatus,
    Language,
    cpp_signature,
    python_signature,
    reference_solution,
    solution_from_source,
)
from kernelarc.guard.screen import LONGEST_CHARACTERS, Entry, screen, screen_files
from kernelarc.guard.screen_cpp import _code_only, _without_comments

COMPILE_ERROR, POLICY = EvaluationStatus.COMPILE_ERROR, EvaluationStatus.POLICY
RUN = "def run(x, y):\n    y.copy_(x)\n"
C_RUN = 'extern "C" void run(const float* x, float* y, int64_t n) {}\n'


def python(source, *, parameters=2, device="cpu", **files):
    texts = {"main.py": textwrap.dedent(source), **files}
    entry = Entry("main.py", "run", parameters, "def run(x, y): ...")
    return screen_files(texts, Language.PYTORCH, entry, device)


def cpp(source, *, parameters=3, files=None):
    texts = {"main.cpp": textwrap.dedent(source), **(files or {})}
    entry = Entry("main.cpp", "run", parameters, 'extern "C" void run(...);')
    return screen_files(texts, Language.CPP, entry, "cpu")


def only(findings):
    assert len(findings) == 1, findings
    return findings[0]


def test_a_plain_solution_has_no_finding():
    assert python(RUN) == []
    assert cpp(C_RUN) == []


def test_a_syntax_error_is_shown_with_its_line():
    finding = only(python("import torch\n\ndef run(x, y:\n    pass\n"))
    assert (finding.status, finding.file) == (COMPILE_ERROR, "main.py")
    assert finding.line == 3
    assert "def run(x, y:" in finding.message


def test_a_missing_entry_is_answered_with_the_expected_signature():
    finding = only(python("def ran(x, y): ..."))
    assert finding.status is COMPILE_ERROR
    assert "no function 'run'" in finding.message
    assert "def run(x, y): ..." in finding.message


@pytest.mark.parametrize(
    "source",
    [
        "from kernel import run",
        "from kernel import fast as run",
        "from kernel import *",
        "run = lambda x, y: y.copy_(x)",
        "import a\nif a.fast:\n    def run(x, y): ...\nelse:\n    def run(x): ...",
        "try:\n    from a import run\nexcept ImportError:\n    def run(x, y): ...",
        "@decorated\ndef run(anything): ...",
        "def run(*tensors): ...",
        "def run(x, y, block=32): ...",
        "def run(x, /, y, *, block=32): ...",
        "globals()['run'] = print",
        "class run:\n    def __new__(cls, x, y): ...",
    ],
)
def test_an_entry_can_be_bound_in_many_ways(source):
    assert python(source) == []


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("def run(x): ...", "takes 1 parameters and is called with 2"),
        ("def run(x, y, z): ...", "takes 3 parameters"),
        ("def run(x, y, z, w=1): ...", "takes 3 to 4 parameters"),
        ("def run(x, y, *, block): ...", "requires keyword arguments ['block']"),
        ("async def run(x, y): ...", "async"),
        ("def other():\n    def run(x, y): ...", "no function 'run'"),
    ],
)
def test_an_entry_that_cannot_be_called_is_refused(source, problem):
    finding = only(python(source))
    assert finding.status is COMPILE_ERROR
    assert problem in finding.message


@pytest.mark.parametrize(
    "attempt",
    [
        "import subprocess",
        "import subprocess as sp",
        "from subprocess import run as start",
        "import multiprocessing.shared_memory",
        "from multiprocessing import shared_memory",
        "import socket",
        "import ctypes",
        "import ctypes.util",
        "import __main__",
        "import os\nos.fork()",
        "import os as o\no.system('ls')",
        "from os import fork as f\nf()",
        "import os\nos.execv('/bin/sh', [])",
        "import os\nos._exit(0)",
        "import gc\nfor o in gc.get_objects(): pass",
        "import inspect\nframes = inspect.stack()",
        "import sys\nframe = sys._getframe(3)",
        "import sys\nfor m in sys.modules.values(): pass",
        "open('/etc/passwd')",
        "import io\nio.open('/root/reference.py')",
        "from torch.utils.cpp_extension import load_inline\nm = load_inline(name='x')",
        "import torch\ndef f():\n    torch.utils.cpp_extension.load('x', [])",
    ],
)
def test_what_cannot_work_in_the_sandbox_is_refused_with_the_reason(attempt):
    finding = only([f for f in python(f"{attempt}\n{RUN}") if f.status])
    assert finding.status is POLICY
    assert finding.line is not None
    assert ":" in finding.message


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ntorch.set_num_threads(8)",
        "import torch\nx = torch.matmul(torch.ones(2, 2), torch.ones(2, 2))",
        "import gc\ngc.disable()\ngc.collect()",
        "import inspect\ninspect.signature(print)",
        "import sys\nsys.modules[__name__]\nsys.setrecursionlimit(9999)",
        "import os\nn = os.cpu_count()\nd = os.environ.get('TMPDIR')",
        "open('/proc/cpuinfo').read()",
        "open('cache.bin', 'wb')",
        "text = 'import subprocess; os.fork()'",
        "# import socket\n'''import ctypes'''",
        "class Pool:\n    def fork(self): ...\nos = Pool()\nos.fork()",
        "def system(x): return x\nsystem('ls')",
        "if __name__ == '__main__':\n    import subprocess, sys\n    sys.exit(0)",
        "from . import subprocess",
        "'\\d'  # an invalid escape is a warning, not an error",
    ],
)
def test_legitimate_python_is_left_alone(source):
    assert [f for f in python(f"{source}\n{RUN}") if f.status] == []


def test_the_other_branch_of_a_main_guard_counts():
    source = f"if __name__ == '__main__':\n    pass\nelse:\n    import subprocess\n{RUN}"
    assert only(python(source)).line == 4


def test_threads_and_compile_are_notes_and_reject_nothing():
    findings = python(f"import threading, torch\nf = torch.compile(print)\n{RUN}")
    assert [f.status for f in findings] == [None, None]
    assert python(f"import torch\nf = torch.compile(print)\n{RUN}", device="cuda") == []


def test_every_file_is_looked_at():
    finding = only(python(RUN, **{"helper.py": "import os\nos.fork()\n"}))
    assert (finding.file, finding.line) == ("helper.py", 2)


@pytest.mark.parametrize(
    "bomb", ["-" * 50_000 + "1", "a" + ".b" * 50_000, "1" + "+1" * 50_000, "(" * 50_000, "\0"]
)
def test_pathological_python_is_an_error_and_not_a_crash(bomb):
    assert only(python(bomb)).status is COMPILE_ERROR


@pytest.mark.parametrize(
    "bomb", ["a", "/*", "void run(", "\\\n", "fork ", 'R"(', "#include ", "1'"]
)
def test_pathological_c_ends(bomb):
    assert isinstance(cpp(bomb * (LONGEST_CHARACTERS // len(bomb))), list)


def test_a_very_long_file_is_left_to_the_compiler():
    assert cpp("x" * (LONGEST_CHARACTERS + 1)) == []


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("void run(const float* x, float* y, int64_t n) {}", 'not declared extern "C"'),
        ('extern "C" void ran(const float* x) {}', "no function 'run'"),
        ('extern "C" void run(const float* x, float* y) {}', "takes 2 parameters"),
        ('extern "C" {\nvoid run() {}\n}', "takes 0 parameters and is called with 3"),
        ('// extern "C"\nvoid run(const float* x, float* y, int64_t n) {}', "not declared"),
        ('extern "C" void go(); /* run */', "no function 'run'"),
    ],
)
def test_a_wrong_c_entry_is_answered_with_the_signature(source, problem):
    finding = only(cpp(source))
    assert finding.status is COMPILE_ERROR
    assert problem in finding.message
    assert "Expected:" in finding.message


@pytest.mark.parametrize(
    "source",
    [
        f"#include <immintrin.h>\n#include <thread>\n#include <omp.h>\n{C_RUN}",
        f"#pragma omp parallel for\n{C_RUN}",
        'extern "C" {\nvoid run(const float* x, float* y, int64_t n) { std::thread t; }\n}',
        '#define API extern "C"\nAPI void run(const float* x, float* y, int64_t n) {}',
        '#define ARGS const float* x, float* y, int64_t n\nextern "C" void run(ARGS) {}',
        'void go(const float*, float*, int64_t) __asm__("run");',
        '#define JOIN(a, b) a##b\nextern "C" void JOIN(ru, n)(const float* x) {}',
        f"template <int N> void run(int a) {{}}\n{C_RUN}",
        f"void fork(int x) {{}}\nvoid use() {{ fork(1); }}\n{C_RUN}",
        f"struct S {{ int system(); }};\nint f(S s, S* p) {{ s.system(); p->system(); }}\n{C_RUN}",
        f"namespace my {{ void socket(int); }}\nvoid use() {{ my::socket(1); }}\n{C_RUN}",
        f'const char* s = "fork() system() \\" fork()"; // fork()\n/* fork() */\n{C_RUN}',
        f'const char* s = R"x(\n#include "/etc/passwd"\nfork() )" )x";\n{C_RUN}',
        f"int million = 1'000'000; char c = '\"'; int n = 0x1'f; // it's\n{C_RUN}",
        f"auto system = [](int) {{ return 1; }};\nint n = system(2);\n{C_RUN}",
        f'#include "kernels/inner.h"\n{C_RUN}',
    ],
)
def test_legitimate_cpp_is_left_alone(source):
    assert cpp(source) == []


@pytest.mark.parametrize(
    "attempt",
    [
        "int pid = fork();",
        'int r = system("ls");',
        'int r = std::system("ls");',
        "int r = ::fork();",
        "int f() { return ptrace(0, 0, 0, 0); }",
        "int s = socket(2, 1, 0);",
        "bool b = !fork();",
        '#include "/etc/passwd"',
        "#include </usr/include/stdio.h>",
        '#include "../../secret.h"',
        '#include \\\n  "/etc/shadow"',
        '# include "/etc/passwd"',
        '#embed "/etc/passwd"',
        'static const char* t = ".incbin \\"/etc/passwd\\"";',
    ],
)
def test_attempts_in_cpp_are_refused_with_their_line(attempt):
    finding = only(cpp(f"\n\n{attempt}\n{C_RUN}"))
    assert finding.status is POLICY
    assert finding.line in (3, 4)


def test_an_include_may_go_up_inside_the_solution():
    files = {"src/a.cpp": f'#include "../include/a.h"\n{C_RUN}', "include/a.h": "int a;\n"}
    entry = Entry("src/a.cpp", "run", 3, "")
    assert screen_files(files, Language.CPP, entry, "cpu") == []
    del files["include/a.h"]
    assert only(screen_files(files, Language.CPP, entry, "cpu")).status is POLICY


def test_lines_are_counted_through_continued_lines_and_comments():
    source = f"#define A \\\n  1\n/* one\n two */\nint p = fork();\n{C_RUN}"
    assert only(cpp(source)).line == 5


@pytest.mark.parametrize("definition", ["", "int fork(int) { return 1; }\n"])
def test_a_thousand_calls_of_one_name_take_no_longer_than_one_look(definition):
    calls = "void f() {" + "fork(1);" * 15_000 + "}\n"
    found = cpp(definition + calls + C_RUN)
    assert [f.line for f in found] == ([] if definition else [1])


@given(st.text(alphabet="/*\"'\\ \nR()xu8fork#1", max_size=60))
def test_blanking_keeps_every_position(source):
    for blanked in (_code_only(source), _without_comments(source)):
        assert len(blanked) == len(source)
        assert [c == "\n" or c == "\v" for c in blanked] == [c == "\n" for c in source]


@pytest.mark.parametrize("name", problems.names())
def test_the_reference_and_the_given_signatures_pass(name):
    problem = problems.get(name)
    assert [f for f in screen(problem, reference_solution(problem), "cpu") if f.status] == []
    native = solution_from_source(problem, cpp_signature(problem).replace(";", " {}", 1), "cpp")
    assert "{}" in native.entry_source
    assert screen(problem, native, "cpu") == []
    source = python_signature(problem)
    assert screen(problem, solution_from_source(problem, source, "pytorch"), "cpu") == []


def test_a_solution_of_another_shape_is_refused_by_the_problem():
    problem = problems.get(problems.names()[0])
    solution = solution_from_source(problem, "def run():\n    pass\n", "pytorch")
    finding = only(screen(problem, solution, "cpu"))
    assert finding.status is COMPILE_ERROR
    assert python_signature(problem) in finding.message
    native = solution_from_source(problem, 'extern "C" void run() {}\n', "cpp")
    assert cpp_signature(problem) in only(screen(problem, native, "cpu")).message
