"""Landlock: which files a process may open, and (newer kernels) whom it may reach.

Rules bind to files, not to names, and cannot be taken back. They only ever grant: to hide a
folder inside a readable one, its siblings are granted one by one. File descriptors that are open
already keep their rights, and metadata (``stat``) is not covered.

Source: Linux ``include/uapi/linux/landlock.h`` and ``Documentation/userspace-api/landlock.rst``.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

from kernelarc.guard.sandbox import kernel

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_ABI_1_FILES = (1 << 13) - 1
_REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_ON_A_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV

_TCP_BIND_AND_CONNECT = 0b11
_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11

READ = EXECUTE | READ_FILE | READ_DIR
"""Open, list and run."""

_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1


def abi() -> int:
    """The version of Landlock in this kernel.

    Raises:
        OSError: The kernel was built or started without Landlock.
    """
    return kernel.call("landlock_create_ruleset", None, 0, _CREATE_RULESET_VERSION)


def file_rights(version: int) -> int:
    """Every right on files that this version can refuse."""
    rights = _ABI_1_FILES
    for since, right in ((2, _REFER), (3, TRUNCATE), (5, IOCTL_DEV)):
        rights |= right if version >= since else 0
    return rights


def writable(version: int) -> int:
    """Rights on the scratch folder: everything but programs and device nodes.

    Libraries written there can be loaded: mapping a file is reading it.
    """
    return file_rights(version) & ~(EXECUTE | _MAKE_CHAR | _MAKE_BLOCK | IOCTL_DEV)


def reach(version: int) -> list[str]:
    """What this version closes beyond files, in words."""
    closes = [(4, "TCP"), (6, "abstract sockets"), (6, "signals to outside")]
    return [name for since, name in closes if version >= since]


def restrict(rules: Iterable[tuple[Path, int]]) -> None:
    """Confine this process and its children for good. It must have ``no_new_privs``.

    Args:
        rules: Paths and the rights below them; a path that does not exist is skipped.

    Raises:
        OSError: The kernel refused.
    """
    version = abi()
    handled = file_rights(version)
    attributes = struct.pack(
        "=QQQ",
        handled,
        _TCP_BIND_AND_CONNECT if version >= 4 else 0,
        _ABSTRACT_SOCKETS_AND_SIGNALS if version >= 6 else 0,
    )
    # Older kernels refuse a longer structure only when its tail is not zero.
    ruleset = kernel.call("landlock_create_ruleset", attributes, len(attributes), 0)
    try:
        for path, rights in rules:
            _allow(ruleset, path, rights & handled)
        kernel.call("landlock_restrict_self", ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: Path, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError, NotADirectoryError):
        return  # Nothing there, or this user could not reach it without Landlock either.
    try:
        if not os.path.isdir(path):
            rights &= _ON_A_FILE
        if rights:
            rule = struct.pack("=Qi", rights, fd)
            kernel.call("landlock_add_rule", ruleset, _RULE_PATH_BENEATH, rule, 0)
    finally:
        os.close(fd)


def readable_rules(readable: Iterable[Path], hidden: Iterable[Path]) -> Iterator[tuple[Path, int]]:
    """The rules that make ``readable`` readable and ``hidden`` not."""
    concealed = [Path(os.path.realpath(path)) for path in hidden]
    for path in readable:
        yield from _around(Path(os.path.realpath(path)), concealed)


def _around(path: Path, hidden: list[Path]) -> Iterator[tuple[Path, int]]:
    if any(path.is_relative_to(h) for h in hidden):
        return
    if not any(h.is_relative_to(path) for h in hidden):
        yield path, READ
        return
    # Imports list a package's parent folder; names below it may be seen, contents may not.
    yield path, READ_DIR
    try:
        children = sorted(entry.path for entry in os.scandir(path) if not entry.is_symlink())
    except OSError:
        return
    # A link needs no rule: what it leads to is granted under its own name, or not at all.
    for child in children:
        yield from _around(Path(child), hidden)
