"""Paths of sources cannot leave their folder, hide a module or replace a problem's file."""

from pathlib import Path, PurePosixPath, PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelarc.guard.schema.source_paths import RESERVED_FILES, checked_path, shadowed_module


@pytest.mark.parametrize(
    "path", ["main.py", "src/kernel.cuh", "a-b/c_d.hpp", "größe.py", "x" * 190 + ".py"]
)
def test_plain_relative_paths_are_allowed(path: str) -> None:
    assert checked_path(path) == path


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "..",
        "../main.py",
        "a/../main.py",
        "a/../../main.py",
        "./main.py",
        "a//main.py",
        "a/",
        "/etc/passwd",
        "\\\\host\\share",
        "a\\b.py",
        "C:main.py",
        "main.py\0.txt",
        "main\n.py",
        "main\u202e.py",
        "\ud800.py",
        "cafe\u0301.py",
        ".bashrc",
        "a/.git/config",
        "~/main.py",
        "-o.py",
        "@options.cpp",
        "a/@options.cpp",
        "main.py.",
        "main.py ",
        "x" * 300,
        *RESERVED_FILES,
        "Definition.JSON",
    ],
)
def test_other_paths_are_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r"\w+"):
        checked_path(path)


@given(st.text(alphabet=st.sampled_from("ab./\\:~ \0\u202e-_"), max_size=12))
def test_an_accepted_path_lies_in_its_folder_on_every_system(path: str) -> None:
    try:
        accepted = checked_path(path)
    except ValueError:
        return
    folder = Path("/folder")
    assert (folder / accepted).resolve().is_relative_to(folder)
    assert str(PurePosixPath(accepted)) == accepted
    assert not PureWindowsPath(accepted).drive
    assert PureWindowsPath(accepted).parts == PurePosixPath(accepted).parts


@pytest.mark.parametrize(
    ("path", "module"),
    [
        ("torch.py", "torch"),
        ("Torch.py", "torch"),
        ("torch/nn.py", "torch"),
        ("triton.v2.py", "triton"),
        ("os.py", "os"),
        ("socket/__init__.py", "socket"),
        ("sitecustomize.py", "sitecustomize"),
        ("usercustomize.py", "usercustomize"),
        ("conftest.py", "conftest"),
        ("kernelarc.py", "kernelarc"),
        ("main.py", None),
        ("kernels/torch.py", None),
    ],
)
def test_hidden_modules_are_found(path: str, module: str | None) -> None:
    assert shadowed_module(path) == module
