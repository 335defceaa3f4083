"""A candidate looks for what it must not find; what it reports comes back in the verdict.

The attempts are spelled so that the static screen does not see them: the walls alone must hold.
Each report starts with a control that must succeed, so that a probe that cannot run at all does
not look like a wall.
"""

from __future__ import annotations

import ast
import os
import socket
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

import kernelarc
from kernelarc.guard import problems
from kernelarc.guard.schema import EvaluationStatus, solution_from_source

PROBLEM = problems.get("rmsnorm")

PROBE = """
import builtins, glob, os, sys
read = getattr(builtins, 'op' + 'en')
kill = getattr(os, 'ki' + 'll')
load = getattr(builtins, '__imp' + 'ort__')
found = {}

def attempt(name, action):
    try:
        found[name] = repr(action())[:200]
    except BaseException as error:
        found[name] = 'DENIED ' + type(error).__name__

def run(x, weight, eps, y):
    attempt('control', lambda: read(os.environ['TMPDIR'] + '/mine', 'w').write('x'))
BODY
    raise RuntimeError('REPORT' + repr(found))
"""


def report(judge, *lines: str) -> dict[str, str]:
    body = "\n".join("    " + line for line in lines)
    solution = solution_from_source(PROBLEM, PROBE.replace("BODY", body), "pytorch")
    verdict = judge.verify(PROBLEM, solution)
    assert verdict.status is EvaluationStatus.RUNTIME_ERROR, verdict.message
    text = verdict.message.rsplit("REPORT", 1)[1].strip()
    found = ast.literal_eval(text[: text.rindex("}") + 1])
    assert found.pop("control") == "1"
    return found


def test_it_cannot_read_the_reference_or_this_package(judge):
    folder = Path(kernelarc.__file__).resolve().parent
    definition = next(p for p in (folder / "guard/problems").rglob("definition.json"))
    found = report(
        judge,
        f"attempt('definition', lambda: read({str(definition)!r}).read())",
        f"attempt('judge', lambda: read({str(folder / 'guard/worker/judge.py')!r}).read())",
        f"attempt('listing', lambda: os.listdir({str(folder)!r}))",
    )
    assert all(text.startswith("DENIED") for text in found.values()), found


def test_it_cannot_read_the_key_or_a_database(judge, tmp_path):
    database = tmp_path / "kernelarc.db"
    database.write_text("secret")
    os.chmod(database, 0o644)
    key = judge.guard.settings.home / "guard.key"
    assert key.stat().st_mode & 0o077 == 0
    found = report(
        judge,
        f"attempt('database', lambda: read({str(database)!r}).read())",
        f"attempt('key', lambda: read({str(key)!r}, 'rb').read())",
        "attempt('passwords', lambda: read('/etc/shadow').read())",
        "attempt('home', lambda: os.listdir(os.path.expanduser('~root')))",
    )
    assert all(text.startswith("DENIED") for text in found.values()), found


def test_it_sees_no_other_process_and_cannot_touch_the_judge(judge):
    judges = [
        int(p.name)
        for p in Path("/proc").iterdir()
        if p.name.isdigit() and b"guard.worker\0judge" in _command(p)
    ]
    assert judges
    pid = judges[-1]
    found = report(
        judge,
        f"attempt('memory', lambda: read('/proc/{pid}/mem', 'rb').read(1))",
        f"attempt('maps', lambda: read('/proc/{pid}/maps').read())",
        f"attempt('environment', lambda: read('/proc/{pid}/environ').read())",
        f"attempt('signal', lambda: kill({pid}, 0))",
        "attempt('parent', lambda: kill(os.getppid(), 9))",
        "attempt('pids', lambda: [p for p in os.listdir('/proc') if p.isdigit()])",
    )
    pids = found.pop("pids")
    assert found.pop("parent").startswith("DENIED")
    assert all(text.startswith("DENIED") for text in found.values()), found
    if not pids.startswith("DENIED"):
        assert str(pid) not in ast.literal_eval(pids)


