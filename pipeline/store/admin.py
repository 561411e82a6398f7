"""What `andon db` does: upgrade, back up and check a store, from outside the service."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from pipeline.store import schema
from pipeline.store.engine import Store, verify
from pipeline.store.faults import explain
from pipeline.store.invariants import broken
from pipeline.store.sqlite import connect, reading_engine
from pipeline.store.writer import fsync_folder
from schemas.errors import StoreError

# Complaints of SQLite that are listed; a damaged file can have millions.
_COMPLAINTS_SHOWN = 20


def upgrade(path: Path) -> str:
    """Bring the store's schema up to date (creating the store when there is none); the version it has then.

    Raises as Store.open does: StoreLocked while the service runs.
    """
    Store.open(path).close()
    return schema.revisions()[-1]


def backup(path: Path, target: Path) -> int:
    """Copy the store to `target` while the service goes on; the copy's size in bytes.

    The copy is one consistent moment, checked and flushed before it gets its name, and is opened like any
    store. The WAL grows by what is written meanwhile. Raises StoreError when there is no store or the target
    exists (a backup is never overwritten), StoreCorrupt when the store is damaged, StoreUnavailable when the
    target's disk is full.
    """
    _require_file(path)
    if target.exists():
        raise StoreError(f"{target}: exists already, and a backup is never overwritten. Name another file")
    if not target.parent.is_dir():
        raise StoreError(f"{target.parent}: no such folder")
    part = target.with_name(target.name + ".part")
    try:
        _copy(path, part)
        verify(part)
        _flush(part)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)
    fsync_folder(target.parent)
    return target.stat().st_size


@contextmanager
def reading(path: Path) -> Iterator[Connection]:
    """A short look at a store from outside, whether the service runs or not. Raises StoreError when there
    is none."""
    _require_file(path)
    engine = reading_engine(path)
    try:
        with engine.connect() as connection:
            yield connection
    except (DBAPIError, sqlite3.Error) as error:
        raise explain(error, path) or error from error
    finally:
        engine.dispose()


def check(path: Path) -> list[str]:
    """Everything wrong with the store, in words; empty when it is sound. Changes nothing, needs no lock.

    SQLite's own integrity check first, then what andon promises: states, pointers, counters. Raises
    StoreError when there is no such file, or it cannot be read.
    """
    _require_file(path)
    try:
        with closing(connect(path)) as raw:
            complaints = [str(row[0]) for row in raw.execute(f"PRAGMA integrity_check({_COMPLAINTS_SHOWN})")]
            if complaints != ["ok"]:
                return complaints
            return outdated(path) or broken(raw)
    except (sqlite3.Error, DBAPIError) as error:
        meaning = explain(error, path)
        if type(meaning) is StoreError:
            raise meaning from error
        return [str(meaning or error)]


def outdated(path: Path) -> list[str]:
    """What keeps this andon from understanding the store, if anything does. Raises StoreError when it cannot
    be read."""
    _require_file(path)
    engine = reading_engine(path)
    try:
        with engine.connect() as connection:
            schema.require_known(connection, path)
            version = schema.current(connection)
    except StoreError as error:
        return [str(error)]
    except (DBAPIError, sqlite3.Error) as error:
        raise explain(error, path) or error from error
    finally:
        engine.dispose()
    if version == schema.revisions()[-1]:
        return []
    return [f"{path}: schema {version or 'none'} is older than this andon: run `andon db upgrade` first"]


def _require_file(path: Path) -> None:
    if not path.is_file():
        raise StoreError(f"{path}: no such store")
    if not os.access(path, os.R_OK):
        raise StoreError(f"{path}: this user may not read it")


def _copy(path: Path, part: Path) -> None:
    part.unlink(missing_ok=True)
    try:
        with closing(connect(path)) as source, closing(sqlite3.connect(part)) as copy:
            # All pages in one step, hence one snapshot: in smaller steps a busy service would restart it for
            # ever.
            source.backup(copy, pages=-1)
            # A single file, without the -wal beside it that someone would forget to copy.
            copy.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        raise explain(error, path) or error from error


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
