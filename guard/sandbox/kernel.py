"""System calls by number, for the two machines that KernelArc supports.

The C library has no wrapper for Landlock, and wrappers for the rest differ between versions, so
everything goes through ``syscall(2)``.

Source of the numbers: the Linux kernel's ``arch/x86/entry/syscalls/syscall_64.tbl`` and
``include/uapi/asm-generic/unistd.h`` (used by aarch64).
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from functools import cache

from kernelarc.guard.errors import SandboxUnavailable

_X86_64, _AARCH64 = 0, 1
_COLUMNS = {"x86_64": _X86_64, "aarch64": _AARCH64}

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""``seccomp_data.arch`` of each machine (``linux/audit.h``)."""

_NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "capset": (126, 91),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "connect": (42, 203),
    "delete_module": (176, 106),
    "execve": (59, 221),
    "execveat": (322, 281),
    "fanotify_init": (300, 262),
    "fcntl": (72, 25),
    "finit_module": (313, 273),
    "fork": (57, None),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_setup": (206, 0),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "ioprio_set": (251, 30),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "landlock_add_rule": (445, 445),
    "landlock_create_ruleset": (444, 444),
    "landlock_restrict_self": (446, 446),
    "lookup_dcookie": (212, 18),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "migrate_pages": (256, 238),
    "mmap": (9, 222),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "mq_notify": (244, 184),
    "mremap": (25, 216),
    "msgget": (68, 186),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "pivot_root": (155, 41),
    "prlimit64": (302, 261),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "semget": (64, 190),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "setpriority": (141, 140),
    "settimeofday": (164, 170),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmget": (29, 194),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "timer_create": (222, 107),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "uselib": (134, None),
    "userfaultfd": (323, 282),
    "vfork": (58, None),
    "vhangup": (153, 58),
}

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_GET_NO_NEW_PRIVS = 39
PR_CAP_AMBIENT = 47


@cache
def machine() -> str:
    """This machine's name, ``x86_64`` or ``aarch64``.

    Raises:
        SandboxUnavailable: The system is not Linux, or the processor is another one.
    """
    name = platform.machine()
    if sys.platform != "linux" or name not in _COLUMNS or sys.maxsize < 2**32:
        raise SandboxUnavailable(
            f"the sandbox needs 64-bit Linux on x86_64 or aarch64; this is {sys.platform} on "
            f"{name}. Run the guard on a Linux host or in a Linux virtual machine."
        )
    return name


def number(name: str) -> int | None:
    """The number of a system call here; ``None`` when this machine does not have it."""
    return _NUMBERS[name][_COLUMNS[machine()]]


@cache
def _libc() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long  # Some calls return an address.
    return library


def call(name: str, *arguments: int | bytes | None) -> int:
    """Make a system call.

    Args:
        name: A name in the table above.
        arguments: Integers, byte strings (passed as pointers) or ``None`` (null pointers).

    Raises:
        OSError: The kernel refused; the text names the call.
    """
    index = number(name)
    assert index is not None, f"{name} does not exist on {machine()}"
    words = [
        ctypes.c_long(argument) if isinstance(argument, int) else ctypes.c_char_p(argument)
        for argument in arguments
    ]
    result = int(_libc().syscall(ctypes.c_long(index), *words))
    if result < 0:
        _raise(name)
    return result


def prctl(option: int, *arguments: int) -> int:
    """``prctl(2)`` with its unused arguments zero, as newer options demand.

    Raises:
        OSError: The kernel refused.
    """
    words = [ctypes.c_ulong(value) for value in (*arguments, 0, 0, 0, 0)[:4]]
    result = int(_libc().prctl(ctypes.c_int(option), *words))
    if result < 0:
        _raise(f"prctl({option})")
    return result


def _raise(what: str) -> None:
    code = ctypes.get_errno()
    raise OSError(code, f"{what}: {os.strerror(code)}")
