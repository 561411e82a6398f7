"""A store that is looked at from outside, by commands that change nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection

from pipeline.store.admin import outdated
from pipeline.store.engine import Store
from pipeline.store.space import FreeSpace
from pipeline.store.sqlite import reading_engine
from schemas.errors import StoreError

T = TypeVar("T")


class StoreView(Store):
    """A Store without lock, upgrade and checkpoint, also where nothing can be written; a write raises
    StoreError.

    Raises StoreError when there is none, when it cannot be read, or when it is of another version.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        if problems := outdated(self.path):
            raise StoreError("; ".join(problems))
        self._space = FreeSpace(self.path.parent, 0)
        self._readers = reading_engine(self.path)
        self._closed = False

    async def write(self, fn: Callable[[Connection], T]) -> T:
        return self.write_sync(fn)

    def write_sync(self, fn: Callable[[Connection], T]) -> T:
        raise StoreError(f"{self.path}: is only looked at; nothing of this was stored")

    def on_rollback(self, forget: Callable[[], None]) -> None:
        """Nothing is ever rolled back."""

    def wal_bytes(self) -> int:
        try:
            return self.path.with_name(self.path.name + "-wal").stat().st_size
        except FileNotFoundError:
            return 0

    def close(self) -> None:
        self._closed = True
        self._readers.dispose()
