"""The documents say what is there, and what they name exists."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import anyio
import pytest
import typer.main

from kernelarc.cli.app import app

ROOT = Path(__file__).resolve().parent.parent

pytestmark = pytest.mark.skipif(
    not (ROOT / "src" / "kernelarc").exists(), reason="runs in a checkout, not on the wheel"
)


def _documents() -> list[Path]:
    done = subprocess.run(
        ["git", "ls-files", "-z", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / name for name in done.stdout.split("\0") if name]


def _commands() -> dict[str, str]:
    """Epilog of every visible command, by its words."""
    found = {}
    for name, command in typer.main.get_command(app).commands.items():
        if not command.hidden:
            inner = getattr(command, "commands", {"": command})
            found |= {f"{name} {sub}".strip(): c.epilog or "" for sub, c in inner.items()}
    return found


def test_every_command_is_in_the_readme():
    text = (ROOT / "README.md").read_text("utf-8")
    for words in _commands():
        first, _, second = words.partition(" ")
        lines = [line for line in text.splitlines() if f"kernelarc {first}" in line]
        lines = [line for line in lines if second in line]
        assert lines, f"kernelarc {words}"


def test_every_command_has_an_example_of_itself():
    for words, epilog in _commands().items():
        assert epilog.startswith(f"Example: `kernelarc {words}"), words


def test_every_command_in_a_code_block_exists():
    commands = {name.split()[0] for name in _commands()} | {"--help", "--version"}
    for document in _documents():
        for block in re.findall(r"```.*?```", document.read_text("utf-8"), re.DOTALL):
            used = re.findall(r"^(?:\.venv/bin/)?kernelarc ([\w-]+)", block, re.MULTILINE)
            assert set(used) <= commands, document


def test_the_tools_in_the_readme_are_those_of_the_server(tmp_path):
    from mcp import Client

    from kernelarc.server.app import build_server
    from kernelarc.server.services import open_services
    from kernelarc.server.settings import ServerSettings

    async def names() -> set[str]:
        settings = ServerSettings(database=tmp_path / "a.db", home=tmp_path, isolation="none")
        async with open_services(settings) as services, Client(build_server(services)) as client:
            return {tool.name for tool in (await client.list_tools()).tools}

    text = (ROOT / "README.md").read_text("utf-8")
    table = text.partition("| tool | does |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("|")]
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == anyio.run(names)


def test_relative_links_lead_somewhere():
    broken = []
    for document in _documents():
        text = re.sub(r"```.*?```", "", document.read_text("utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path = target.partition("#")[0]
            if path and "://" not in path and not path.startswith("mailto:"):
                found = (document.parent / path).resolve()
                if not found.exists():
                    broken.append(f"{document.relative_to(ROOT)}: {target}")
    assert not broken


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "AGENTS.md"])
def test_the_tables_name_files_that_exist(name):
    rows = [x for x in (ROOT / name).read_text("utf-8").splitlines() if x.startswith("|")]
    paths = [p for row in rows for p in re.findall(r"`([\w./*-]+/[\w./*-]*)`", row)]
    assert paths
    missing = [path for path in paths if not list(ROOT.glob(path.rstrip("/")))]
    assert not missing


def test_the_packages_that_contributors_install_are_extras_of_ours():
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for document in _documents():
        for wanted in re.findall(r"'(?:\.|kernelarc)\[([\w,]+)\]'", document.read_text("utf-8")):
            assert set(wanted.split(",")) <= set(extras["optional-dependencies"]), document
