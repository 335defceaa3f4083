"""Numbered steps that bring a database file to the current schema.

The file's version is ``PRAGMA user_version``; the table ``migrations`` keeps when each step was
applied. All missing steps run in one ``BEGIN IMMEDIATE`` transaction, so that several processes
may open a new file at once and a killed one leaves the old version behind, whole. A step that
was released is never edited: append another.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.resources import files

from sqlite_utils import Database

from kernelarc.guard.errors import BoardSchemaMismatch

Step = Callable[[Database], None]


def _script(db: Database, name: str) -> None:
    """Run a packaged SQL file inside the open transaction."""
    db.executescript(files("kernelarc.memory").joinpath(name).read_text(encoding="utf-8"))


def _archive(db: Database) -> None:
    _script(db, "0001_archive.sql")


def _board(db: Database) -> None:
    _script(db, "0002_board.sql")
    db.table("insights").enable_fts(
        ["text", "strategy", "scope"], create_triggers=True, tokenize="porter"
    )


def _environments(db: Database) -> None:
    _script(db, "0003_environments.sql")


STEPS: tuple[Step, ...] = (_archive, _board, _environments)
"""Step ``n`` (from 1) brings a file from version ``n - 1`` to ``n``."""


def version(db: Database) -> int:
    """The version of the file behind ``db``; 0 for an empty one."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def migrate(db: Database, *, target: int = len(STEPS)) -> None:
    """Bring the file to version ``target``.

    Args:
        db: A connection in autocommit mode, without an open transaction.
        target: Version to stop at; the newest unless a test wants an older file.

    Raises:
        BoardSchemaMismatch: The file is of a newer version than this program knows.
    """
    _refuse_newer(version(db))
    if version(db) >= target:
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        done = version(db)  # again, now that nobody else can be migrating
        _refuse_newer(done)
        for number in range(done + 1, target + 1):
            STEPS[number - 1](db)
            _record(db, number)
        db.execute("COMMIT")
    finally:
        db.rollback()  # does nothing after the commit


def _refuse_newer(found: int) -> None:
    if found > len(STEPS):
        raise BoardSchemaMismatch(
            f"the archive has schema version {found}, this program knows up to {len(STEPS)}. "
            "Update KernelArc, or open another archive file."
        )


def _record(db: Database, number: int) -> None:
    db.execute(
        "CREATE TABLE IF NOT EXISTS migrations "
        "(version INTEGER PRIMARY KEY, applied_at REAL NOT NULL) STRICT"
    )
    db.table("migrations").insert({"version": number, "applied_at": time.time()})
    db.execute(f"PRAGMA user_version = {number:d}")
