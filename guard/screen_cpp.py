"""The screen for C, C++ and CUDA: tokens only, as far as they can be told without compiling."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from kernelarc.guard.schema.status import EvaluationStatus
from kernelarc.guard.screen_finding import (
    NO_FILES,
    NO_NETWORK,
    NO_PROGRAMS,
    Entry,
    ScreenFinding,
)

_COMPILE_ERROR, _POLICY = EvaluationStatus.COMPILE_ERROR, EvaluationStatus.POLICY

_TOKEN = re.compile(
    r"""
      (?P<comment> // [^\n]* | /\* .*? (?: \*/ | \Z ) )
    | (?P<raw> \b (?:u8|[uUL])? R" (?P<mark> [^()\\\s]{0,16} ) \( .*? (?: \) (?P=mark) " | \Z ) )
    | (?P<string> " (?: \\. | [^"\\\n] )* (?: " | $ ) )
    | (?P<number> \b \d (?: [\w.] | '(?=\w) )* )
    | (?P<character> ' (?: \\. | [^'\\\n] )* (?: ' | $ ) )
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_SPLICE = re.compile(r"\\[ \t]*\n")
_INCLUDE = re.compile(
    r'^[ \t\v]*#[ \t\v]*include(?:_next)?[ \t\v]*(?P<open>["<])(?P<path>[^">\n]*)', re.M
)
_EMBED = re.compile(r"^[ \t\v]*#[ \t\v]*embed\b", re.M)
_INCBIN = re.compile(r'"[^"\n]*\.incbin\b')
_CALL = re.compile(
    r"\b(?P<name>fork|vfork|ptrace|system|popen|socket|execve?|execvpe?|execle?|execlp"
    r"|posix_spawnp?|process_vm_readv|process_vm_writev)\s*\("
)
_LOOK_BACK = 64
"""Characters before a name that tell what it is; bounded, so that no text takes long."""
_STATEMENT_WORDS = ("return", "else", "do", "co_await", "co_return")
_C_REASONS = {"socket": NO_NETWORK, "ptrace": "there is no process to look into"}


def screen_c(path: str, text: str, files: Mapping[str, str]) -> Iterator[ScreenFinding]:
    """Look at one file for what cannot work in the sandbox."""
    spliced, code = _without_comments(text), _code_only(text)
    for match in _INCLUDE.finditer(spliced):
        if reason := _misplaced_include(path, match["path"], files):
            yield ScreenFinding(
                _POLICY,
                path,
                _line(spliced, match.start("path")),
                f"#include {match['path']}: {reason}",
            )
    for pattern, what in ((_EMBED, "#embed"), (_INCBIN, ".incbin")):
        for match in pattern.finditer(spliced):
            message = f"{what}: {NO_FILES}"
            yield ScreenFinding(_POLICY, path, _line(spliced, match.end()), message)
    # Once for each name: a text may have it ten thousand times.
    own = {name for name in set(_CALL.findall(code)) if _defines(code, name)}
    for match in _CALL.finditer(code):
        name = match["name"]
        if name not in own and _calls_the_system(code, match.start()):
            reason = _C_REASONS.get(name, NO_PROGRAMS)
            yield ScreenFinding(
                _POLICY, path, _line(code, match.start("name")), f"{name}(): {reason}"
            )


def _without_comments(text: str, *, keep_strings: bool = True) -> str:
    """The text with comments blanked, newlines kept, so that positions and lines stay."""

    def blank(match: re.Match[str]) -> str:
        kind = match.lastgroup
        if kind == "number" or (keep_strings and kind in ("string", "character")):
            return match[0]
        return re.sub(r"[^\n\v]", " ", match[0])

    # A line that is continued becomes one line, padded with the newlines that it lost.
    text = _SPLICE.sub(lambda match: " " * len(match[0][:-1]) + "\v", text)
    return _TOKEN.sub(blank, text)


def _code_only(text: str) -> str:
    return _without_comments(text, keep_strings=False)


def _line(text: str, position: int) -> int:
    """Line of a position, counted from 1; a vertical tab stands for a continued line's end."""
    return text.count("\n", 0, position) + text.count("\v", 0, position) + 1


def _misplaced_include(path: str, target: str, files: Mapping[str, str]) -> str | None:
    if target.startswith("/"):
        return "absolute paths do not exist in the sandbox; include system headers by name"
    if ".." in PurePosixPath(target).parts:
        resolved = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        if resolved not in files:
            return f"it leads to {resolved!r}, which is not one of the solution's files"
    return None


def _calls_the_system(code: str, position: int) -> bool:
    """Whether the name there is a call of the C library's function.

    It is not when it is a member, in another namespace, or declared right there.
    """
    before = code[max(0, position - _LOOK_BACK) : position].rstrip()
    word = re.search(r"\w+\Z", before)
    if word:
        return word[0] in _STATEMENT_WORDS
    if before.endswith("::"):
        return re.search(r"(?:\bstd\s*|[^\w\s]\s*|\A\s*)::\Z", before) is not None
    return not before.endswith((".", "->", "*", "&", ">", "]"))


def _defines(code: str, name: str) -> bool:
    """Whether the solution has something of its own under that name."""
    for match in re.finditer(rf"\b{name}\b", code):
        before = code[max(0, match.start() - _LOOK_BACK) : match.start()]
        word = re.search(r"(\w+)[\s*&]+\Z", before)
        if word and word[1] not in _STATEMENT_WORDS:
            return True
    return False


def screen_cpp_entry(files: Mapping[str, str], entry: Entry) -> Iterator[ScreenFinding]:
    """Look for the ``extern "C"`` function among all files."""
    codes = {path: _code_only(text) for path, text in files.items()}
    everything = "\n".join(codes.values())
    if "##" in everything or re.search(r"\basm\b|__asm__", everything):
        return  # Names may be put together by macros or labels: the compiler will tell.
    with_strings = "\n".join(_without_comments(text) for text in files.values())
    expected = f"Expected:\n{entry.signature}"
    if not re.search(rf"\b{entry.function}\b", everything):
        message = f"no function {entry.function!r} in the sources. {expected}"
        yield ScreenFinding(_COMPILE_ERROR, entry.file, None, message)
    elif not re.search(r'\bextern\s*"C"', with_strings):
        message = (
            f'{entry.function!r} is not declared extern "C", so it cannot be found. {expected}'
        )
        yield ScreenFinding(_COMPILE_ERROR, entry.file, None, message)
    else:
        yield from _screen_cpp_parameters(codes, entry)


def _screen_cpp_parameters(codes: Mapping[str, str], entry: Entry) -> Iterator[ScreenFinding]:
    pattern = re.compile(rf"\bvoid\s+{entry.function}\s*\((?P<list>[^()]*)\)\s*\{{")
    found = [
        (path, _line(code, match.start()), _parameters(match["list"]))
        for path, code in codes.items()
        for match in pattern.finditer(code)
    ]
    counts = [count for _, _, count in found]
    if not found or None in counts or entry.parameters in counts:
        return
    path, line, count = found[-1]
    yield ScreenFinding(
        _COMPILE_ERROR,
        path,
        line,
        f"{entry.function!r} takes {count} parameters and is called with {entry.parameters}. "
        f"Expected:\n{entry.signature}",
    )


def _parameters(text: str) -> int | None:
    """How many parameters a list has; ``None`` when macros or templates hide it."""
    parts = [part.strip() for part in text.split(",")]
    if parts in ([""], ["void"]):
        return 0
    if "<" in text or any(re.fullmatch(r"\w*", part) for part in parts):
        return None
    return len(parts)
