"""Connections to the archive file: pragmas in one place, and the two kinds of transaction.

WAL lets readers go on while one writer writes. Whatever reads before it writes must take the
write lock first (``BEGIN IMMEDIATE``): a deferred transaction that upgrades its lock is refused
at once, whatever the time-out. ``synchronous=FULL`` flushes the log at every commit, so what was
acknowledged survives the loss of power as well as of the process.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from sqlite_utils import Database

from kernelarc.guard.errors import BoardBusy, BoardError
from kernelarc.memory.migrations import migrate

BUSY_TIMEOUT_MS = 30_000
"""How long a transaction waits for another writer, milliseconds."""

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_PRIMARY_CODE = 0xFF
"""SQLite's extended result codes keep the primary one in the low byte."""


def insert(db: Database, table: str, row: Mapping[str, Any]) -> int:
    """Add a row inside an open transaction; returns its number."""
    number = db.table(table).insert(dict(row)).last_pk
    return int(cast("int", number))


class Store:
    """A pool of connections to one file, for any number of threads and processes.

    A connection belongs to one transaction at a time and returns to the pool afterwards, so
    that short-lived worker threads cost no connection each. Do not carry a store across
    ``fork``: SQLite's locks do not survive it.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, create it if needed and bring it to the current schema.

        Raises:
            BoardError: It cannot be opened, or is not a database.
            BoardSchemaMismatch: It was written by a newer version.
        """
        self.path = path
        self._idle: list[Database] = []
        self._lock = threading.Lock()  # guards _idle and _closed only
        self._closed = False
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BoardError(f"the archive cannot be opened: {error.strerror}.") from error
        with self._translated():
            db = self._connect()
            try:
                migrate(db)
            except BaseException:
                db.conn.close()
                raise
            self._give_back(db)

    @contextmanager
    def read(self) -> Iterator[Database]:
        """A transaction for reading only: it sees one unchanging state of the database."""
        yield from self._transaction("BEGIN")

    @contextmanager
    def write(self) -> Iterator[Database]:
        """A transaction that holds the write lock from its first statement.

        It commits when the block ends and rolls back when the block raises.

        Raises:
            BoardBusy: Other writers held the lock for 30 s; nothing was written.
        """
        yield from self._transaction("BEGIN IMMEDIATE")

    def close(self) -> None:
        """Close all idle connections; those in use close when their transaction ends."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for db in idle:
            db.conn.close()

    def _transaction(self, begin: str) -> Iterator[Database]:
        with self._translated():
            db = self._take()
            try:
                db.conn.execute(begin)
                yield db
                db.conn.execute("COMMIT")
            finally:
                db.rollback()  # does nothing after the commit
                self._give_back(db)

    def _connect(self) -> Database:
        conn = sqlite3.connect(
            self.path,
            timeout=BUSY_TIMEOUT_MS / 1000,
            isolation_level=None,  # transactions begin and end where this module says
            check_same_thread=False,  # the pool hands a connection to one thread at a time
        )
        try:
            conn.execute("PRAGMA journal_mode = WAL")
            conn.execute("PRAGMA synchronous = FULL")
            conn.execute("PRAGMA foreign_keys = ON")
        except BaseException:
            conn.close()  # not a database, or locked
            raise
        return Database(conn, execute_plugins=False)

    def _take(self) -> Database:
        with self._lock:
            if self._closed:
                raise BoardError("the archive is closed.")
            if self._idle:
                return self._idle.pop()
        return self._connect()

    def _give_back(self, db: Database) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(db)
                return
        db.conn.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn SQLite's operational errors into ours, which are safe to show."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError):
                raise  # a defect of this package, not a state of the database
            if error.sqlite_errorcode & _PRIMARY_CODE in _BUSY:
                raise BoardBusy(
                    f"the archive was locked for {BUSY_TIMEOUT_MS // 1000} s; nothing was "
                    "written. Try again."
                ) from error
            raise BoardError(f"the archive failed: {error}. Nothing was written.") from error
