"""decode, first step: bytes to text, whatever the machine's code page. Strict: no byte is guessed away.

Order: a byte order mark; UTF-16 without one (found by its NULs); UTF-8; then line by line GB18030, or
Windows-1252 where single high bytes stand among ASCII (`92°C`, `Überdruck`). The source's is remembered.
"""

from __future__ import annotations

import codecs
import re

# More than this share of NULs at even or at odd places is UTF-16 (CASES 10): plain text has none.
UTF16_NULS = 0.3

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")
_UTF16 = ("utf-16-le", "utf-16-be")


class Undecodable(ValueError):
    """No encoding that is known here makes text of these bytes."""


class TextDecoder:
    """Decodes one source's payloads. `found` is the encoding other than UTF-8 that it was seen to use.

    `declared` (from the site file) is tried first, but a mark or UTF-16's NULs are believed over it.
    """

    def __init__(self, declared: str | None = None, found: str | None = None) -> None:
        self._declared = codecs.lookup(declared).name if declared else None
        self.found = found

    def decode(self, data: bytes) -> str:
        """The text without byte order mark, NULs and the CR of CR LF. Raises Undecodable."""
        wide = self._wide(data)
        text = self._narrow(data) if wide is None else wide
        if "\0" in text:
            text = text.replace("\0", "")
        if "\r" in text:
            text = text.replace("\r\n", "\n").rstrip("\r")
        return text

    def _wide(self, data: bytes) -> str | None:
        """Text of a marked or UTF-16 payload, None when it is neither."""
        if data.startswith(codecs.BOM_UTF8):
            return self._narrow(data[len(codecs.BOM_UTF8) :])
        for mark, encoding in _MARKS:
            if data.startswith(mark):
                return self._strict(data[len(mark) :], encoding)
        if self._declared in _UTF16:
            return self._strict(_even(data, self._declared), self._declared)
        wide = utf16(data)
        if wide is None and self.found in _UTF16 and not _is_utf8(data):
            wide = self.found
        return None if wide is None else self._strict(_even(data, wide), wide)

    def _strict(self, data: bytes, encoding: str) -> str:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError as error:
            raise Undecodable(f"not valid {encoding}") from error
        self.found = encoding
        return text

    def _narrow(self, data: bytes) -> str:
        if self._declared is not None and self._declared != "utf-8":
            try:
                return data.decode(self._declared)
            except UnicodeDecodeError:
                pass  # wrongly declared: found by itself below
        try:
            return data.decode()
        except UnicodeDecodeError:
            return "\n".join(self._line(line) for line in data.split(b"\n"))

    def _line(self, line: bytes) -> str:
        try:
            return line.decode()
        except UnicodeDecodeError:
            pass
        for encoding in self._likely(line):
            try:
                text = line.decode(encoding)
            except UnicodeDecodeError:
                continue
            self.found = encoding
            return text
        raise Undecodable("neither UTF-8 nor UTF-16, GB18030 or Windows-1252")

    def _likely(self, line: bytes) -> tuple[str, ...]:
        """Chinese characters are pairs of bytes; high bytes that stand alone are Western letters or signs."""
        if any(len(run) > 1 for run in _HIGH_RUN.findall(line)):
            return ("gb18030",)
        return ("gb18030", "cp1252") if self.found == "gb18030" else ("cp1252", "gb18030")


def utf16(data: bytes) -> str | None:
    """`utf-16-le` or `utf-16-be` when the NULs of `data` say so."""
    if b"\0" not in data or len(data) < 2:
        return None
    even, odd = data[0::2].count(0) / ((len(data) + 1) // 2), data[1::2].count(0) / (len(data) // 2)
    if max(even, odd) <= UTF16_NULS:
        return None
    # A line cut at the byte 0A of a little-endian file starts with the line feed's second half.
    if len(data) % 2 and data[0] == 0 and even > odd:
        return "utf-16-le"
    return "utf-16-le" if odd > even else "utf-16-be"


def _even(data: bytes, encoding: str) -> bytes:
    """Without the half of a line feed that cutting at 0A leaves at one end."""
    if len(data) % 2 == 0:
        return data
    return data[1:] if encoding == "utf-16-le" and data[0] == 0 else data[:-1] if data[-1] == 0 else data


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in data
