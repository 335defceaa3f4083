"""``kernelarc install``: put the server into an MCP client's configuration.

Prints the configuration; ``--write`` merges it into the client's file after a backup. A file that
cannot be understood is never touched.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from kernelarc.cli.output import console, print_json, reported
from kernelarc.cli.settings import DatabaseOption, HomeOption, JsonOption, writing_refused
from kernelarc.guard.errors import RequestError

NAME = "kernelarc"
BY_HAND = " Repair it, or add the entry by hand: run this without --write to see it."


@dataclass(frozen=True)
class Client:
    """Where an MCP client keeps its servers, and in which form."""

    path: Callable[[], Path]
    section: str
    """Key of the mapping from names to servers."""
    typed: bool = False
    """Whether each entry says that it is a stdio server."""

    @property
    def is_toml(self) -> bool:
        """Whether the file is TOML; JSON otherwise."""
        return self.path().suffix == ".toml"


def _claude_desktop() -> Path:
    home = Path.home()
    if sys.platform == "darwin":
        return home / "Library/Application Support/Claude/claude_desktop_config.json"
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA", home)) / "Claude" / "claude_desktop_config.json"
    base = os.environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else home / ".config") / "Claude" / "claude_desktop_config.json"


CLIENTS: dict[str, Client] = {
    "claude-desktop": Client(_claude_desktop, "mcpServers"),
    "claude-code": Client(lambda: Path.cwd() / ".mcp.json", "mcpServers", typed=True),
    "cursor": Client(lambda: Path.home() / ".cursor" / "mcp.json", "mcpServers"),
    "vscode": Client(lambda: Path.cwd() / ".vscode" / "mcp.json", "servers", typed=True),
    "codex": Client(
        lambda: Path(os.environ.get("CODEX_HOME", Path.home() / ".codex")) / "config.toml",
        "mcp_servers",
    ),
}


def install(
    client: Annotated[str, typer.Argument(help=f"One of: {', '.join(CLIENTS)}.")],
    write: Annotated[
        bool, typer.Option("--write", help="Merge it into the client's file, after a backup.")
    ] = False,
    file: Annotated[
        Path | None, typer.Option("--file", help="The client's file; default: where it looks.")
    ] = None,
    database: DatabaseOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show, or write, the configuration that makes a client start this server."""
    with reported(as_json=as_json):
        if client not in CLIENTS:
            raise RequestError(f"unknown client {client!r}; known: {', '.join(CLIENTS)}.")
        kind = CLIENTS[client]
        path = (file or kind.path()).expanduser().absolute()
        entry = _entry(kind, database, home)
        text = _merged(kind, path, entry) if write else _rendered(kind, entry)
        backup = _write(path, text) if write else None
        if as_json:
            print_json(
                {
                    "client": client,
                    "file": str(path),
                    "config": {kind.section: {NAME: entry}},
                    "written": write,
                    "backup": backup and str(backup),
                }
            )
            return
        if not write:
            console(stderr=True).print(f"add this to {path}, or use --write:")
            typer.echo(text.rstrip())
            return
        console().print(f"written: {path}", soft_wrap=True)
        if backup:
            console().print(f"backup of the old file: {backup}", soft_wrap=True)
        console().print("restart the client to load it.")


def _entry(kind: Client, database: Path | None, home: Path | None) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "stdio"} if kind.typed else {}
    # Absolute: clients start servers in another folder and with a nearly empty PATH.
    entry |= {"command": sys.executable, "args": ["-m", "kernelarc.cli", "stdio"]}
    environment = {}
    if database is not None:
        environment["KERNELARC_DB"] = str(database.expanduser().absolute())
    if home is not None:
        environment["KERNELARC_HOME"] = str(home.expanduser().absolute())
    return entry | ({"env": environment} if environment else {})


def _rendered(kind: Client, entry: dict[str, Any]) -> str:
    document = {kind.section: {NAME: entry}}
    if kind.is_toml:
        import tomlkit

        return tomlkit.dumps(document)
    return json.dumps(document, indent=2) + "\n"


def _merged(kind: Client, path: Path, entry: dict[str, Any]) -> str:
    """The client's file with our entry in it, everything else as it was.

    Raises:
        RequestError: the file is not what the client would read, so it is left alone.
    """
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(
            f"{path} cannot be read ({error}); nothing was written. Repair it, or choose another "
            "file with --file."
        ) from None
    if not text.strip():
        return _rendered(kind, entry)
    if kind.is_toml:
        return _merged_toml(kind, path, text, entry)
    try:
        document = json.loads(text)
    except ValueError as error:
        raise RequestError(
            f"{path} is not plain JSON ({error}); nothing was written.{BY_HAND}"
        ) from None
    servers = document.setdefault(kind.section, {}) if isinstance(document, dict) else None
    if not isinstance(servers, dict):
        raise RequestError(
            f"{path}: {kind.section!r} is not an object; nothing was written.{BY_HAND}"
        )
    servers[NAME] = entry
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _merged_toml(kind: Client, path: Path, text: str, entry: dict[str, Any]) -> str:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        document = tomlkit.parse(text)
    except TOMLKitError as error:
        raise RequestError(f"{path} is not TOML ({error}); nothing was written.{BY_HAND}") from None
    servers = document.setdefault(kind.section, tomlkit.table(is_super_table=True))
    if not isinstance(servers, dict):
        raise RequestError(
            f"{path}: {kind.section!r} is not a table; nothing was written.{BY_HAND}"
        )
    servers[NAME] = entry
    return tomlkit.dumps(document)


def _write(path: Path, text: str) -> Path | None:
    """Write atomically; returns the backup of what was there, if anything was.

    Raises:
        RequestError: the folder or the file cannot be written; the old file is as it was.
    """
    try:
        target = path.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        backup = _backup(target) if target.exists() else None
        temporary = target.with_name(f".{target.name}.{os.getpid()}.new")
        mode = target.stat().st_mode & 0o777 if target.exists() else None
        try:
            _create(temporary, text.encode(), mode)
            temporary.replace(target)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
    except OSError as error:
        raise writing_refused(path, error, "--file") from None
    return backup


def _backup(target: Path) -> Path:
    """A copy next to the file, with its mode; an earlier copy is never overwritten."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    backup = target.with_name(f"{target.name}.{stamp}.bak")
    _create(backup, target.read_bytes(), target.stat().st_mode & 0o777)
    return backup


def _create(path: Path, content: bytes, mode: int | None) -> None:
    """A new file. A given mode holds from the start: such files may hold keys."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with os.fdopen(os.open(path, flags, 0o666 if mode is None else mode & 0o600), "wb") as file:
        if mode is not None:
            os.fchmod(file.fileno(), mode)
        file.write(content)
