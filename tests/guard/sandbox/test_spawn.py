"""What the parent of a sandbox and the code inside may rely on."""

from __future__ import annotations

import errno
import os
import select
import signal
import subprocess
import sys

import pytest

from kernelarc.guard.sandbox import CANDIDATE_UID, SCRATCH, SandboxPolicy, WallName, spawn_confined
from kernelarc.guard.sandbox.policy import ALL_WALLS, NAMESPACES, scratch_environment

CRASHES = [
    ("segfault", {}, signal.SIGSEGV),
    ("abort", {}, signal.SIGABRT),
    ("die_of", {"number": int(signal.SIGKILL)}, signal.SIGKILL),
    ("die_of", {"number": int(signal.SIGTERM)}, signal.SIGTERM),
    ("die_of", {"number": int(signal.SIGFPE)}, signal.SIGFPE),
]


def ending(answer) -> int:
    assert answer.status is not None
    return os.waitstatus_to_exitcode(answer.status)


@pytest.mark.parametrize("code", [0, 7, 255])
def test_the_exit_code_is_mirrored(host, code):
    assert ending(host.attempt("processes", code=code)) == code
    assert ending(host.attempt("exit_with", value=code)) == code


def test_an_exception_ends_with_code_1(best_host):
    assert ending(best_host.attempt("raise_error")) == 1


@pytest.mark.parametrize(("attempt", "arguments", "number"), CRASHES)
def test_a_crash_is_reported_as_its_real_signal(host, attempt, arguments, number):
    answer = host.attempt(attempt, **arguments)
    assert ending(answer) == -number
    assert answer.all_ended


def test_a_killed_supervisor_takes_everything_with_it_and_leaves_no_status(host):
    answer = host.attempt("hold", kill=True)
    assert answer.result == "linux"
    assert answer.status is None
    assert answer.all_ended


def test_descendants_do_not_outlive_the_confined_process(host):
    answer = host.attempt("fork_without_end", count=8)
    assert answer.result == 8
    assert ending(answer) == 0
    assert answer.all_ended


def test_a_killed_supervisor_ends_a_crowd(host):
    assert host.attempt("fork_without_end", count=8, kill=True).all_ended


def test_inside_there_are_two_processes_and_no_rights(root_host):
    assert root_host.attempt("processes").result == [1, 2]
    identity = root_host.attempt("identity").result
    assert identity["pid"] == 2
    assert identity["uid"] == identity["gid"] == [CANDIDATE_UID] * 3
    assert identity["groups"] == []
    assert set(identity["capabilities"].values()) == {0}
    assert identity["no_new_privs"] == "1"
    assert identity["blocked_signals"] == 0


def test_a_user_gets_no_capability_from_the_user_namespace(user_host):
    identity = user_host.attempt("identity").result
    assert set(identity["capabilities"].values()) == {0}


@pytest.mark.parametrize("missing", [(), ("landlock",), ("seccomp",), ("landlock", "seccomp")])
def test_the_init_is_closed_to_the_process_that_shares_its_user(best_host, missing):
    walls = best_host.raisable() - set(missing)
    answer = best_host.attempt("attack_init", walls=walls, code=5)
    assert ending(answer) == 5, "the confined process and its init lived on"
    assert {"_read_init", "_write_init", "_trace_init"} <= set(answer.result)


def test_the_surroundings_are_clean(best_host):
    environment = {"PATH": "/usr/bin", "HOME": "/root"}
    answer = best_host.attempt("surroundings", policy={"environment": environment}).result
    assert answer["environment"] == environment | scratch_environment(SCRATCH)
    assert answer["folder"] == str(SCRATCH)
    assert answer["files"] == []
    assert answer["standard"] == ["/dev/null"] * 3
    # 0 to 2, the two descriptors that the test keeps, and the listing's own.
    assert len(answer["fds"]) == 6


def test_without_a_mount_namespace_the_scratch_folder_is_private_and_removed(bare_host):
    path = bare_host.attempt("create_in_scratch", name="x").result
    assert path.startswith(f"{SCRATCH}-")
    assert not os.path.exists(os.path.dirname(path))
    kept = bare_host.attempt("create_in_scratch", name="x", kill=True).result
    assert kept != path


