"""The store: one SQLite file, one writer thread, any number of short readers."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from pipeline.store import schema
from pipeline.store.faults import corrupt, translate
from pipeline.store.lock import StoreLock
from pipeline.store.options import StoreConfig
from pipeline.store.space import FreeSpace
from pipeline.store.sqlite import connect, is_on_a_read_only_disk, reading_engine
from pipeline.store.writer import Writer, fsync_folder
from schemas.errors import StoreError, StoreUnavailable

T = TypeVar("T")

_COMPLAINTS_SHOWN = 5


class Store:
    """An open store. Exactly one exists per file, over all processes.

    Promise: what `write` returned for is on disk, flushed. When it raised StoreError, nothing of it is
    (StoreFailed with `committed=None` excepted). A write whose await was cancelled happened whole or not at
    all: read it back.
    """

    def __init__(self, path: Path, lock: StoreLock, writer: Writer, free_space: FreeSpace) -> None:
        self.path = path
        self._lock = lock
        self._writer = writer
        self._space = free_space
        self._readers = reading_engine(path)
        self._closed = False

    @classmethod
    def open(cls, path: Path, options: StoreConfig | None = None) -> Store:
        """Open the store at `path`, creating or upgrading it. Unless it is as a clean end left it, the whole
        file is read first and looked at for damage.

        Raises StoreLocked when another process has it, StoreCorrupt when the file is damaged (it is not
        touched then), StoreError when the folder is missing or not ours, or the file is of another program or
        a newer andon.
        """
        path = path.resolve()  # one file, one lock, whatever name it is reached by
        _require_folder(path)
        lock = StoreLock(path)
        writer: Writer | None = None
        try:
            new = not path.exists()
            if not new and (lock.left != _seal(path) or not _has_empty_wal(path)):
                verify(path)
            elif not new:
                _require_known(path)
            floor = (options or StoreConfig()).free_floor_mb * 1_000_000
            free_space = FreeSpace(path.parent, floor)
            writer = Writer(path, free_space)
            writer.submit(schema.upgrade).result()
            if new:
                fsync_folder(path.parent)
            return cls(path, lock, writer, free_space)
        except BaseException:
            if writer is not None:
                writer.close()
            lock.release()
            raise

    async def write(self, fn: Callable[[Connection], T]) -> T:
        """Run `fn` in the writer thread, inside BEGIN IMMEDIATE .. COMMIT; its result once that is on disk.

        An exception of `fn` rolls back and passes through. Raises StoreUnavailable (disk full: nothing
        stored, try later) and StoreFailed (I/O error: end the process).
        """
        return await asyncio.wrap_future(self._writer.submit(fn))

    def write_sync(self, fn: Callable[[Connection], T]) -> T:
        """`write` for threads. Not for the event loop's thread, which it would block."""
        return self._writer.submit(fn).result()

    def on_rollback(self, forget: Callable[[], None]) -> None:
        """Call `forget` in the writer thread after every write that came to nothing, before the next one.

        For whoever keeps in memory what his writes made of the store.
        """
        self._writer.rolled_back.append(forget)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A read-only connection for the calling thread.

        Every statement is fetched whole and sees its own snapshot, so numbers that must agree belong in one
        statement, and large answers need a LIMIT. No lock is held between statements: a reader never pins the
        WAL.
        """
        if self._closed:
            raise StoreError(f"{self.path}: the store is closed")
        try:
            with self._readers.connect() as connection:
                yield connection
        except (DBAPIError, sqlite3.Error) as error:
            raise translate(error, self.path) or error from error

    def free_bytes(self) -> int:
        """Free bytes of the store's disk, now."""
        return self._space.bytes()

    def wal_bytes(self) -> int:
        """Size of the WAL file. Far above 4 MiB for long, it means that a program from outside pins it."""
        return self._writer.wal_bytes()

    def bytes_written(self) -> int | None:
        """Bytes written for the store since it was opened; None where the kernel does not tell (no /proc)."""
        return self._writer.bytes_written()

    def checkpoint(self) -> None:
        """Copy what the WAL holds into the database file, as far as no reader is in the way."""
        self._writer.checkpoint()

    def close(self) -> None:
        """Finish the writes that are queued, checkpoint, give the lock up. May be called twice.

        After an I/O error nothing is checkpointed: the writer goes while a reader is still there, so that it
        is not the last connection, and a read-only one cannot. The WAL is left for the next start to read.
        """
        if self._closed:
            return
        self._closed = True
        if self._writer.failure is None:
            self._truncate_wal()
            self._readers.dispose()
            self._writer.close()
            self._lock.release(_seal(self.path))
        else:
            self._close_failed()
            self._lock.release()

    def _close_failed(self) -> None:
        with suppress(DBAPIError), self._readers.connect() as witness:
            witness.exec_driver_sql("SELECT 1 FROM sqlite_master LIMIT 1")
            self._writer.close()
        self._writer.close()
        self._readers.dispose()

    def _truncate_wal(self) -> None:
        try:
            self._writer.checkpoint("TRUNCATE")
        except StoreUnavailable:
            # Full disk: the WAL keeps everything and is read at the next start.
            return


def _require_folder(path: Path) -> None:
    folder = path.parent
    if not folder.is_dir():
        raise StoreError(f"{folder}: no such folder. Create it, or change store.path in the site file")
    if path.is_dir():
        raise StoreError(f"{path}: is a folder. store.path names a file")
    if not os.access(folder, os.W_OK | os.X_OK) or (path.exists() and not os.access(path, os.R_OK | os.W_OK)):
        why = "its file system is mounted read-only" if is_on_a_read_only_disk(path) else "this user may not"
        raise StoreError(
            f"{path}: cannot be written ({why}). Change that, or store.path in the site file; "
            "`andon status`, `andon review list` and `andon db check` only read"
        )


def verify(path: Path) -> None:
    """Read the whole file and look for damage, changing nothing (a read-only connection never checkpoints).

    Raises StoreCorrupt, or StoreError for a file of another program or a newer andon.
    """
    # A crash before the first switch to WAL leaves a rollback journal, which only a writer may play back.
    mode = "rw" if path.with_name(path.name + "-journal").exists() else "ro"
    try:
        raw = connect(path, mode)
        try:
            found = [row[0] for row in raw.execute(f"PRAGMA quick_check({_COMPLAINTS_SHOWN})")]
        finally:
            raw.close()
    except sqlite3.Error as error:
        raise translate(error, path) or error from error
    if found != ["ok"]:
        raise corrupt(path, "; ".join(found))
    _require_known(path)


def _seal(path: Path) -> str:
    """What changes with every write to the file, by whomever; empty when there is none."""
    try:
        found = path.stat()
    except OSError:
        return ""
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ino}"


def _has_empty_wal(path: Path) -> bool:
    try:
        return path.with_name(path.name + "-wal").stat().st_size == 0
    except FileNotFoundError:
        return True


def _require_known(path: Path) -> None:
    """Raises StoreError for a file of another program or a newer andon."""
    engine = reading_engine(path)
    try:
        with engine.connect() as connection:
            schema.require_known(connection, path)
    except (DBAPIError, sqlite3.Error) as error:
        raise translate(error, path) or error from error
    finally:
        engine.dispose()
