"""What the tests run inside the sandbox. Each returns something that JSON can hold."""

from __future__ import annotations

import ctypes
import ctypes.util
import errno
import mmap
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from kernelarc.guard.sandbox import kernel


def exit_with(value):
    os._exit(value)


def raise_error():
    raise RuntimeError("not an OSError: it ends the process")


def die_of(number):
    os.kill(os.getpid(), number)


def segfault():
    ctypes.string_at(0)


def abort():
    os.abort()


def identity():
    status = dict(
        line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines()
    )
    return {
        "pid": os.getpid(),
        "uid": os.getresuid(),
        "gid": os.getresgid(),
        "groups": os.getgroups(),
        "capabilities": {k: int(v, 16) for k, v in status.items() if k.startswith("Cap")},
        "no_new_privs": status["NoNewPrivs"],
        "blocked_signals": int(status["SigBlk"], 16),
    }


def write_own_proc(name, text):
    return Path("/proc/self", name).write_text(text)


def surroundings():
    return {
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "fds": sorted(int(fd) for fd in os.listdir("/proc/self/fd")),
        "standard": [os.readlink(f"/proc/self/fd/{fd}") for fd in range(3)],
        "files": os.listdir("."),
    }


def processes():
    return sorted(int(name) for name in os.listdir("/proc") if name.isdigit())


def read(path):
    return Path(path).read_text()


def names(path):
    return sorted(os.listdir(path))


def write(path, size=1):
    return Path(path).write_bytes(bytes(size))


def create_in_scratch(name, size=1):
    path = Path(os.environ["TMPDIR"], name)
    path.write_bytes(bytes(size))
    return str(path)


def attack_init():
    """Try everything on process 1; afterwards this process is still alive to tell."""
    refused = {}
    for action in (_kill_init, _read_init, _write_init, _trace_init):
        try:
            action()
        except OSError as error:
            refused[action.__name__] = errno.errorcode[error.errno]
    return refused


def _kill_init():
    os.kill(1, signal.SIGKILL)
    os.kill(1, signal.SIGINT)
    os.kill(1, signal.SIGSEGV)


def _read_init():
    with open("/proc/1/mem", "rb"):
        pass


def _write_init():
    with open("/proc/1/mem", "r+b"):
        pass


def _trace_init():
    kernel.call("ptrace", 0x4206, 1, 0, 0)


def clone_with(flags):
    """The raw call, by which user namespaces are made without ``unshare``."""
    pid = kernel.call("clone", flags | signal.SIGCHLD, None, None, None, None)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def call_number(number):
    result = ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), None, None)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def open_socket(family, kind):
    socket.socket(family, kind).close()


def socket_pair(kind):
    left, right = socket.socketpair(socket.AF_UNIX, kind)
    with left, right:
        left.send(b"ping")
        return right.recv(8).decode()


def seal_memory():
    import fcntl

    fd = os.open("/dev/null", os.O_RDWR)
    fcntl.fcntl(fd, 1033, 1)


def take_rank():
    """Run before everybody else, as far as the host allows it."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    os.setpriority(os.PRIO_PROCESS, 0, -20)


def make_memory_file():
    return os.close(os.memfd_create("x"))


def enlarge_stack():
    """Move the lowest page of the stack and make it a gigabyte."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    low = next(int(line.split("-")[0], 16) for line in lines if line.endswith("[stack]"))
    return kernel.call("mremap", low, 4096, 1 << 30, 1) > 0


def make_semaphores():
    """A set of this process alone, removed at once."""
    private, remove = 0, 0
    identifier = kernel.call("semget", private, 8, 0o1600)
    ctypes.CDLL(None).semctl(identifier, 0, remove)


def map_anonymous(flags):
    import mmap

    mmap.mmap(-1, 4096, flags=flags).close()


def start_thread():
    import threading

    seen = []
    thread = threading.Thread(target=lambda: seen.append(1))
    thread.start()
    thread.join()
    return seen


def run_program(command):
    return subprocess.run(command, capture_output=True, text=True, check=False).returncode


def compile_library(source):
    """Compile C++ in the scratch folder; the library as hexadecimal digits."""
    Path("x.cpp").write_text(source)
    done = subprocess.run(
        ["g++", "-O1", "-shared", "-fPIC", "-fopenmp", "x.cpp", "-o", "x.so"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr or Path("x.so").read_bytes().hex()


def load_library(data, through):
    """Load a library from the scratch folder or from memory, and call ``answer``."""
    if through == "scratch":
        path = Path(os.environ["TMPDIR"], "x.so")
        path.write_bytes(bytes.fromhex(data))
    else:
        fd = os.memfd_create("library")
        os.write(fd, bytes.fromhex(data))
        path = f"/proc/self/fd/{fd}"
    return ctypes.CDLL(str(path)).answer()


def use_kept(kept):
    """Answer over the inherited socket, with data from the memory file that comes through it."""
    with socket.socket(fileno=kept[0]) as channel:
        message, fds, _, _ = socket.recv_fds(channel, 64, 1)
        with mmap.mmap(fds[0], 4096) as memory:
            memory[1] = memory[0] + 1
        channel.send(message.upper())


def multiply(threads):
    import torch

    torch.set_num_threads(threads)
    a = torch.ones(300, 300)
    return [float((a @ a).sum()), torch.get_num_threads()]


def use_data(size):
    return len(bytearray(size))


def hold():
    """Stay until killed, with a descendant that does so too, out of the session."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() != 0:
            os._exit(0)
        _pause_for_ever()
    return sys.platform


def fork_without_end(count):
    """Children that fork again when their parent goes; none waits for another."""
    for _ in range(count):
        if os.fork() == 0:
            os.setsid()
            os.fork()
            _pause_for_ever()
    return count


def _pause_for_ever():
    while True:
        signal.pause()