def test_scratch_folders_share_nothing(best_host):
    assert best_host.attempt("create_in_scratch", name="left").result == f"{SCRATCH}/left"
    assert best_host.attempt("names", path=str(SCRATCH)).result == []


def test_the_scratch_folder_is_limited_in_size(best_host):
    policy = {"scratch_bytes": 1 << 18, "file_bytes": 1 << 22}
    small = best_host.attempt("create_in_scratch", policy=policy, name="x", size=1 << 16)
    assert small.refused is None
    large = best_host.attempt("create_in_scratch", policy=policy, name="x", size=1 << 19)
    assert large.refused == "ENOSPC"


@pytest.mark.parametrize("place", ["/tmp/x", "/dev/shm/x", "/x", "/usr/lib/x", "/dev/x"])
@pytest.mark.parametrize("walls", [{WallName.MOUNT_NAMESPACE}, {WallName.LANDLOCK}, None])
def test_nothing_else_is_writable(best_host, place, walls):
    answer = best_host.attempt("write", walls=walls, path=place)
    assert answer.refused in ("EACCES", "EROFS", "ENOENT")


def test_a_kept_socket_and_memory_file_work_inside(host):
    answer = host.attempt("use_kept")
    assert (answer.reply, answer.value) == ("PING", 42)
    assert ending(answer) == 0


def test_a_wall_that_the_host_forbids_is_an_error_when_demanded(bare_host):
    answer = bare_host.attempt("hold", walls={WallName.NET_NAMESPACE})
    assert answer.result is None
    assert "'net_namespace' cannot be raised" in answer.unavailable
    assert bare_host.raisable() == ALL_WALLS - NAMESPACES - {WallName.UID}


def test_another_user_is_an_error_for_an_ordinary_one(user_host):
    answer = user_host.attempt("hold", walls={WallName.UID})
    assert "only root" in answer.unavailable


def test_standard_descriptors_cannot_be_kept():
    with pytest.raises(ValueError, match="0 to 2"):
        spawn_confined(SandboxPolicy(readable=()), lambda: 0, [1])


def test_threads_start_although_clone3_is_refused(best_host):
    assert best_host.attempt("start_thread").result == [1]


def test_memory_is_limited_beyond_what_was_in_use(best_host):
    policy = {"data_bytes": 64 << 20}
    assert best_host.attempt("use_data", policy=policy, size=32 << 20).result == 32 << 20
    answer = best_host.attempt("use_data", policy=policy, size=96 << 20)
    assert ending(answer) == 1, "a MemoryError, which nobody catches here"
    unlimited = {"data_bytes": None}
    assert best_host.attempt("use_data", policy=unlimited, size=96 << 20).result == 96 << 20


def test_errors_of_the_kernel_reach_the_candidate_as_errors(best_host):
    assert best_host.attempt("read", path="/etc/shadow").refused in errno.errorcode.values()


CALLER = """
import os, signal, sys
from kernelarc.guard.sandbox import SandboxPolicy, spawn_confined

def stop():
    os.kill(os.getpid(), signal.SIGSTOP)
    return 0

alive = int(sys.argv[1])
spawn_confined(SandboxPolicy(readable=()), stop, (alive,))
os.close(alive)
print("spawned", flush=True)
signal.pause()
"""


def test_a_frozen_sandbox_does_not_outlive_a_killed_caller():
    """Nobody would be left to thaw it."""
    read, write = os.pipe()
    command = [sys.executable, "-c", CALLER, str(write)]
    with subprocess.Popen(command, pass_fds=(write,), stdout=subprocess.PIPE) as caller:
        os.close(write)
        assert caller.stdout.readline() == b"spawned\n"
        assert not select.select([read], [], [], 0)[0], "it ended on its own"
        caller.kill()
    ended, _, _ = select.select([read], [], [], 10)
    os.close(read)
    assert ended
