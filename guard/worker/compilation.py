"""Compile a C++ solution: the part that runs in the sandbox, and the judge's side of it.

g++ sees a private scratch folder, the system's headers and nothing else. Only bytes come back:
the library through a memory file, the compiler's words through another. The judge copies the
library; it never loads or parses it.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelarc.guard.sandbox.policy import SCRATCH
from kernelarc.guard.schema import CompileFacts, EvaluationStatus, Language
from kernelarc.guard.screen import Entry, screen_files

BASE_FLAGS = ("-O3", "-march=native", "-std=c++20", "-shared", "-fPIC", "-fopenmp")
ALLOWED_FLAG = re.compile(
    r"-O[0123]|-Ofast|-Os|-march=native|-mtune=native|-std=(c|gnu)\+\+(17|20|23)"
    r"|-f(no-)?(fast-math|math-errno|trapping-math|signed-zeros|associative-math|reciprocal-math"
    r"|finite-math-only|unroll-loops|unroll-all-loops|tree-vectorize|inline-functions|openmp|openmp-simd"
    r"|strict-aliasing|omit-frame-pointer|peel-loops|split-loops|unswitch-loops|prefetch-loop-arrays"
    r"|rounding-math|PIC|lto)"
    r"|-mprefer-vector-width=(128|256|512)|-m(no-)?(fma|avx|avx2|avx512f|avx512vl|avx512bw|avx512dq)"
    r"|-W(all|extra|pedantic|no-[a-z-]+)|-D[A-Za-z_][A-Za-z0-9_]*(=[A-Za-z0-9_.+-]*)?|-g|-shared"
)
"""Flags that change code generation. Nothing that names a file, a plugin or another program."""
MAX_LIBRARY_BYTES = 64 << 20
MAX_LOG_CHARACTERS = 6000
POLICY_EXIT_CODE = 77
"""Of the compiling process, when the static screen found what no solution may do."""


@dataclass(frozen=True)
class CompiledLibrary:
    """A shared library as bytes, with what the compiler said."""

    data: bytes
    facts: CompileFacts


def rejected_flags(flags: list[str]) -> list[str]:
    """Those of ``flags`` that a solution may not use."""
    return [f for f in flags if not ALLOWED_FLAG.fullmatch(f)]


def compile_in_sandbox(spec: dict[str, Any], log_fd: int, out_fd: int) -> int:
    """Write the sources to the scratch folder and run g++ there. Returns its exit code.

    Runs in the confined process: the judge believes only the bytes in ``out_fd``.
    """
    if refusal := screened(spec):
        os.write(log_fd, refusal.text.encode(errors="replace"))
        return POLICY_EXIT_CODE if refusal.is_policy else 1
    folder = Path(os.environ["TMPDIR"]) / "build"
    folder.mkdir()
    for name, text in spec["files"].items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    # With "./" in front no name is taken for an option.
    units = [f"./{n}" for n in sorted(spec["files"]) if n.endswith((".cpp", ".cc", ".cxx", ".c"))]
    # Outside the folder, where no source can be in the way.
    command = [spec["compiler"], *spec["flags"], "-I.", *units, "-o", "../solution.so"]
    with os.fdopen(os.dup(log_fd), "wb") as log:
        done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    if done.returncode == 0:
        data = (folder.parent / "solution.so").read_bytes()
        view = memoryview(data)
        while view:
            view = view[os.write(out_fd, view) :]
    return done.returncode if done.returncode >= 0 else 128 - done.returncode


@dataclass(frozen=True)
class Refusal:
    """What the static screen has against a solution."""

    is_policy: bool
    text: str


def screened(spec: dict[str, Any]) -> Refusal | None:
    """Look at the sources with the static screen; runs in the sandbox, as it parses them."""
    if spec["screen"] is None:
        return None
    entry = {k: v for k, v in spec["screen"].items() if k != "device"}
    findings = screen_files(
        spec["files"], Language(spec["language"]), Entry(**entry), spec["screen"]["device"]
    )
    refusing = [f for f in findings if f.status is not None]
    if not refusing:
        return None
    lines = [f"{f.file}:{f.line or 1}: {f.message}" for f in refusing[:10]]
    policy = any(f.status is EvaluationStatus.POLICY for f in refusing)
    return Refusal(policy, "\n".join(lines))


def cut_log(raw: bytes) -> str:
    """What a compiler or a runner wrote, as text: head and tail, control characters removed."""
    text = steady(printable(raw.decode("utf-8", errors="replace")))
    if len(text) <= MAX_LOG_CHARACTERS:
        return text.strip()
    head, tail = text[: MAX_LOG_CHARACTERS * 2 // 3], text[-MAX_LOG_CHARACTERS // 3 :]
    omitted = len(text) - len(head) - len(tail)
    return f"{head.rstrip()}\n... {omitted} characters omitted ...\n{tail.lstrip()}".strip()


def printable(text: str) -> str:
    """Text without control characters other than newline and tab."""
    return "".join(c for c in text if c in "\n\t" or (c.isprintable()))


_IN_SCRATCH = re.compile(rf"{re.escape(str(SCRATCH))}(?:-[a-z0-9_]{{8}})?/(cc[A-Za-z0-9]{{6}}\b)?")
_OBJECT_ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]+|\b0x(?:7[ef]|5[56])[0-9a-fA-F]{10}\b")
"""Of Python's objects, whatever it looks like; elsewhere only where the kernel puts programs,
libraries and stacks, as other numbers in hexadecimal are offsets or the candidate's own."""
_THREAD_ID = re.compile(r"(?<=started )\d{6,}|(?<=started daemon )\d{6,}|\b1(?:39|40)\d{12}\b")
"""As ``threading`` shows it, or as the number that it is: an address in decimal."""


