"""The filter: decided by a small interpreter for every call, and tried in the kernel."""

from __future__ import annotations

import errno
import platform
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelarc.guard.sandbox import WallName, kernel, seccomp

ALLOWED, KILLED = "allowed", "killed"
ONLY = {WallName.SECCOMP}
MACHINES = ("x86_64", "aarch64")


def decide(program: bytes, number: int, arguments: tuple[int, ...] = (), arch: int = 0):
    """Run the filter as the kernel would; ``allowed``, ``killed`` or an errno."""
    padded = (*arguments, *[0] * (6 - len(arguments)))
    data = struct.pack("=iIQ6Q", number, arch, 0, *padded)
    code = list(struct.iter_unpack("=HBBI", program))
    accumulator = position = 0
    while True:
        operation, when_true, when_false, operand = code[position]
        position += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, operand)
        elif operation == 0x54:
            accumulator &= operand
        elif operation == 0x06:
            if operand == 0x7FFF0000:
                return ALLOWED
            return KILLED if operand == 0x80000000 else errno.errorcode[operand & 0xFFFF]
        else:
            jumps = {
                0x15: accumulator == operand,
                0x35: accumulator >= operand,
                0x45: bool(accumulator & operand),
            }
            position += when_true if jumps[operation] else when_false


@pytest.fixture(params=MACHINES)
def machine(request, monkeypatch):
    monkeypatch.setattr(kernel, "machine", lambda: request.param)
    seccomp.program.cache_clear()
    yield request.param
    seccomp.program.cache_clear()


def test_only_the_listed_calls_are_refused_on_both_machines(machine):
    program = seccomp.program(allow_exec=False, own_process_ids=True)
    refused = {kernel.number(n) for n in (*seccomp.REFUSED, *seccomp.PROGRAM_STARTS)} - {None}
    special = {kernel.number(n): e for n, e in (("clone3", "ENOSYS"), ("connect", "ECONNREFUSED"))}
    socket_calls = {kernel.number("socket"), kernel.number("socketpair")}
    for number in range(600):
        outcome = decide(program, number, (1, 1), kernel.AUDIT_ARCH[machine])
        if number in refused:
            assert outcome == "EPERM"
        elif number in special:
            assert outcome == special[number]
        else:
            assert outcome == ALLOWED, (number, socket_calls)


def test_programs_start_only_with_permission(machine):
    arch = kernel.AUDIT_ARCH[machine]
    for name in seccomp.PROGRAM_STARTS:
        number = kernel.number(name)
        assert (
            decide(seccomp.program(allow_exec=True, own_process_ids=True), number, (), arch)
            == ALLOWED
        )
        assert (
            decide(seccomp.program(allow_exec=False, own_process_ids=True), number, (), arch)
            == "EPERM"
        )


def test_without_process_ids_of_its_own_it_may_only_schedule_itself(machine):
    arch = kernel.AUDIT_ARCH[machine]
    own = seccomp.program(allow_exec=True, own_process_ids=True)
    shared = seccomp.program(allow_exec=True, own_process_ids=False)
    for name in seccomp.NAMING_A_PROCESS:
        number = kernel.number(name)
        assert decide(own, number, (7,), arch) == ALLOWED
        assert decide(shared, number, (7,), arch) == "EPERM"
        assert decide(shared, number, (0,), arch) == ALLOWED
    for name in seccomp.RANKS:
        assert decide(own, kernel.number(name), (), arch) == ALLOWED
        assert decide(shared, kernel.number(name), (), arch) == "EPERM"


def test_the_convention_of_another_machine_is_killed(machine):
    program = seccomp.program(allow_exec=True, own_process_ids=True)
    assert decide(program, 1, (), 0x40000003) == KILLED
    if machine == "x86_64":
        assert decide(program, 0x40000000 + 1, (), kernel.AUDIT_ARCH[machine]) == "ENOSYS"


