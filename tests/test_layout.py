"""The shape of the repository: what is packaged, what imports what, how large modules are."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("clients", "guard", "memory", "server", "strategies")
SAMPLES = ROOT / "guard" / "selftest" / "samples"
MAX_LINES = 500

pytestmark = pytest.mark.skipif(
    not (ROOT / "src" / "kernelarc").exists(), reason="runs in a checkout, not on the wheel"
)


def _modules() -> list[Path]:
    folders = [ROOT / part for part in PARTS] + [ROOT / "src" / "kernelarc" / "cli"]
    found = [path for folder in folders for path in folder.rglob("*.py")]
    # Samples are data: no code of ours imports them.
    return [path for path in found if SAMPLES not in path.parents]


def _configuration() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_every_folder_with_modules_is_in_the_wheel():
    """A package that is not listed is left out without an error."""
    listed = set(_configuration()["tool"]["setuptools"]["packages"])
    found = {"kernelarc"}
    for path in _modules():
        base = ROOT / "src" if "src" in path.parts else ROOT
        folder = path.parent.relative_to(base).parts
        found.add(".".join(folder if folder[0] == "kernelarc" else ("kernelarc", *folder)))
    assert found == listed


def test_every_part_is_linked_below_the_import_root():
    for part in PARTS:
        link = ROOT / "src" / "kernelarc" / part
        assert link.is_symlink()
        assert link.resolve() == ROOT / part


def test_no_module_is_longer_than_the_limit():
    long = {str(p.relative_to(ROOT)): n for p in _modules() if (n := _lines(p)) > MAX_LINES}
    assert not long


def _lines(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines())


def test_no_module_is_a_drawer():
    names = {path.stem for path in _modules()}
    assert not names & {"utils", "util", "helpers", "helper", "manager", "common", "misc"}


def test_every_module_says_what_it_is():
    bare = [str(p) for p in _modules() if not p.read_text("utf-8").lstrip().startswith('"""')]
    assert not bare


def test_no_tracked_text_names_a_package_index_or_a_private_path():
    pattern = re.compile(r"--(extra-)?index-url|--find-links|/simple/|\.\./shared|/work/")
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\0")
    found = []
    for name in tracked:
        path = ROOT / name
        if not name or path.is_symlink() or path.suffix in (".png", ".woff2"):
            continue
        if name != "tests/test_layout.py" and pattern.search(path.read_text("utf-8")):
            found.append(name)
    assert not found


@pytest.mark.parametrize(
    "module", ["kernelarc.server.stdio", "kernelarc.cli.app", "kernelarc.clients.orchestrator"]
)
def test_trusted_light_processes_never_import_torch(module):
    code = (
        f"import sys, {module}; print([m for m in ('torch', 'triton', 'cuda') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
