"""Which paths a solution's source may have."""

from __future__ import annotations

import sys
import unicodedata

RESERVED_FILES = frozenset(
    {"definition.json", "workload.jsonl", "contract.json", "solution.json", "config.json"}
)
"""Files of a problem, which a source may not replace."""

_MODULES = """
    _pytest anyio conftest cuda cupti cupy cutlass helion hypothesis jinja2 kernelarc mcp
    mpmath networkx numpy nvidia pip pkg_resources platformdirs plotly pybind11 pydantic
    pydantic_core pytest ray rich scipy setuptools sitecustomize sqlite_utils stamina sympy
    tilelang torch torchgen triton typer typing_extensions usercustomize uvicorn wheel yaml
"""

RESERVED_MODULES = frozenset(_MODULES.split())
"""Modules that the runner or the toolchain imports, besides the standard library's."""

MAX_PATH_LENGTH = 200


def checked_path(path: str) -> str:
    """The path itself, if a source may have it.

    Raises:
        ValueError: the path is not a plain relative one, or names a file of the problem.
    """
    if not path or len(path) > MAX_PATH_LENGTH:
        raise ValueError(f"a path has 1 to {MAX_PATH_LENGTH} characters")
    if "\\" in path or any(unicodedata.category(char).startswith("C") for char in path):
        raise ValueError("no backslash and no control characters; separate folders by '/'")
    if unicodedata.normalize("NFC", path) != path:
        raise ValueError("must be in Unicode's composed form (NFC)")
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise ValueError("must be relative and normalised, for example 'main.py' or 'src/a.hpp'")
    if ":" in path:
        raise ValueError("no ':' in a path; it would be a drive or the end of an entry file")
    # "@name" is a file of options to a compiler and to the programs that it starts.
    hidden = [
        part for part in parts if part.startswith((".", "~", "-", "@")) or part.endswith((" ", "."))
    ]
    if hidden:
        raise ValueError(
            f"{hidden[0]!r} may not begin with '.', '~', '-', '@' or end with '.' or ' '"
        )
    if path.casefold() in RESERVED_FILES:
        raise ValueError(f"{path!r} is a file of the problem; choose another name")
    return path


def shadowed_module(path: str) -> str | None:
    """The module that a Python source at ``path`` would hide from everyone else, if any."""
    module = path.split("/", 1)[0].split(".", 1)[0].casefold()
    standard = {name.casefold() for name in sys.stdlib_module_names}
    return module if module in RESERVED_MODULES or module in standard else None
