"""``kernelarc doctor``: what this host can do, and what to install when it cannot."""

from __future__ import annotations

import importlib.util
import platform
import shutil
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelarc._version import __version__
from kernelarc.cli.output import UNAVAILABLE, console, first_error, print_json, reported
from kernelarc.cli.settings import (
    DatabaseOption,
    DeviceOption,
    HomeOption,
    JsonOption,
    checked_device,
    database_file,
    home_folder,
)

if TYPE_CHECKING:
    from kernelarc.guard.pipeline import GuardSettings

PACKAGES = {
    "torch": "the guard's worker (extra 'cpu')",
    "triton": "verification of Triton kernels (extra 'triton')",
    "cuda": "NVIDIA GPUs (extra 'gpu'; not used by this version)",
}
PROGRAMS = {
    "g++": "C++ solutions, and all timing",
    "nvidia-smi": "an NVIDIA driver (GPUs are not used by this version)",
    "claude": "Claude Code",
    "codex": "Codex CLI",
    "gemini": "Gemini CLI",
}


def doctor(
    start: Annotated[
        bool, typer.Option("--start/--no-start", help="Start the guard and measure the device.")
    ] = True,
    device: DeviceOption = "cpu",
    database: DatabaseOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Report packages, compilers, the walls of the sandbox and the device.

    Exit code 3 when nothing could be judged here.
    """
    import anyio

    from kernelarc.guard.errors import KernelArcError
    from kernelarc.guard.pipeline import GuardSettings
    from kernelarc.guard.sandbox import probe

    with reported(as_json=as_json):
        folder = home_folder(home)
        checked_device(device)
        isolation = probe()
        facts: dict[str, Any] = {
            "kernelarc": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "home": str(folder),
            "database": str(database_file(database, home)),
            "packages": {name: _package(name) for name in PACKAGES},
            "programs": {name: shutil.which(name) for name in PROGRAMS},
            "isolation": isolation.model_dump(mode="json"),
            "languages": _languages(),
        }
        problem = _missing(facts)
        if start and problem is None:
            settings = GuardSettings(home=folder, device=device, isolation="none")
            try:
                facts["environment"] = anyio.run(_environment, settings)
            except* KernelArcError as group:
                problem = str(first_error(group))
        facts["ready"] = problem is None
        facts["problem"] = problem
        if as_json:
            print_json(facts)
        else:
            _show(facts)
        if problem is not None:
            raise typer.Exit(UNAVAILABLE)


def _package(name: str) -> str | None:
    import importlib.metadata

    if importlib.util.find_spec(name) is None:
        return None
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "installed"


def _languages() -> dict[str, str]:
    torch = importlib.util.find_spec("torch") is not None
    triton = importlib.util.find_spec("triton") is not None
    compiler = shutil.which("g++") is not None
    missing = "needs torch: pip install 'kernelarc[cpu]'"
    timed = "timed" if compiler else "verified; timing needs g++"
    return {
        "cpp": "timed" if torch and compiler else "needs g++ and torch",
        "pytorch": timed if torch else missing,
        "triton": "verified, never timed"
        if torch and triton
        else "needs triton: pip install 'kernelarc[cpu,triton]'",
        "cuda, cuda_cpp, cute_dsl, cutlass, tilelang": "not on the CPU device",
    }


def _missing(facts: dict[str, Any]) -> str | None:
    if facts["packages"]["torch"] is None:
        return "torch is not installed: pip install 'kernelarc[cpu]'."
    if facts["isolation"]["level"] == "none":
        return (
            "candidates cannot be isolated on this host: the server refuses to judge unless it is "
            "started with --isolation none."
        )
    return None


async def _environment(settings: GuardSettings) -> dict[str, Any]:
    from kernelarc.guard.pipeline import open_guard

    async with open_guard(settings) as guard:
        return (await guard.environment()).model_dump(mode="json")


def _show(facts: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    out = console()
    for key in ("kernelarc", "python", "platform", "home", "database"):
        out.print(f"{key:10} {facts[key]}", soft_wrap=True)
    table = Table("what", "found", "for")
    for name, found in facts["packages"].items():
        table.add_row(name, found or "-", PACKAGES[name])
    for name, found in facts["programs"].items():
        table.add_row(name, found or "-", PROGRAMS[name])
    out.print(table)
    walls = Table(
        "wall", "stands", "what was tried", title=f"sandbox: {facts['isolation']['level']}"
    )
    for wall in facts["isolation"]["walls"]:
        mark = Text("yes", "green") if wall["stands"] else Text("no", "bold red")
        walls.add_row(wall["name"], mark, Text(wall["detail"]))
    out.print(walls)
    languages = Table("language", "on this device")
    for name, text in facts["languages"].items():
        languages.add_row(name, text)
    out.print(languages)
    if "environment" in facts:
        e = facts["environment"]
        out.print(f"device: {e['device_name']}")
        out.print(
            f"measured: {e['copy_gbps']:g} GB/s, {e['peak_gflops']:g} GFLOP/s (fp32 matmul)",
        )
    if facts["problem"]:
        out.print(Text(f"not ready: {facts['problem']}", "bold red"))
    else:
        out.print(Text("ready", "bold green"))