def _command(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


def test_it_has_no_network(judge):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        found = report(
            judge,
            "s = load('soc' + 'ket')",
            f"attempt('tcp', lambda: s.create_connection(('127.0.0.1', {port}), 1))",
            "attempt('udp', lambda: s.socket(s.AF_INET, s.SOCK_DGRAM))",
            "attempt('ipv6', lambda: s.socket(s.AF_INET6, s.SOCK_STREAM))",
            "attempt('netlink', lambda: s.socket(s.AF_NETLINK, s.SOCK_RAW))",
            "attempt('name', lambda: s.getaddrinfo('localhost', 80, type=s.SOCK_STREAM)"
            " and s.create_connection(('localhost', 80), 1))",
        )
    assert all(text.startswith("DENIED") for text in found.values()), found


def test_it_writes_nowhere_but_in_its_scratch_folder(judge, tmp_path):
    os.chmod(tmp_path, 0o777)
    targets = {
        "shared": tmp_path / "planted",
        "site": Path(sys.prefix) / "planted.pth",
        "tmp": Path("/tmp/kernelarc-planted"),
        "shm": Path("/dev/shm/kernelarc-planted"),
        "home": Path.home() / "kernelarc-planted",
        "etc": Path("/etc/kernelarc-planted"),
    }
    found = report(
        judge,
        *(
            f"attempt({name!r}, lambda: read({str(path)!r}, 'w').write('x'))"
            for name, path in targets.items()
        ),
    )
    assert all(text.startswith("DENIED") for text in found.values()), found
    assert not [path for path in targets.values() if path.exists()]


def test_it_starts_no_process(judge):
    found = report(
        judge,
        "attempt('fork', lambda: getattr(os, 'fo' + 'rk')())",
        "attempt('exec', lambda: getattr(os, 'ex' + 'ecv')('/bin/true', ['true']))",
        "attempt('spawn', lambda: getattr(os, 'posix_' + 'spawn')('/bin/true', ['true'], {}))",
        "import threading as t",
        "attempt('thread', lambda: (lambda w: (w.start(), w.join(), 'ran'))(t.Thread()))",
    )
    assert "ran" in found.pop("thread")
    assert all(text.startswith("DENIED") for text in found.values()), found


def test_nothing_that_it_leaves_behind_is_there_for_the_next(judge):
    report(judge, "attempt('note', lambda: read(os.environ['TMPDIR'] + '/note', 'w').write('hi'))")
    found = report(judge, "attempt('note', lambda: read(os.environ['TMPDIR'] + '/note').read())")
    assert found["note"] == "DENIED FileNotFoundError"


def test_its_environment_names_nothing_of_the_host(judge):
    assert os.environ["KERNELARC_TEST_SECRET"] == "hunter2"  # and the judge's
    found = report(
        judge,
        "attempt('environment', lambda: sorted(os.environ))",
        "attempt('initial', lambda: b'hunter2' in read('/proc/self/environ', 'rb').read())",
        "attempt('arguments', lambda: sys.argv)",
    )
    assert "KERNELARC_TEST_SECRET" not in found["environment"]
    assert found["initial"] in ("False", "DENIED PermissionError")
    assert str(judge.guard.settings.home) not in found["arguments"]


def test_the_answer_is_nowhere_in_its_memory(judge):
    """It scans every tensor that Python knows for one that fits the output's shape."""
    found = report(
        judge,
        "import torch\n    collector = load('g' + 'c')",
        "own = {x.data_ptr(), y.data_ptr(), weight.data_ptr()}",
        "right = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight",
        "others = [t for t in collector.get_objects() if isinstance(t, torch.Tensor)"
        " and t.shape == y.shape and t is not right and t.data_ptr() not in own]",
        "attempt('answers', lambda: sum(torch.allclose(t.float(), right, atol=1e-3)"
        " for t in others))",
    )
    assert found["answers"] == "0"
