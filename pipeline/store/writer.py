"""The one thread, and the one connection, that write.

Everything that changes the store passes through `Writer.submit`: a function run between BEGIN IMMEDIATE and
COMMIT, whole or not at all. Checkpoints run in the same thread, so no two connections ever checkpoint (SQLite
before 3.51.3 can lose committed writes when they do).
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Literal, TypeVar

from sqlalchemy import Connection, RootTransaction
from sqlalchemy.exc import DBAPIError

from pipeline.store import space
from pipeline.store.faults import Stage, translate
from pipeline.store.sqlite import WAL_LIMIT_BYTES, writing_engine
from schemas.errors import StoreError, StoreFailed, StoreUnavailable

T = TypeVar("T")


class Writer:
    """Owns the write connection to the database at `path`.

    After an I/O error nothing is tried again: every later call raises StoreFailed.
    """

    def __init__(self, path: Path, free_space: space.FreeSpace) -> None:
        self.path = path
        self.wal_path = path.with_name(path.name + "-wal")
        self.failure: StoreFailed | None = None
        self.rolled_back: list[Callable[[], None]] = []  # called in the writer thread, before the next write
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store-writer")
        self._closed = False
        self._connection: Connection
        self._raw: sqlite3.Connection
        try:
            self._thread.submit(self._connect, free_space).result()
        except BaseException:
            self._thread.shutdown()
            raise

    def submit(self, fn: Callable[[Connection], T]) -> Future[T]:
        """Queue `fn` for the writer thread. Cancelled before it starts, it leaves everything as it was."""
        return self._queue(self._transact, fn)

    def checkpoint(self, mode: Literal["PASSIVE", "TRUNCATE"] = "PASSIVE") -> None:
        """Copy the WAL into the database. Raises like a write; a full disk leaves everything in the WAL."""
        self._queue(self._checkpoint, mode).result()

    def wal_bytes(self) -> int:
        try:
            return self.wal_path.stat().st_size
        except FileNotFoundError:
            return 0

    def bytes_written(self) -> int | None:
        """Bytes the writer thread gave to the kernel: WAL and database. None where it does not count."""
        try:
            text = Path(f"/proc/self/task/{self._native}/io").read_text(encoding="ascii")
        except OSError:
            return None
        return int(dict(line.split(": ") for line in text.splitlines())["wchar"])

    def close(self) -> None:
        """Wait for what is queued, then let the connection go. SQLite checkpoints when it is the last one."""
        if not self._closed:
            self._closed = True
            self._thread.submit(self._disconnect).result()
            self._thread.shutdown()

    def _queue(self, job: Callable[..., T], *arguments: object) -> Future[T]:
        if threading.get_ident() == self._ident:
            raise RuntimeError("a write inside a write would wait for itself: use the connection at hand")
        if self._closed:
            raise StoreError(f"{self.path}: the store is closed")
        return self._thread.submit(job, *arguments)

    # In the writer thread

    def _connect(self, free_space: space.FreeSpace) -> None:
        self._ident = threading.get_ident()
        self._native = threading.get_native_id()
        self._engine = writing_engine(self.path)
        try:
            self._connection = self._engine.connect()
        except (DBAPIError, sqlite3.Error) as error:
            raise translate(error, self.path) or error from error
        raw = self._connection.connection.dbapi_connection
        assert isinstance(raw, sqlite3.Connection)
        self._raw = raw
        space.guard(self._connection, free_space)

    def _disconnect(self) -> None:
        self._connection.close()
        self._engine.dispose()

    def _transact(self, fn: Callable[[Connection], T]) -> T:
        self._require_sound()
        stage: Stage = "work"
        try:
            transaction = self._connection.begin()
            try:
                result = fn(self._connection)
                self._require_open_transaction()
                stage = "commit"
                transaction.commit()
            except BaseException:
                self._abandon(transaction)
                raise
        except (DBAPIError, sqlite3.Error) as error:
            raise self._failed(error, stage) or error from error
        self._checkpoint_if_due()
        return result

    def _require_open_transaction(self) -> None:
        """SQLite rolls back by itself on some errors; a function that swallowed one has not succeeded."""
        if not self._raw.in_transaction:
            raise StoreUnavailable(f"{self.path}: rolled back by SQLite; nothing of this was stored")

    def _abandon(self, transaction: RootTransaction) -> None:
        """Leave no transaction open, on SQLAlchemy's side or on SQLite's, also when COMMIT itself failed."""
        with suppress(DBAPIError, sqlite3.Error):  # the error that brought us here is the one to report
            transaction.close()
            self._raw.rollback()
        for forget in self.rolled_back:
            forget()

    def _checkpoint_if_due(self) -> None:
        """Queue a checkpoint behind the commit, whose caller need not wait for it."""
        if self.wal_bytes() > WAL_LIMIT_BYTES and not self._closed:
            self._thread.submit(self._quiet_checkpoint)

    def _quiet_checkpoint(self) -> None:
        try:
            self._checkpoint("PASSIVE")
        except StoreError:
            # An I/O error is kept in `failure`, and ends the service at its next write. When the disk is full
            # the WAL still holds everything, and the next commit tries again.
            return

    def _checkpoint(self, mode: str) -> None:
        self._require_sound()
        try:
            self._raw.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
        except sqlite3.Error as error:
            raise self._failed(error, "work") or error from error

    def _require_sound(self) -> None:
        if self.failure is not None:
            raise StoreFailed(
                f"nothing is written after an I/O error. It was: {self.failure}"
            ) from self.failure

    def _failed(self, error: BaseException, stage: Stage) -> StoreError | None:
        meaning = translate(error, self.path, stage)
        if isinstance(meaning, StoreFailed):
            self.failure = meaning
        return meaning


def fsync_folder(folder: Path) -> None:
    """Flush a folder, so that a file just created in it survives a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