def steady(text: str) -> str:
    """Text without what differs from one run of the same solution to the next.

    Those are names that the compiler driver draws for its intermediate files, addresses and
    thread ids. What a candidate draws itself it may show; that verdict is its own fault.
    """
    text = _IN_SCRATCH.sub(lambda found: "<object>" if found[1] else "", text)
    text = _OBJECT_ADDRESS.sub(lambda found: found[0].partition("0x")[0] + "0x...", text)
    return _THREAD_ID.sub("...", text)


def load_failure(text: str, entry_file: str, entry_function: str) -> str:
    """Why a library did not load, and what to do: the loader's words without its name for it.

    Args:
        text: The loader's message, ``/proc/self/fd/7: undefined symbol: _Z3foof``.
        entry_file: Where the entry point should be.
        entry_function: Its name.
    """
    text = re.sub(r"^/proc/self/fd/\d+", "solution.so", text)
    found = re.search(r": undefined symbol: ([^\s,]+)", text)
    if found is None:
        return text
    symbol = found[1]
    if symbol == entry_function:
        return (
            f"{text}. The entry point is missing: {entry_file} must define "
            f'extern "C" void {entry_function}(...); without extern "C" C++ gives it another name.'
        )
    if (readable := _demangled(symbol)) is not None:
        return (
            f"{text}, that is {readable}. It is declared and used, but not defined: define it, or "
            'declare it extern "C" if it is a function of C.'
        )
    return f"{text}. It is declared and used, but defined neither in the sources nor in a library."


def _demangled(symbol: str) -> str | None:
    """A name of C++ as it is in the source; ``None`` for one that is not of C++."""
    if not symbol.startswith("_Z"):
        return None
    # The library of the compiler's own tool, which every process with torch has loaded.
    with contextlib.suppress(OSError, AttributeError):
        demangle = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
        demangle.restype = ctypes.c_void_p
        address = demangle(symbol.encode(), None, None, None)
        # Not freed: the process ends with this message.
        return ctypes.string_at(address).decode(errors="replace") if address else None
    return None


def cache_key(files: dict[str, str], flags: list[str], compiler: str) -> str:
    """Content address of a build: sources, flags and the compiler's identity."""
    digest = hashlib.sha256()
    for part in (compiler, *flags, *(x for n in sorted(files) for x in (n, files[n]))):
        digest.update(len(part).to_bytes(8, "little") + part.encode())
    return digest.hexdigest()
