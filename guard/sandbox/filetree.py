"""A minimal file system: read-only views of the readable folders, one writable scratch.

The process moves into a new root in memory and lets go of the old one, so that what is not
listed does not exist. This is a wall beside Landlock, not instead of it: each holds alone.

Source: ``pivot_root(2)``, ``mount_setattr(2)``, ``mount_namespaces(7)``.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from kernelarc.guard.sandbox import kernel
from kernelarc.guard.sandbox.policy import SCRATCH

_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
_MNT_DETACH = 2
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4

_STAGE = "/tmp"  # noqa: S108 - only a mount point, which exists everywhere
_OLD = "/.old-root"
_EMPTY = "/.empty"
_ROOT_BYTES = 1 << 20
_SCRATCH_FILES = 65_536
_MOST_LINKS = 40

DEVICES = ("null", "full", "random", "urandom")
"""Not ``zero``: a shared mapping of it is memory that no limit counts."""
_DEVICE_LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}


class TreePlan(NamedTuple):
    """What the new root will hold; all paths are absolute."""

    links: tuple[tuple[str, str], ...]
    """Symbolic links and their targets, found on the way to a bound path."""
    binds: tuple[str, ...]
    """Existing files and folders without symbolic links in their path, none below another."""
    masks: tuple[str, ...]
    """Hidden files and folders below them."""


@lru_cache(maxsize=16)
def plan(readable: tuple[Path, ...], hidden: tuple[Path, ...]) -> TreePlan:
    """Work out the tree once for all processes of one policy."""
    links: dict[str, str] = {}
    found = {real for path in readable if (real := _resolve(os.path.abspath(path), links))}
    binds = [p for p in sorted(found) if not any(_below(p, other) for other in found)]
    masks = {os.path.realpath(path) for path in hidden}
    outer_masks = [p for p in sorted(masks) if not any(_below(p, other) for other in masks)]
    return TreePlan(
        tuple(
            (path, target)
            for path, target in sorted(links.items())
            if not any(_below(path, bind) for bind in binds)
        ),
        tuple(binds),
        tuple(p for p in outer_masks if any(p == b or _below(p, b) for b in binds)),
    )


def _below(path: str, folder: str) -> bool:
    return path != folder and path.startswith(folder.rstrip("/") + "/")


def _resolve(path: str, links: dict[str, str]) -> str | None:
    """Follow ``path`` and note the links on the way; ``None`` when it leads nowhere."""
    for _ in range(_MOST_LINKS):
        link = next((p for p in _prefixes(path) if os.path.islink(p)), None)
        if link is None:
            return path if os.path.exists(path) else None
        target = os.readlink(link)
        links[link] = target
        path = os.path.normpath(os.path.join(os.path.dirname(link), target) + path[len(link) :])
    return None


def _prefixes(path: str) -> Iterator[str]:
    end = path.find("/", 1)
    while end > 0:
        yield path[:end]
        end = path.find("/", end + 1)
    yield path


def enter(tree: TreePlan, *, scratch_bytes: int, uid: int, own_proc: bool) -> None:
    """Make ``tree`` the root of this process. It must be in a mount namespace of its own.

    Args:
        tree: What to show.
        scratch_bytes: Size of the file system at ``SCRATCH``.
        uid: Owner of the scratch folder.
        own_proc: Whether the process has its own process ids, so that ``/proc`` is made anew.

    Raises:
        OSError: The kernel refused.
    """
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    _mount("tmpfs", _STAGE, "tmpfs", _MS_NOSUID | _MS_NODEV, f"size={_ROOT_BYTES},mode=0755")
    os.mkdir(_STAGE + _OLD)
    os.chdir(_STAGE)
    kernel.call("pivot_root", b".", os.fsencode(_OLD[1:]))
    os.chdir("/")
    os.mkdir(_EMPTY, 0o555)
    _bind_all(tree)
    _devices()
    _proc(own_proc=own_proc)
    SCRATCH.mkdir(parents=True)
    _mount(
        "tmpfs",
        str(SCRATCH),
        "tmpfs",
        _MS_NOSUID | _MS_NODEV,
        f"size={scratch_bytes},nr_inodes={_SCRATCH_FILES},mode=0700,uid={uid},gid={uid}",
    )
    kernel.call("umount2", os.fsencode(_OLD), _MNT_DETACH)
    os.rmdir(_OLD)
    _set_attributes("/", _ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV, recursive=False)


def _bind_all(tree: TreePlan) -> None:
    for path in tree.binds:
        if _bind(path):
            _set_attributes(path, _ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV, recursive=True)
    for path, target in tree.links:
        if not os.path.lexists(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.symlink(target, path)
    for path in tree.masks:
        if os.path.isdir(path):
            _mount(_EMPTY, path, None, _MS_BIND)
        elif os.path.lexists(path):
            _mount(f"{_OLD}/dev/null", path, None, _MS_BIND)


def _bind(path: str) -> bool:
    """Show a file or folder of the old root at the same place in the new one, if it can."""
    source = _OLD + path
    try:
        mode = os.stat(source).st_mode
    except PermissionError:
        return False  # This user could not read it without a sandbox either.
    if stat.S_ISDIR(mode):
        os.makedirs(path, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_CLOEXEC, 0o444))
    _mount(source, path, None, _MS_BIND | _MS_REC)
    return True


def _devices() -> None:
    for name in DEVICES:
        _bind(f"/dev/{name}")
    for name, target in _DEVICE_LINKS.items():
        os.symlink(target, f"/dev/{name}")
    os.mkdir("/dev/shm")  # noqa: S108 - read-only here


def _proc(*, own_proc: bool) -> None:
    os.mkdir("/proc", 0o555)
    if own_proc:
        try:
            _mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
        except PermissionError:
            pass  # In a container that masks parts of /proc; the host's view serves as well.
        else:
            return
    _mount(f"{_OLD}/proc", "/proc", None, _MS_BIND | _MS_REC)


def _mount(
    source: str | None, target: str, kind: str | None, flags: int, data: str | None = None
) -> None:
    words = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    kernel.call("mount", *words, flags, None if data is None else os.fsencode(data))


def _set_attributes(path: str, attributes: int, *, recursive: bool) -> None:
    """Add restrictions to a mount, and to those below it."""
    request = struct.pack("=QQQQ", attributes, 0, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    kernel.call("mount_setattr", _AT_FDCWD, os.fsencode(path), flags, request, len(request))
