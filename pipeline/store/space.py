"""How much disk is left. Below the floor nothing is accepted, so that what was can still be settled."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Connection

from schemas.errors import StoreUnavailable

# Asking the kernel costs microseconds; at 2 Hz a disk filling at 100 MB/s is noticed within 50 MB of the
# floor.
CHECK_EVERY_S = 0.5

_INFO_KEY = "andon.free_space"


@dataclass
class FreeSpace:
    """The disk that holds `folder`, and the floor in bytes."""

    folder: Path
    floor_bytes: int
    _checked_at: float = field(default=float("-inf"), init=False)
    _free: int = field(default=0, init=False)

    def bytes(self) -> int:
        """Bytes free to this user now."""
        stat = os.statvfs(self.folder)
        return stat.f_bavail * stat.f_frsize

    def require(self) -> None:
        """Raises StoreUnavailable below the floor; looks at most every CHECK_EVERY_S."""
        now = time.monotonic()
        if now - self._checked_at >= CHECK_EVERY_S:
            self._free, self._checked_at = self.bytes(), now
        if self._free < self.floor_bytes:
            raise StoreUnavailable(
                f"{self.folder}: {self._free // 1_000_000} MB free, below the floor of "
                f"{self.floor_bytes // 1_000_000} MB (store.free_floor_mb): nothing is accepted till then"
            )


def guard(connection: Connection, space: FreeSpace) -> None:
    """Make `require` on this connection watch `space`."""
    connection.info[_INFO_KEY] = space


def require(connection: Connection) -> None:
    """Refuse to accept below the floor. A connection without a guard (a tool's, a test's) has no floor."""
    space = connection.info.get(_INFO_KEY)
    if isinstance(space, FreeSpace):
        space.require()