FLAGS = (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
THREAD = 0x3D0F00


@given(flags=st.integers(0, 2**32 - 1), high=st.integers(0, 2**32 - 1))
def test_clone_is_refused_exactly_when_it_asks_for_a_namespace(flags, high):
    program = seccomp.program(allow_exec=False, own_process_ids=True)
    arguments = (high << 32 | flags,)
    outcome = decide(
        program, kernel.number("clone"), arguments, kernel.AUDIT_ARCH[kernel.machine()]
    )
    assert outcome == ("EPERM" if any(flags & flag for flag in FLAGS) else ALLOWED)


def test_the_flags_of_a_thread_are_no_namespace(machine):
    program = seccomp.program(allow_exec=False, own_process_ids=True)
    arch = kernel.AUDIT_ARCH[machine]
    assert decide(program, kernel.number("clone"), (THREAD,), arch) == ALLOWED


@given(family=st.integers(0, 50), kind=st.integers(0, 6), extra=st.sampled_from([0, 0o2004000]))
def test_only_unix_sockets_with_a_fixed_peer_are_made(family, kind, extra):
    program = seccomp.program(allow_exec=True, own_process_ids=True)
    arch = kernel.AUDIT_ARCH[kernel.machine()]
    outcome = decide(program, kernel.number("socket"), (family, kind | extra), arch)
    if family != socket.AF_UNIX:
        assert outcome == "EAFNOSUPPORT"
    else:
        assert outcome == ("EPROTONOSUPPORT" if kind == socket.SOCK_DGRAM else ALLOWED)


def test_the_numbers_of_the_table_are_those_of_this_system():
    if platform.machine() not in MACHINES:
        pytest.skip("another machine")
    assert kernel.number("clone") == {"x86_64": 56, "aarch64": 220}[platform.machine()]
    with pytest.raises(OSError, match="landlock_restrict_self"):
        kernel.call("landlock_restrict_self", -1, 0)


@pytest.mark.parametrize("flag", FLAGS)
def test_the_kernel_refuses_namespaces_by_clone(best_host, flag):
    assert best_host.attempt("clone_with", walls=ONLY, flags=flag).refused == "EPERM"


def test_the_kernel_allows_clone_without_a_namespace_and_namespaces_without_the_wall(best_host):
    assert best_host.attempt("clone_with", walls=ONLY, flags=0).refused is None
    assert best_host.attempt("clone_with", walls=(), flags=0x10000000).refused is None


@pytest.mark.parametrize("kind", ["SOCK_STREAM", "SOCK_SEQPACKET"])
def test_pairs_of_connected_sockets_work(best_host, kind):
    answer = best_host.attempt("socket_pair", walls=ONLY, kind=int(getattr(socket, kind)))
    assert answer.result == "ping"


def test_datagram_pairs_and_seals_are_refused_and_work_without_the_wall(best_host):
    datagram = int(socket.SOCK_DGRAM)
    assert best_host.attempt("socket_pair", walls=ONLY, kind=datagram).refused == "EPROTONOSUPPORT"
    assert best_host.attempt("socket_pair", walls=(), kind=datagram).result == "ping"
    assert best_host.attempt("seal_memory", walls=ONLY).refused == "EPERM"
    assert best_host.attempt("seal_memory", walls=()).refused == "EINVAL"  # No memory file.


def test_uncounted_memory_is_refused_by_the_kernel_and_works_without_the_wall(best_host):
    shared, private = 0x21, 0x22
    for attempt in ("make_memory_file", "make_semaphores", "enlarge_stack"):
        assert best_host.attempt(attempt, walls=ONLY).refused == "ENOMEM"
        assert best_host.attempt(attempt, walls=()).refused is None
    assert best_host.attempt("map_anonymous", walls=ONLY, flags=shared).refused == "ENOMEM"
    assert best_host.attempt("map_anonymous", walls=ONLY, flags=private).refused is None
    assert best_host.attempt("map_anonymous", walls=(), flags=shared).refused is None


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK])
def test_other_families_are_refused(best_host, family):
    answer = best_host.attempt("open_socket", walls=ONLY, family=int(family), kind=3)
    assert answer.refused == "EAFNOSUPPORT"


@given(flags=st.integers(0, 2**32 - 1))
def test_without_forks_clone_makes_threads_only(flags):
    program = seccomp.program(allow_exec=False, own_process_ids=True, allow_fork=False)
    clone, arch = kernel.number("clone"), kernel.AUDIT_ARCH[kernel.machine()]
    namespaces = flags & 0x7E020000
    wanted = ALLOWED if flags & 0x10000 and not namespaces else "EPERM"
    assert decide(program, clone, (flags,), arch) == wanted


@pytest.mark.parametrize("name", ["fork", "vfork"])
def test_the_older_ways_to_fork_follow_the_same_rule(name):
    number, arch = kernel.number(name), kernel.AUDIT_ARCH[kernel.machine()]
    if number is None:
        return
    open_program = seccomp.program(allow_exec=False, own_process_ids=True)
    closed = seccomp.program(allow_exec=False, own_process_ids=True, allow_fork=False)
    assert decide(open_program, number, (), arch) == ALLOWED
    assert decide(closed, number, (), arch) == "EPERM"


def test_fixed_processors_stay_fixed():
    number, arch = kernel.number("sched_setaffinity"), kernel.AUDIT_ARCH[kernel.machine()]
    free = seccomp.program(allow_exec=False, own_process_ids=True)
    fixed = seccomp.program(allow_exec=False, own_process_ids=True, fixed_cpus=True)
    assert decide(free, number, (0,), arch) == ALLOWED
    assert decide(fixed, number, (0,), arch) == "EPERM"


@pytest.mark.parametrize("command", [0, 2, 3, 4, 8, 1030])  # F_DUPFD, F_SETFD, ..., F_SETOWN
def test_of_fcntl_only_seals_and_the_choice_of_a_signal_are_refused(machine, command):
    number, arch = kernel.number("fcntl"), kernel.AUDIT_ARCH[machine]
    program = seccomp.program(allow_exec=False, own_process_ids=True)
    assert decide(program, number, (3, command), arch) == ALLOWED
    for refused in (10, 1033):  # F_SETSIG, F_ADD_SEALS
        assert decide(program, number, (3, refused), arch) == "EPERM"


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        (0x22, ALLOWED),  # private, anonymous
        (0x4022, ALLOWED),  # the same without reserve
        (0x20022, ALLOWED),  # a thread's stack as the C library makes it
        (0x01, ALLOWED),  # a file that is shared with the judge
        (0x02, ALLOWED),  # a library
        (0x21, "ENOMEM"),  # shared, anonymous
        (0x8021, "ENOMEM"),  # the same, filled at once
        (0x122, "ENOMEM"),  # grows down
    ],
)
def test_with_a_limit_on_memory_there_is_none_that_it_does_not_count(machine, flags, wanted):
    number, arch = kernel.number("mmap"), kernel.AUDIT_ARCH[machine]
    counted = seccomp.program(allow_exec=False, own_process_ids=True, counted_memory=True)
    unlimited = seccomp.program(allow_exec=False, own_process_ids=True)
    assert decide(counted, number, (0, 1 << 30, 3, flags, 2**64 - 1), arch) == wanted
    assert decide(unlimited, number, (0, 1 << 30, 3, flags, 2**64 - 1), arch) == ALLOWED
    for name in seccomp.UNCOUNTED_MEMORY:
        assert decide(counted, kernel.number(name), (), arch) == "ENOMEM"
