"""What an error of SQLite means for the service: wait, stop for good, or a mistake in the program."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Literal

from sqlalchemy.exc import DBAPIError

from schemas.errors import StoreCorrupt, StoreError, StoreFailed, StoreUnavailable

Stage = Literal["work", "commit"]

# SQLite result codes, https://sqlite.org/rescode.html. The low byte is the primary code.
_PRIMARY = 0xFF
_BUSY, _LOCKED, _READONLY, _IOERR, _CORRUPT, _FULL, _CANTOPEN, _NOTADB = 5, 6, 8, 10, 11, 13, 14, 26
# The -shm file could not grow: that is a full disk, though SQLite files it under I/O errors. Nothing was
# flushed.
_IOERR_SHMSIZE = 4874


def code_of(error: BaseException) -> int | None:
    """SQLite's extended result code, or None when `error` does not come from SQLite itself."""
    origin = error.orig if isinstance(error, DBAPIError) else error
    code = getattr(origin, "sqlite_errorcode", None)
    return code if isinstance(origin, sqlite3.Error) and isinstance(code, int) else None


def translate(error: BaseException, path: Path, stage: Stage = "work") -> StoreError | None:
    """The store error that `error` stands for; None when it is a mistake of the caller (constraint, bad SQL).

    A transaction that failed before or while being written is rolled back by SQLite, so nothing of it is
    stored. Only an I/O error inside COMMIT leaves that open: the pages may have reached the disk before the
    flush failed.
    """
    code = code_of(error)
    if code is None:
        return None
    detail = f"{getattr(error, 'orig', error)} [SQLite {code}]"
    primary = code & _PRIMARY
    if primary == _FULL or code == _IOERR_SHMSIZE:
        return StoreUnavailable(
            f"{path}: the disk is full; nothing of this was stored. It goes on when space returns. {detail}"
        )
    if primary in (_BUSY, _LOCKED):
        return StoreUnavailable(
            f"{path}: another program holds the write lock; nothing of this was stored. {detail}"
        )
    if primary in (_CORRUPT, _NOTADB):
        return corrupt(path, detail)
    if primary in (_IOERR, _READONLY, _CANTOPEN):
        return _failed(path, detail, stage)
    return None


def explain(error: BaseException, path: Path) -> StoreError | None:
    """`translate` for those who only read: SQLite may want a -shm file that it cannot write."""
    code = code_of(error)
    if code is not None and code & _PRIMARY in (_CANTOPEN, _READONLY) and not os.access(path.parent, os.W_OK):
        return StoreError(
            f"{path}: SQLite writes a -shm file beside what it reads, and this user may not write there. Run "
            "this as the store's owner or in its group, as in `sudo -u andon andon ...`"
        )
    return translate(error, path)


def _failed(path: Path, detail: str, stage: Stage) -> StoreFailed:
    known = "nothing of this was stored"
    if stage == "commit":
        known = "all of the last transaction is stored or nothing of it; the journal tells after the restart"
    return StoreFailed(
        f"{path}: the disk failed: {known}. Look at the disk (dmesg, smartctl) before going on. {detail}",
        committed=None if stage == "commit" else False,
    )


def corrupt(path: Path, detail: str) -> StoreCorrupt:
    """The error for a damaged file. It tells how to go on, since the file itself is left alone."""
    return StoreCorrupt(
        f"{path}: the database is damaged ({detail}). The file was kept as it is. See what is wrong with "
        f"`andon db check`; restore a copy made by `andon db backup`, or move the file and its -wal away and "
        f"start afresh: the broker resends what was not acknowledged."
    )
