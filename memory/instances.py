"""Which server processes are alive, known by locks that no crash can leave behind."""

from __future__ import annotations

import fcntl
import os
import platform
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from kernelarc.guard.errors import BoardError
from kernelarc.memory.connection import Store, insert
from kernelarc.memory.ids import Prefix, short


class Instance:
    """A process that runs jobs; a context manager.

    It holds an exclusive ``flock`` on ``<archive>.instances/<number>.lock`` from before it can
    claim anything until it is closed. The kernel drops the lock when the process ends, however
    it ends. The descriptor is not inherited by programs that the process starts; a plain
    ``fork`` would share it, so fork only to exec.

    Attributes:
        id: Such as ``n_3``.
        row_id: Its number, never reused in this archive.
    """

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        row = {"host": platform.node(), "pid": os.getpid(), "started_at": clock()}
        self._descriptor = -1
        try:
            with store.write() as db:
                self.row_id = insert(db, "instances", row)
                # Locked before anybody can see the row, so it is never seen unlocked.
                self._path = _lock_path(store.path, self.row_id)
                self._descriptor = _create_locked(self._path)
        except BaseException:
            self.close()
            raise
        self.id = short(Prefix.INSTANCE, self.row_id)

    def close(self) -> None:
        """Give the lock up; running jobs of this instance are then orphans. Idempotent."""
        if self._descriptor >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def is_alive(archive: Path, row_id: int) -> bool:
    """Whether the process behind an instance still holds its lock.

    A dead one's lock file is removed on the way.
    """
    path = _lock_path(archive, row_id)
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        path.unlink(missing_ok=True)
        return False
    finally:
        os.close(descriptor)


def _create_locked(path: Path) -> int:
    try:
        path.parent.mkdir(exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise BoardError(f"the lock file beside the archive failed: {error.strerror}.") from error
    return descriptor


def _lock_path(archive: Path, row_id: int) -> Path:
    return archive.with_name(f"{archive.name}.instances") / f"{row_id}.lock"
