"""One process owns a store: a lock file beside it, held with flock(2), which dies with its process.

The file says who holds the lock or, after a clean end, how the store was left.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from schemas.errors import StoreError, StoreLocked

_RELEASED = "released"
_NOTE_BYTES = 200


def holder(store: Path) -> str | None:
    """Process id of whoever has the store's lock now, as far as it can be told; None when nobody has."""
    try:
        fd = os.open(_lock_of(store), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None  # nobody ever had it, or we may not know
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _pid(fd)
    finally:
        os.close(fd)
    return None


def _lock_of(store: Path) -> Path:
    return store.with_name(store.name + ".lock")


def _pid(fd: int) -> str:
    return os.pread(fd, 20, 0).decode("ascii", "replace").strip() or "unknown"


class StoreLock:
    """The exclusive lock on a store, from construction until `release`.

    Raises StoreLocked, naming the holder's process id, when another process (or this one) has it already. The
    file stays behind on release: removing it would let two processes hold locks on two files of one name.
    `left` is what the last holder wrote at his release; empty when he ended without one.
    """

    def __init__(self, store: Path) -> None:
        self.path = _lock_of(store)
        try:
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(f"{self.path}: cannot be created: {error.strerror}") from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = _pid(self._fd)
            os.close(self._fd)
            raise StoreLocked(
                f"{store}: in use by process {owner}. Talk to it through its socket, or stop it first"
            ) from None
        except OSError as error:
            os.close(self._fd)
            raise StoreError(f"{self.path}: cannot be locked: {error.strerror}") from error
        first, _, self.left = os.pread(self._fd, _NOTE_BYTES, 0).decode("ascii", "replace").partition(" ")
        if first != _RELEASED:
            self.left = ""
        self._write(f"{os.getpid()}\n")
        if self.left:
            os.fsync(self._fd)  # after a power cut nobody may read that the store was left well

    def release(self, note: str = "") -> None:
        """Give the store up, leaving `note` (ASCII, short) for the next holder. May be called twice."""
        if self._fd >= 0:
            if note:
                self._write(f"{_RELEASED} {note}")
            os.close(self._fd)
            self._fd = -1

    def _write(self, text: str) -> None:
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, text.encode("ascii"), 0)
