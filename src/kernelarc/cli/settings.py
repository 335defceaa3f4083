"""Where things are: one documented precedence, option > environment variable > default."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kernelarc.guard.errors import BoardBusy, BoardError, RequestError

if TYPE_CHECKING:
    from kernelarc.memory.archive import Archive

IsolationLevel = Literal["full", "reduced", "none"]

DatabaseOption = Annotated[
    Path | None,
    typer.Option(
        "--db",
        envvar="KERNELARC_DB",
        help="Database file. Default: kernelarc.db in the home folder.",
        show_default=False,
    ),
]
HomeOption = Annotated[
    Path | None,
    typer.Option(
        "--home",
        envvar="KERNELARC_HOME",
        help="Folder of the guard's key, runs and database. Default: the user's data folder.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document and no more.")]
DeviceOption = Annotated[str, typer.Option("--device", help="Device to judge on: cpu.")]
IsolationOption = Annotated[
    str,
    typer.Option(
        "--isolation",
        envvar="KERNELARC_ISOLATION",
        help="Least sandbox level: full, reduced or none. Below it nothing is judged.",
    ),
]

DEVICES = ("cpu",)
LEVELS: tuple[IsolationLevel, ...] = ("full", "reduced", "none")


def home_folder(home: Path | None) -> Path:
    """The home folder, created with access for its owner only."""
    if home is None:
        from platformdirs import user_data_path

        home = user_data_path("kernelarc", appauthor=False)
    folder = home.expanduser().absolute()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(
            f"the home folder {folder} cannot be made ({error.strerror}); choose another with "
            "--home or KERNELARC_HOME."
        ) from None
    if not os.access(folder, os.W_OK):
        raise RequestError(f"the home folder {folder} is not writable; choose another with --home.")
    return folder


def database_file(database: Path | None, home: Path | None) -> Path:
    """The database file; it need not exist."""
    if database is not None:
        return database.expanduser().absolute()
    return home_folder(home) / "kernelarc.db"


def existing_database(database: Path | None, home: Path | None) -> Path:
    """The database file of a command that only reads.

    Raises:
        RequestError: the user named a file that is not there. The default one may be missing:
            then nothing has happened yet.
    """
    path = database_file(database, home)
    if database is not None and not path.exists():
        raise RequestError(
            f"there is no database {path}; name an existing one with --db or KERNELARC_DB. "
            "`kernelarc run PROBLEM` makes a new one."
        )
    return path


def unusable_database(path: Path, error: Exception) -> RequestError:
    """What to say of a file that cannot be opened as the archive."""
    return RequestError(
        f"the database {path} cannot be used: {error} Choose another with --db or KERNELARC_DB."
    )


@contextmanager
def opened_archive(
    database: Path | None, home: Path | None, *, create: bool = True
) -> Iterator[Archive]:
    """The archive, created when it is missing.

    Args:
        database: Value of ``--db``.
        home: Value of ``--home``.
        create: False for commands that only read: a file that the user named must exist.

    Raises:
        RequestError: the file is missing, cannot be opened, is no database or is of a newer
            version.
    """
    from kernelarc.memory.archive import open_archive

    path = database_file(database, home) if create else existing_database(database, home)
    try:
        archive = open_archive(path)
    except BoardBusy:
        raise
    except BoardError as error:
        raise unusable_database(path, error) from None
    with archive:
        yield archive


def writing_refused(path: Path, error: OSError, option: str) -> RequestError:
    """What to say when a file that the user named cannot be written."""
    return RequestError(
        f"{path} cannot be written ({error.strerror}); choose another with {option}."
    )


def checked_device(device: str) -> str:
    """A device that this version can judge on.

    Raises:
        RequestError: any other; the text lists them.
    """
    if device not in DEVICES:
        raise RequestError(
            f"device {device!r} is not available in this version; available: {', '.join(DEVICES)}."
        )
    return device


def checked_isolation(level: str) -> IsolationLevel:
    """A sandbox level.

    Raises:
        RequestError: there is no such level.
    """
    for known in LEVELS:
        if level == known:
            return known
    raise RequestError(f"isolation level {level!r} does not exist; levels: {', '.join(LEVELS)}.")
