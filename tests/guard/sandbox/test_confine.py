"""The walls that one thread can raise around itself, in a thread of this process.

Rights, Landlock, seccomp and mount namespaces belong to threads: the tests' own is left as it was.
Whole sandboxes are in the other files; of what runs in those nobody can measure the coverage.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from pathlib import Path

import pytest

from kernelarc.guard.errors import SandboxUnavailable
from kernelarc.guard.sandbox import (
    SandboxPolicy,
    WallName,
    confine,
    filetree,
    kernel,
    landlock,
    namespaces,
    privileges,
)
from kernelarc.guard.sandbox.confine import SELF_RAISED, raising
from kernelarc.guard.sandbox.policy import SCRATCH

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def in_thread(body):
    """What ``body`` returns in a thread of its own, or its error."""
    outcome = []

    def run():
        try:
            outcome.append(body())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


def tried(action):
    """``None`` when it went well, else the class of the error."""
    try:
        action()
    except OSError as error:
        return type(error)
    return None


@pytest.fixture
def folders(tmp_path):
    """``open``, with ``open/hidden`` and a link to it, and ``closed`` and ``scratch``."""
    for name in ("open/hidden/deep", "open/seen", "closed", "scratch"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("open/file", "open/hidden/file", "open/seen/file", "closed/file"):
        (tmp_path / name).write_text("text")
    (tmp_path / "open/link").symlink_to("hidden")
    return tmp_path


def test_landlock_opens_what_its_rules_name_and_nothing_else(folders):
    def body():
        privileges.forbid_new_privileges()
        rules = [
            *landlock.readable_rules([folders / "open"], [folders / "open/hidden"]),
            (folders / "closed/file", landlock.WRITE_FILE | landlock.READ_DIR),
            (folders / "closed", 0),
            (folders / "nowhere", landlock.READ),
            (folders / "scratch", landlock.writable(landlock.abi())),
        ]
        landlock.restrict(rules)
        return {
            "read": tried((folders / "open/file").read_text),
            "read below": tried((folders / "open/seen/file").read_text),
            "write": tried(lambda: (folders / "open/new").write_text("")),
            "hidden": tried((folders / "open/hidden/file").read_text),
            "by link": tried((folders / "open/link/file").read_text),
            "names": sorted(os.listdir(folders / "open")),
            "closed": tried((folders / "closed/file").read_text),
            "a file's own rights": tried(
                lambda: os.close(os.open(folders / "closed/file", os.O_WRONLY))
            ),
            "closed names": tried(lambda: os.listdir(folders / "closed")),
            "scratch": tried(lambda: (folders / "scratch/new").write_text("")),
            "node": tried(lambda: os.mknod(folders / "scratch/pipe", 0o20600, os.makedev(1, 3))),
        }

    assert in_thread(body) == {
        "read": None,
        "read below": None,
        "write": PermissionError,
        "hidden": PermissionError,
        "by link": PermissionError,
        "names": ["file", "hidden", "link", "seen"],
        "closed": PermissionError,
        "a file's own rights": None,
        "closed names": PermissionError,
        "scratch": None,
        "node": PermissionError,
    }
    assert (folders / "closed/file").read_text() == "text", "only that thread is confined"


def test_a_folder_that_cannot_be_listed_is_granted_no_further(folders, monkeypatch):
    def scandir(path):
        raise PermissionError(path)

    monkeypatch.setattr(landlock.os, "scandir", scandir)
    rules = list(landlock.readable_rules([folders / "open"], [folders / "open/hidden"]))
    assert rules == [(folders / "open", landlock.READ_DIR)]
    assert list(landlock.readable_rules([folders / "open/hidden"], [folders / "open"])) == []


def test_each_version_of_landlock_refuses_what_it_knows():
    assert landlock.file_rights(1) == (1 << 13) - 1
    assert landlock.file_rights(2) == landlock.file_rights(1) | 1 << 13
    assert landlock.file_rights(5) == (1 << 16) - 1
    assert not landlock.writable(5) & (landlock.EXECUTE | landlock.IOCTL_DEV)
    assert landlock.reach(3) == []
    assert landlock.reach(4) == ["TCP"]
    assert landlock.reach(6) == ["TCP", "abstract sockets", "signals to outside"]


WALLS = SELF_RAISED - {WallName.LIMITS}


def test_a_confined_thread_has_no_rights_left(folders):
    policy = SandboxPolicy(readable=(folders / "open",), allow_fork=False, cpus=None)

    def body():
        confine(policy, walls=WALLS, scratch=folders / "scratch")
        return {
            "capabilities": privileges.effective_capabilities(),
            "new rights": kernel.prctl(kernel.PR_GET_NO_NEW_PRIVS),
            "read": tried((folders / "open/file").read_text),
            "closed": tried((folders / "closed/file").read_text),
            "scratch": tried(lambda: (folders / "scratch/new").write_text("")),
            "null": tried(lambda: Path(os.devnull).write_text("gone")),
            "about the machine": tried(Path("/proc/cpuinfo").read_text),
            "about others": tried(Path("/proc/1/cmdline").read_text),
            "network": tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM)),
            "fork": tried(lambda: os.fork() or os._exit(0)),
        }

    before = privileges.effective_capabilities()
    assert in_thread(body) == {
        "capabilities": 0,
        "new rights": 1,
        "read": None,
        "closed": PermissionError,
        "scratch": None,
        "null": None,
        "about the machine": None,
        "about others": PermissionError,
        "network": OSError,
        "fork": PermissionError,
    }
    assert privileges.effective_capabilities() == before


def test_in_its_own_proc_a_process_may_look_around(folders, monkeypatch):
    module = sys.modules["kernelarc.guard.sandbox.confine"]
    assert not module._has_own_proc()
    monkeypatch.setattr(module, "_has_own_proc", lambda: True)
    rules = dict(module._file_rules(SandboxPolicy(readable=()), folders / "scratch"))
    assert rules[Path("/proc")] == landlock.READ_FILE | landlock.READ_DIR
    assert Path("/proc/cpuinfo") not in rules


def test_a_wall_that_cannot_be_raised_is_named(folders, monkeypatch):
    def refuse(rules):
        raise OSError("the kernel has no Landlock")

    monkeypatch.setattr(landlock, "restrict", refuse)
    with pytest.raises(SandboxUnavailable, match=r"'landlock'.*the kernel has no Landlock"):
        in_thread(lambda: confine(SandboxPolicy(readable=()), walls={WallName.LANDLOCK}))


def test_any_refusal_of_the_kernel_names_its_wall():
    said = "'limits' cannot be raised: above the hard limit"
    with pytest.raises(SandboxUnavailable, match=said), raising(WallName.LIMITS):
        raise ValueError("above the hard limit")


def test_no_new_privileges_are_checked_after_they_were_set(monkeypatch):
    monkeypatch.setattr(kernel, "prctl", lambda *_: 0)
    with pytest.raises(OSError, match="not in force after it was set"):
        privileges.forbid_new_privileges()


@pytest.mark.root
@ROOT
@pytest.mark.parametrize("own_proc", [False, True])
def test_the_tree_has_what_it_was_given_and_nothing_else(folders, own_proc):
    policy = SandboxPolicy(
        readable=(folders / "open", folders / "closed/file", folders / "nowhere"),
        hidden=(folders / "open/hidden", folders / "open/seen/file"),
    )
    # Before: what it imports is not in the tree.
    tree = filetree.plan(policy.readable, policy.hidden)

    def body():
        namespaces.unshare(WallName.MOUNT_NAMESPACE)
        filetree.enter(tree, scratch_bytes=1 << 20, uid=12345, own_proc=own_proc)
        return {
            "root": sorted(os.listdir("/")),
            "beside": sorted(os.listdir(folders)),
            "read": (folders / "open/file").read_text(),
            "a file alone": (folders / "closed/file").read_text(),
            "names": sorted(os.listdir(folders / "open")),
            "hidden": os.listdir(folders / "open/hidden"),
            "hidden file": (folders / "open/seen/file").read_text(),
            "write": tried(lambda: (folders / "open/new").write_text("")),
            "write the root": tried(lambda: Path("/new").write_text("")),
            "owner": SCRATCH.stat().st_uid,
            "mode": SCRATCH.stat().st_mode & 0o777,
            "scratch": tried(lambda: (SCRATCH / "new").write_text("")),
            "too much": tried(lambda: (SCRATCH / "large").write_bytes(bytes(2 << 20))),
            "devices": sorted(os.listdir("/dev")),
            "full": tried(lambda: Path("/dev/full").write_text("x")),
            "proc": Path("/proc/cpuinfo").exists(),
        }

    seen = in_thread(body)
    top = folders.parts[1]
    assert set(seen.pop("root")) == {".empty", "dev", "proc", "tmp", top}
    assert seen == {
        "beside": ["closed", "open"],
        "read": "text",
        "a file alone": "text",
        "names": ["file", "hidden", "link", "seen"],
        "hidden": [],
        "hidden file": "",
        "write": OSError,
        "write the root": OSError,
        "owner": 12345,
        "mode": 0o700,
        "scratch": None,
        "too much": OSError,
        "devices": ["fd", "full", "null", "random", "shm", "stderr", "stdin", "stdout", "urandom"],
        "full": OSError,
        "proc": True,
    }
    assert not (folders / "open/new").exists()
    assert (folders / "open/hidden/file").read_text() == "text", "only that thread has moved"


@pytest.mark.root
@ROOT
def test_links_on_the_way_are_made_again(folders):
    (folders / "way").symlink_to("open")
    tree = filetree.plan((folders / "way/seen",), ())
    assert (str(folders / "way"), "open") in tree.links

    def body():
        namespaces.unshare(WallName.MOUNT_NAMESPACE)
        filetree.enter(tree, scratch_bytes=1 << 20, uid=0, own_proc=False)
        return os.readlink(folders / "way"), (folders / "way/seen/file").read_text()

    assert in_thread(body) == ("open", "text")


def test_a_path_that_a_user_cannot_reach_is_left_out(monkeypatch):
    def stat(path):
        raise PermissionError(path)

    monkeypatch.setattr(filetree.os, "stat", stat)
    assert filetree._bind("/somewhere") is False


def test_a_masked_proc_is_replaced_by_the_hosts(monkeypatch):
    mounted = []

    def mount(source, target, kind, flags, data=None):
        if kind == "proc":
            raise PermissionError(target)
        mounted.append((source, target))

    monkeypatch.setattr(filetree.os, "mkdir", lambda *_: None)
    monkeypatch.setattr(filetree, "_mount", mount)
    filetree._proc(own_proc=True)
    assert mounted == [("/.old-root/proc", "/proc")]


def test_links_in_a_circle_lead_nowhere(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert filetree.plan((tmp_path / "a",), ()).binds == ()
