"""seccomp: the system calls that no candidate needs and an attacker would like.

A list of refusals rather than of permissions: CUDA, OpenMP, torch and g++ use a wide and changing
set of harmless calls, and a refusal by mistake would look like a broken candidate. A refused call
fails with an ordinary error, so that a library can fall back; only a call by another machine's
convention, which could slip through the numbers, kills.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from functools import cache

from kernelarc.guard.sandbox import kernel

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_JUMP_ANY_BIT = 0x45
_KILL_PROCESS, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_X32_BIT = 0x40000000
_NUMBER_AT, _ARCH_AT = 0, 4

_AF_UNIX = 1
_SOCK_TYPE_MASK, _SOCK_DGRAM = 0xF, 2
_F_SETSIG, _F_ADD_SEALS = 10, 1033
_CLONE_THREAD = 0x10000
_MAP_SHARED_ANONYMOUS, _MAP_GROWSDOWN = 0x21, 0x100
_CLONE_NEW_ANY = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""

REFUSED = (
    # Other processes: their memory, their descriptors, their state.
    *("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease"),
    *("pidfd_open", "pidfd_getfd", "pidfd_send_signal", "kcmp", "move_pages"),
    "migrate_pages",
    # Mounts, roots and namespaces: the tools that the sandbox itself is made of.
    *("mount", "umount2", "pivot_root", "chroot", "unshare", "setns", "mount_setattr"),
    *("open_tree", "open_tree_attr", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick"),
    # Wide or young kernel interfaces with a history of holes.
    *("bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter"),
    *("io_uring_register", "add_key", "request_key", "keyctl", "fanotify_init"),
    *("open_by_handle_at", "name_to_handle_at", "lookup_dcookie", "modify_ldt", "uselib"),
    # Its contexts are numbered for the whole host: one process can take them all.
    "io_setup",
    # The machine itself.
    *("kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "reboot"),
    *("swapon", "swapoff", "acct", "quotactl", "quotactl_fd", "syslog", "vhangup", "iopl"),
    *("ioperm", "sethostname", "setdomainname", "personality"),
    # A frozen process is woken by any SIGCONT, also by one that it ordered beforehand.
    *("timer_create", "mq_notify"),
    # Clocks.
    *("settimeofday", "clock_settime", "adjtimex", "clock_adjtime"),
)
"""Refused with EPERM, whatever the arguments."""

PROGRAM_STARTS = ("execve", "execveat")

RANKS = ("setpriority", "ioprio_set")
NAMING_A_PROCESS = (
    *("sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr", "prlimit64"),
)
"""Without process ids of its own, a candidate of the judge's user could slow the judge down with
these, and so shift its clock; zero means the caller and stays allowed."""

UNCOUNTED_MEMORY = (
    *("memfd_create", "memfd_secret", "shmget"),
    *("semget", "msgget"),
    "mremap",
)
"""Memory that RLIMIT_DATA does not count (``setrlimit(2)``): shared memory; two gigabytes of kernel
memory per thousand sets of semaphores, which the kernel does not see when it looks for whom to end;
a page of the stack that is made larger. The C library copies where it cannot remap."""

_Instruction = tuple[int, int, int, int]
"""Code, jump when true, jump when false, operand."""


def restrict(
    *,
    allow_exec: bool,
    own_process_ids: bool,
    allow_fork: bool = True,
    fixed_cpus: bool = False,
    counted_memory: bool = False,
) -> None:
    """Install the filter in this process and its children for good.

    The process must have ``no_new_privs`` and only one thread.

    Args:
        allow_exec: Whether programs may be started.
        own_process_ids: Whether the process can only name processes of its own sandbox.
        allow_fork: Whether it may start other processes, not only threads.
        fixed_cpus: Whether it must stay on the processors that it has.
        counted_memory: Whether it gets only memory that RLIMIT_DATA counts.

    Raises:
        OSError: The kernel refused.
    """
    code = program(
        allow_exec=allow_exec,
        own_process_ids=own_process_ids,
        allow_fork=allow_fork,
        fixed_cpus=fixed_cpus,
        counted_memory=counted_memory,
    )
    buffer = ctypes.create_string_buffer(code, len(code))
    # struct sock_fprog: length in instructions, padding, pointer.
    header = ctypes.create_string_buffer(
        struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))
    )
    filter_mode = 2
    kernel.prctl(kernel.PR_SET_SECCOMP, filter_mode, ctypes.addressof(header))


@cache
def program(
    *,
    allow_exec: bool,
    own_process_ids: bool,
    allow_fork: bool = True,
    fixed_cpus: bool = False,
    counted_memory: bool = False,
) -> bytes:
    """The filter as classic BPF, 8 bytes per instruction."""
    instructions = [
        (_LOAD, 0, 0, _ARCH_AT),
        (_JUMP_EQUAL, 1, 0, kernel.AUDIT_ARCH[kernel.machine()]),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    if kernel.machine() == "x86_64":
        instructions += [(_JUMP_AT_LEAST, 0, 1, _X32_BIT), _fail(errno.ENOSYS)]
    refused = (*REFUSED, *(() if allow_exec else PROGRAM_STARTS))
    refused += ("sched_setaffinity",) if fixed_cpus and own_process_ids else ()
    for name in refused if own_process_ids else (*refused, *RANKS):
        instructions += _on(name, [_fail(errno.EPERM)])
    for name in () if own_process_ids else NAMING_A_PROCESS:
        body = [_load_argument(0), (_JUMP_EQUAL, 1, 0, 0), _fail(errno.EPERM)]
        instructions += _on(name, body)
    # Its flags lie in memory, out of a filter's sight; the C library falls back to clone.
    instructions += _on("clone3", [_fail(errno.ENOSYS)])
    clone = [_load_argument(0), (_JUMP_ANY_BIT, 0, 1, _CLONE_NEW_ANY), _fail(errno.EPERM)]
    if not allow_fork:
        clone += [(_JUMP_ANY_BIT, 1, 0, _CLONE_THREAD), _fail(errno.EPERM)]
    instructions += _on("clone", clone)
    for name in () if allow_fork else ("fork", "vfork"):
        instructions += _on(name, [_fail(errno.EPERM)])
    if counted_memory:
        instructions += _only_counted_memory()
    # Candidates have nobody to talk to. Their one socket is connected already; datagram sockets
    # could name another receiver with every message, and Landlock does not cover named sockets.
    instructions += _on("connect", [_fail(errno.ECONNREFUSED)])
    for name in ("socket", "socketpair"):
        instructions += _on(name, _only_unix_streams())
    # A seal on memory shared with the judge could lock the judge out of its own buffers; a
    # descriptor that sends SIGCONT when something comes in would end the freeze.
    body = [_load_argument(1), (_JUMP_EQUAL, 1, 0, _F_SETSIG), (_JUMP_EQUAL, 0, 1, _F_ADD_SEALS)]
    instructions += _on("fcntl", [*body, _fail(errno.EPERM)])
    instructions.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)


def _only_counted_memory() -> list[_Instruction]:
    """Refuse memory beside the data limit: shared with nobody, or a stack of any size."""
    refused = [i for name in UNCOUNTED_MEMORY for i in _on(name, [_fail(errno.ENOMEM)])]
    shared = (_JUMP_EQUAL, 0, 1, _MAP_SHARED_ANONYMOUS)
    stack = (_JUMP_ANY_BIT, 0, 1, _MAP_GROWSDOWN)
    flags = _load_argument(3)
    body = [flags, (_AND, 0, 0, _MAP_SHARED_ANONYMOUS), shared, _fail(errno.ENOMEM)]
    return [*refused, *_on("mmap", [*body, flags, stack, _fail(errno.ENOMEM)])]


def _on(name: str, body: list[_Instruction]) -> list[_Instruction]:
    """Run ``body`` for one call, then allow; skip it for the others (the number is loaded)."""
    index = kernel.number(name)
    if index is None:
        return []
    allow = [(_RETURN, 0, 0, _ALLOW)]
    return [(_JUMP_EQUAL, 0, len(body) + 1, index), *body, *allow]


def _only_unix_streams() -> list[_Instruction]:
    return [
        _load_argument(0),
        (_JUMP_EQUAL, 1, 0, _AF_UNIX),
        _fail(errno.EAFNOSUPPORT),
        _load_argument(1),
        (_AND, 0, 0, _SOCK_TYPE_MASK),
        (_JUMP_EQUAL, 0, 1, _SOCK_DGRAM),
        _fail(errno.EPROTONOSUPPORT),
    ]


def _load_argument(index: int) -> _Instruction:
    """The low 32 bits of an argument; both machines are little-endian."""
    return (_LOAD, 0, 0, 16 + 8 * index)


def _fail(code: int) -> _Instruction:
    return (_RETURN, 0, 0, _ERRNO | code)
