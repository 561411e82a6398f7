"""How connections to the SQLite file are made: one that writes, and short ones that only read.

Facts relied on: https://sqlite.org/wal.html, https://sqlite.org/pragma.html,
https://sqlite.org/lang_transaction.html.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, NullPool, QueuePool, create_engine, event

from schemas.errors import StoreError

# Longest wait for another program's lock. Ours never wait: there is one writer, and WAL readers do not block
# it.
BUSY_TIMEOUT_S = 5.0

# Beyond this the WAL is checkpointed, and a restarted WAL is cut back to it: SQLite's own default of 1000
# pages.
WAL_LIMIT_BYTES = 4 * 1024 * 1024

WRITER_CACHE_KIB = 8192  # holds the hot pages of every table of a small plant
READER_CACHE_KIB = 2048
READERS_KEPT = 4  # connections kept open between reads; more are opened when more threads read at once

WRITER_PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",  # the WAL is flushed at every commit: accepted means durable
    "foreign_keys=ON",
    f"cache_size=-{WRITER_CACHE_KIB}",
    "temp_store=MEMORY",
    # Off: SQLite would checkpoint inside COMMIT and swallow the errors (sqlite3WalDefaultHook). The engine
    # does it right after the commit instead, where a failing disk is seen.
    "wal_autocheckpoint=0",
    f"journal_size_limit={WAL_LIMIT_BYTES}",
)
READER_PRAGMAS = ("query_only=ON", f"cache_size=-{READER_CACHE_KIB}")


class FetchedCursor(sqlite3.Cursor):
    """A cursor that fetches everything when it executes.

    An open SELECT pins its snapshot, and a pinned snapshot keeps the WAL from being reset: it would grow
    without limit. So no read statement outlives its execute, whatever its caller does with the result.
    """

    _rows: Iterator[Any] = iter(())

    def execute(self, *args: Any) -> FetchedCursor:
        super().execute(*args)
        self._rows = iter(super().fetchall())
        return self

    def __next__(self) -> Any:
        return next(self._rows)

    def fetchone(self) -> Any:
        return next(self._rows, None)

    def fetchmany(self, size: int | None = None) -> list[Any]:
        count = self.arraysize if size is None else size
        return list(islice(self._rows, count))

    def fetchall(self) -> list[Any]:
        return list(self._rows)


class ReadingConnection(sqlite3.Connection):
    def cursor(self, factory: Any = FetchedCursor) -> Any:
        return super().cursor(factory)


def connect(
    path: Path, mode: str = "ro", factory: type[sqlite3.Connection] = sqlite3.Connection
) -> sqlite3.Connection:
    """A plain connection in autocommit mode; `mode` is ro, rw or rwc. Raises sqlite3.OperationalError, and
    StoreError where a store cannot be read without writing."""
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    if mode == "ro" and is_on_a_read_only_disk(path):
        uri += _unchanging(path)
    return sqlite3.connect(
        uri,
        uri=True,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,  # the module's own BEGIN is late and deferred
        check_same_thread=False,
        factory=factory,
    )


def is_on_a_read_only_disk(path: Path) -> bool:
    """Whether its file system is mounted read-only: then nobody changes it, and nobody can."""
    try:
        return bool(os.statvfs(path.parent).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def _unchanging(path: Path) -> str:
    """How a file that nobody can change is opened: without the -shm file that SQLite keeps beside others.
    What a log beside it holds is not seen then. Raises StoreError when it holds something."""
    wal = path.with_name(path.name + "-wal")
    if wal.exists() and wal.stat().st_size:
        raise StoreError(
            f"{path}: its file system is mounted read-only, and {wal.name} holds what was written last, "
            "which SQLite cannot read there. Copy both files to a folder where you may write, and name the "
            "copy as store.path in a copy of the site file"
        )
    return "&immutable=1"


def writing_engine(path: Path) -> Engine:
    """An engine whose every transaction is BEGIN IMMEDIATE. Meant for one connection in one thread.

    Deferred transactions that read before they write fail with SQLITE_BUSY_SNAPSHOT; immediate ones cannot.
    """

    def create() -> sqlite3.Connection:
        raw = connect(path, "rwc")
        for pragma in WRITER_PRAGMAS:
            raw.execute(f"PRAGMA {pragma}")
        return raw

    engine = create_engine("sqlite://", creator=create, poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def reading_engine(path: Path) -> Engine:
    """An engine of read-only connections for any thread. Each statement has its own snapshot."""

    def create() -> sqlite3.Connection:
        raw = connect(path, "ro", ReadingConnection)
        for pragma in READER_PRAGMAS:
            raw.execute(f"PRAGMA {pragma}")
        return raw

    return create_engine(
        "sqlite://", creator=create, poolclass=QueuePool, pool_size=READERS_KEPT, max_overflow=-1
    )
