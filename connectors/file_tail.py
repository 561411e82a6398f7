"""One open log file: reads on, and knows whether it is still the file it was, and which one comes after
it.

Rotation has two forms. *Rename*: the file keeps its inode under another name, and a new one takes its place.
*Copy and truncate*: the same inode starts again from nothing. Inode numbers are given again soon after a file
is deleted, and a truncated file may have grown past the old offset before anybody looks; so a file is known
by its inode *and* its first bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

# The first bytes that identify a file. A log's first line carries a time stamp, and lies within them.
HEAD_BYTES = 256


@dataclass(frozen=True, slots=True)
class FilePosition:
    """Everything before `offset` of the file `inode` is done.

    `head` is the digest of its first `head_size` bytes.
    """

    inode: int
    offset: int
    head_size: int = 0
    head: str = ""

    def to_json(self) -> dict[str, JsonValue]:
        return {"inode": self.inode, "offset": self.offset, "head_size": self.head_size, "head": self.head}

    @classmethod
    def from_json(cls, position: Mapping[str, JsonValue]) -> FilePosition | None:
        """None for an empty position: a file never read before."""
        inode, offset = position.get("inode"), position.get("offset")
        if not isinstance(inode, int) or not isinstance(offset, int):
            return None
        size, head = position.get("head_size"), position.get("head")
        return cls(inode, offset, size if isinstance(size, int) else 0, head if isinstance(head, str) else "")


class Tail:
    """A file opened for reading from some offset on. Raises OSError when it cannot be opened."""

    def __init__(self, path: Path, offset: int = 0) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        found = os.fstat(self._descriptor)
        if not stat.S_ISREG(found.st_mode):
            os.close(self._descriptor)
            raise OSError(f"{path} is no regular file")
        self.path = path
        self.inode = found.st_ino
        self.read_offset = offset
        self._head = self._read_head(offset)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._descriptor)

    def read(self, size: int) -> bytes:
        """What the file holds behind the last read, at most `size` bytes; empty at its end."""
        data = os.pread(self._descriptor, size, self.read_offset)
        self.read_offset += len(data)
        if len(self._head) < HEAD_BYTES and data:
            self._head = self._read_head(self.read_offset)
        return data

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def head(self) -> bytes:
        """Its first bytes, for guessing the encoding."""
        return os.pread(self._descriptor, HEAD_BYTES, 0)

    def rewritten(self) -> bool:
        """Whether the file was written anew: it is shorter than what was read, or begins otherwise."""
        return self.size() < self.read_offset or self._read_head(len(self._head)) != self._head

    def restart(self) -> None:
        """Read from the beginning again."""
        self.read_offset = 0
        self._head = b""

    def position(self, offset: int) -> FilePosition:
        head = self._head[: min(offset, HEAD_BYTES)]
        return FilePosition(self.inode, offset, len(head), hashlib.sha256(head).hexdigest())

    def is_at(self, position: FilePosition) -> bool:
        """Whether this is the file of that position, by inode and beginning."""
        head = self._read_head(position.head_size)
        same_head = not position.head or hashlib.sha256(head).hexdigest() == position.head
        return self.inode == position.inode and same_head and self.size() >= position.offset

    def line_start(self) -> int:
        """The offset behind the file's last complete line, looking back 1 MB at most."""
        size = self.size()
        start = max(0, size - 1024 * 1024)
        found = os.pread(self._descriptor, size - start, start).rfind(b"\n")
        return start + found + 1 if found >= 0 else start

    def _read_head(self, size: int) -> bytes:
        return os.pread(self._descriptor, min(size, HEAD_BYTES), 0)


def open_at(path: Path, position: FilePosition) -> Tail | None:
    """The file of that position, under its own name or renamed beside it;

    None when it is not there any more.
    """
    for candidate in (path, *_rotated(path)):
        with contextlib.suppress(OSError):
            if candidate.stat().st_ino != position.inode:
                continue
            tail = Tail(candidate, position.offset)
            if tail.is_at(position):
                return tail
            tail.close()
    return None


def successor(path: Path, inode: int) -> Path | None:
    """The file that was begun after the one with this inode: the oldest younger one beside it, at last
    `path` itself.

    None while `path` does not exist, or is that file still.
    """
    try:
        if path.stat().st_ino == inode:
            return None
    except OSError:
        return None
    chain = _rotated(path)
    inodes = [_inode(candidate) for candidate in chain]
    if inode in inodes and inodes.index(inode) + 1 < len(chain):
        return chain[inodes.index(inode) + 1]
    return path


def _rotated(path: Path) -> list[Path]:
    """Uncompressed siblings that log rotation made of `path` (name.1, name-20260302), oldest first."""
    pattern = re.compile(re.escape(path.name) + r"[.-]\d[\dT:._-]*")
    try:
        found = [
            (entry.stat().st_mtime_ns, entry.path)
            for entry in os.scandir(path.parent)
            if pattern.fullmatch(entry.name)
        ]
    except OSError:
        return []
    return [Path(name) for _, name in sorted(found)]


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0
