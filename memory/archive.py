"""The archive as one object: everything that memory keeps, by subject."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from kernelarc.memory.board import Board
from kernelarc.memory.catalogue import Catalogue
from kernelarc.memory.connection import Store
from kernelarc.memory.instances import Instance
from kernelarc.memory.jobs import JobQueue
from kernelarc.memory.leaders import Leaders
from kernelarc.memory.reports import Reports
from kernelarc.memory.results import Results
from kernelarc.memory.runs import Runs


class Archive:
    """Everything that memory keeps, in one SQLite file.

    Synchronous and thread-safe: every method is one short transaction and may be called from
    any thread; several processes may have the same file open. In async code, call through
    ``anyio.to_thread.run_sync``. Once a writing method has returned, what it wrote survives
    ``kill -9`` and power loss. Any method may raise ``BoardBusy`` when other writers hold the
    file for 30 s; then nothing was written.

    Attributes:
        catalogue: Problems, sources, solutions, submissions.
        results: Verdicts and benchmarks; the transactions that finish a job.
        leaders: Promotions, leader, backups, lineage.
        board: Insights.
        jobs: The durable queue.
        runs: Runs, agents, events.
        reports: Attempt histories and the data of a run's report.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        """Open ``path``, create it if needed and bring it to the current schema.

        Args:
            path: The database file; ``-wal``, ``-shm`` and ``.instances/`` appear beside it.
                It must be on a local file system.
            clock: Seconds since the epoch; only recorded, nothing is ordered by it.

        Raises:
            BoardError: The file cannot be opened, or is not an archive.
            BoardSchemaMismatch: It was written by a newer version.
        """
        self.path = path
        self._store = Store(path)
        self._clock = clock
        self.catalogue = Catalogue(self._store, clock)
        self.results = Results(self._store, clock)
        self.leaders = Leaders(self._store, clock)
        self.board = Board(self._store, clock)
        self.jobs = JobQueue(self._store, clock)
        self.runs = Runs(self._store, clock)
        self.reports = Reports(self._store)

    def register_instance(self) -> Instance:
        """Announce this process as one that runs jobs; a context manager.

        Its lock is held until it is closed or the process dies, however it dies.
        """
        return Instance(self._store, self._clock)

    def close(self) -> None:
        """Close the file. Transactions that are under way in other threads still end."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open_archive(path: Path, *, clock: Callable[[], float] = time.time) -> Archive:
    """As ``Archive(path)``."""
    return Archive(path, clock=clock)
