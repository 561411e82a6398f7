"""Cuts a stream of bytes into payloads of whole lines, without looking at what the lines say.

One payload a line would make the journal one row a line; so a payload carries up to 256 lines or 64 KB, and
the framing `lines` takes it apart again in decode. A line is never cut in two, whatever its length, short of
LINE_MAX.
"""

from __future__ import annotations

from itertools import pairwise

# What one journal row of a file should hold at most: some hundred lines of usual length.
PAYLOAD_BYTES = 64 * 1024
PAYLOAD_LINES = 256

# A line this long is no log line but a dump; buffering more would let one broken writer take all memory.
LINE_MAX = 1024 * 1024

# From four Chinese characters on all of whose bytes are printable ASCII it is no chance any more.
_LINE_BYTES = 8
_PRINTABLE = bytes([*b"\t\n\r", *range(0x20, 0x7F)])

_BOMS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}


def newline_of(head: bytes, encoding: str | None) -> bytes:
    """The bytes that end a line, from a file's configured encoding or its first bytes.

    In UTF-16 a line break has two bytes, and either of them alone is part of other characters. One line of
    the head that looks like UTF-16 is not enough when others do not.
    """
    found = (_BOMS.get(head[:2]) or _by_zeros(head)) if is_all_wide(head) else ""
    name = (encoding or found).lower().replace("_", "-")
    if name == "utf-16-be":
        return b"\0\n"
    if name == "utf-16-le" or (name == "utf-16" and head[:2] != b"\xfe\xff"):
        return b"\n\0"
    return b"\0\n" if name == "utf-16" else b"\n"


def _by_zeros(head: bytes) -> str:
    """UTF-16 without a byte order mark, known by its zeros: Latin text has one in every second byte."""
    even, odd = head[::2], head[1::2]
    if len(head) >= 16 and odd.count(0) > 0.3 * len(head) and even.count(0) * 8 < odd.count(0):
        return "utf-16-le"
    if len(head) >= 16 and even.count(0) > 0.3 * len(head) and odd.count(0) * 8 < even.count(0):
        return "utf-16-be"
    return ""


def looks_narrow(data: bytes) -> bool:
    """Whether these bytes are no UTF-16: no NUL, and three in four of them are printable ASCII.

    In UTF-16 Latin text is half NULs, and of the bytes of Chinese text about half are ASCII by chance.
    """
    return bool(data) and b"\0" not in data and 4 * len(data.translate(None, _PRINTABLE)) <= len(data)


def is_all_wide(data: bytes) -> bool:
    """Whether no line of `data` is plainly narrow: a mark, or one wide line, does not speak for such lines.

    The byte of a line feed is also half of other characters (0A 4E is 上), and what lies between two of them
    may look narrow by chance when it is short or the second one is the line break's (a NUL follows).
    """
    if looks_narrow(data):
        return False
    pieces = [*data.split(b"\n"), b""]
    return not any(
        len(one) >= _LINE_BYTES and looks_narrow(one) and not after.startswith(b"\0")
        for one, after in pairwise(pieces)
    )


class LineCutter:
    """Collects bytes and gives out payloads of whole lines, line breaks included, nothing added and
    nothing left out.

    `splits` counts the lines that were longer than LINE_MAX and came out in several payloads.
    """

    def __init__(self, newline: bytes = b"\n") -> None:
        self._newline = newline
        self._buffer = bytearray()
        self._searched = 0  # up to here the buffer is known to hold no line break
        self.splits = 0

    def feed(self, data: bytes) -> list[bytes]:
        """Add bytes; returns what is complete now."""
        self._buffer += data
        payloads = []
        while end := self._next_end():
            payloads.append(self._take(end))
        return payloads

    def finish(self) -> list[bytes]:
        """The stream has ended: what is left is a line without a line break, if anything."""
        return [self._take(len(self._buffer))] if self._buffer else []

    def __len__(self) -> int:
        """Bytes that wait for the rest of their line."""
        return len(self._buffer)

    def _next_end(self) -> int:
        """Where the next payload ends, 0 when its line is not complete."""
        end, lines, position = 0, 0, self._searched
        while lines < PAYLOAD_LINES:
            position = self._after_newline(position)
            if not position or (end and position > PAYLOAD_BYTES):
                break
            end, lines = position, lines + 1
        if end:
            return end
        self._searched = max(0, len(self._buffer) - len(self._newline) + 1)
        if len(self._buffer) >= LINE_MAX:
            self.splits += 1
            return LINE_MAX
        return 0

    def _after_newline(self, start: int) -> int:
        """The position behind the first line break from `start` on, 0 when there is none."""
        width = len(self._newline)
        found = self._buffer.find(self._newline, start)
        while found >= 0 and found % width:
            # Half of one character and half of the next.
            found = self._buffer.find(self._newline, found + 1)
        return found + width if found >= 0 else 0

    def _take(self, end: int) -> bytes:
        payload = bytes(self._buffer[:end])
        del self._buffer[:end]
        self._searched = 0
        return payload
