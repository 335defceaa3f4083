"""Folders of samples that a test may write into."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kernelarc.guard.selftest import sample

REAL = sample.FOLDER
HONEST = "honest/rmsnorm-cpp"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of samples with the honest probe alone."""
    shutil.copytree(REAL / HONEST, tmp_path / "samples" / HONEST)
    return tmp_path / "samples"


@pytest.fixture
def planted(folder):
    """Writes a copy of a real sample under another name, with lines of its manifest replaced."""

    def plant(origin: str, name: str, **changes: str) -> str:
        shutil.copytree(REAL / origin, folder / name)
        manifest = folder / name / sample.MANIFEST
        lines = [
            line
            for line in manifest.read_text("utf-8").splitlines()
            if line.partition(" =")[0] not in changes
        ]
        lines += [f"{key} = {value}" for key, value in changes.items() if value]
        manifest.write_text("\n".join(lines), "utf-8")
        return name

    return plant
