"""Input that cannot be waited for: a file, a device."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("kind", ["device", "file"])
def test_input_that_is_no_pipe_ends_the_server_quietly(tmp_path, kind):
    empty = tmp_path / "empty"
    empty.touch()
    with open("/dev/null" if kind == "device" else empty, "rb") as source:
        done = subprocess.run(
            [sys.executable, "-m", "kernelarc.cli", "stdio", "--home", str(tmp_path / "home"),
             "--isolation", "none"],
            stdin=source,
            capture_output=True,
            timeout=60,
            check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == b""
    assert b"Traceback" not in done.stderr
