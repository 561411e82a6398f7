"""decode, first step: bytes to text, whatever the machine's code page. Strict: no byte is guessed away.

Order: a byte order mark; UTF-16 without one (found by its NULs); the declared encoding; UTF-8; then line by
line GB18030, or Windows-1252 where high bytes stand among ASCII letters (`92°C`, `Größe`). A payload, and in
it a line, speaks for itself alone: what one of them shows is remembered for those that could be either only
when several payloads in a row have shown it, and forgotten as soon as one shows another.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from unicodedata import category

from connectors.lines import is_all_wide, looks_narrow

# More than this share of NULs at even or at odd places is UTF-16 (CASES 10): plain text has none.
UTF16_NULS = 0.3
# Payloads in a row that must show an encoding before it is expected of others: one is chance, two a burst.
EVIDENCE_PAYLOADS = 3

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_UTF16 = frozenset({"utf-16-le", "utf-16-be"})
# What every narrow encoding looks like: it tells only that the payload is not UTF-16.
_ASCII = "ascii"
_HIGH_PAIR = re.compile(rb"[\x80-\xff]{2}")
# Two Western letters beside another one: `Größe`, `Stößel`, `créée`. In GB18030 it is a rare character.
_WESTERN_PAIR = re.compile(
    rb"(?<![\x80-\xff])(?:(?<=[A-Za-z])%b|%b(?=[A-Za-z]))(?![\x80-\xff])"
    % ((rb"[\xd8-\xf6\xf8-\xfd][\xc0-\xd6\xd8-\xf6\xf8-\xfd]",) * 2)
)


class Undecodable(ValueError):
    """No encoding that is known here makes text of these bytes."""


class TextDecoder:
    """Decodes one source's payloads. `found` is the encoding other than UTF-8 that several of them showed.

    `declared` (from the site file) is tried first, but a mark or UTF-16's NULs are believed over it. Texts
    come without byte order mark, NULs and the CR of CR LF.
    """

    def __init__(self, declared: str | None = None, found: str | None = None) -> None:
        self._declared = codecs.lookup(declared).name if declared else None
        self.restore(found)

    def restore(self, found: str | None) -> None:
        """Go back to what `found` was; what was seen since then is no evidence."""
        self.found = found
        self._candidate: str | None = None
        self._payloads = 0

    def decode(self, data: bytes) -> str:
        """The payload as one text. Raises Undecodable when a line of it is none."""
        lines = self.lines(data)
        texts = [line for line in lines if isinstance(line, str)]
        if len(texts) < len(lines):
            raise Undecodable("neither UTF-8 nor UTF-16, GB18030 or Windows-1252")
        return "\n".join(texts)

    def lines(self, data: bytes) -> list[str | bytes]:
        """The payload's lines, without their line breaks; bytes where a line is no text."""
        shown: set[str] = set()
        text = self._text(data, shown, whole=True)
        if text is not None:
            lines: list[str | bytes] = [*text.split("\n")]
        else:
            lines = [self._line(line, shown) for line in data.split(b"\n")]
        self._weigh(shown)
        return [line.replace("\0", "").rstrip("\r") if isinstance(line, str) else line for line in lines]

    def _text(self, data: bytes, shown: set[str], whole: bool) -> str | None:
        """The text in the one encoding that all of `data` is in; None when there is none that is certain.

        `whole`: it is the payload and no line of it, so that what is remembered counts.
        """
        for encoding, body, shows in self._certain(data):
            try:
                text = body.decode(encoding)
            except UnicodeDecodeError:
                continue
            if shows:
                shown.add(_ASCII if body.isascii() and encoding == "utf-8" else encoding)
            return text
        wide = self.found
        if not whole or wide not in _UTF16 or looks_narrow(data):
            return None
        try:
            return _even(data, wide).decode(wide)
        except UnicodeDecodeError:
            return None

    def _certain(self, data: bytes) -> Iterator[tuple[str, bytes, bool]]:
        """Encodings to try, each with the bytes behind its mark, and whether it shows in the bytes."""
        for mark, encoding in _MARKS:
            if data.startswith(mark) and is_all_wide(data[len(mark) :]):
                yield encoding, _even(data[len(mark) :], encoding), True
        declared = self._declared
        if declared in _UTF16 and not looks_narrow(data):
            yield declared, _even(data, declared), False
        wide = utf16(data)
        if wide is not None and is_all_wide(data):
            yield wide, _even(data, wide), True
        if declared is not None and declared not in {"utf-8", *_UTF16}:
            yield declared, data, False
        yield "utf-8", data.removeprefix(codecs.BOM_UTF8), True

    def _line(self, line: bytes, shown: set[str]) -> str | bytes:
        text = self._text(line, shown, whole=False)
        if text is not None:
            return text
        chinese = _HIGH_PAIR.search(_WESTERN_PAIR.sub(b"", line)) is not None
        for encoding in self._likely(chinese):
            try:
                text = line.decode(encoding)
            except UnicodeDecodeError:
                continue
            if chinese or encoding == "cp1252":
                shown.add(encoding)
            return text
        return line

    def _likely(self, chinese: bool) -> tuple[str, ...]:
        """Chinese characters are pairs of high bytes; those that stand alone are Western letters or signs, or
        the first byte of a Chinese character whose second one is ASCII."""
        if chinese:
            return ("gb18030",)
        return ("gb18030", "cp1252") if self.found == "gb18030" else ("cp1252", "gb18030")

    def _weigh(self, shown: set[str]) -> None:
        """Remember, or forget, by what one payload has shown. One that mixes encodings shows none."""
        telling = shown - {_ASCII}
        if self.found is not None and (telling if self.found not in _UTF16 else shown) - {self.found}:
            self.found = None
        if not telling:
            return
        one = telling.pop() if len(telling) == 1 and "utf-8" not in telling else None
        self._payloads = self._payloads + 1 if one is not None and one == self._candidate else 1
        self._candidate = one
        if one is not None and self._payloads >= EVIDENCE_PAYLOADS:
            self.found = one


def legible(head: bytes) -> str:
    """The first bytes of anything, for people to look at: text where it is text, escapes where it is none.

    A character that the end cuts in two is escaped.
    """
    utf8 = codecs.getincrementaldecoder("utf-8")()
    try:
        return utf8.decode(head) + utf8.getstate()[0].decode("ascii", "backslashreplace")
    except UnicodeDecodeError:
        lines = TextDecoder().lines(head)
        return "\n".join(
            line if isinstance(line, str) else line.decode("utf-8", "backslashreplace") for line in lines
        )


def visible(text: str) -> str:
    """Text for people's eyes: what is no printable character (controls, escape sequences, marks that turn the
    direction of writing) is shown as its escape, and so obeyed by nobody. Line breaks and blanks stay."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" or category(c) == "Zs" else repr(c)[1:-1] for c in text)


def utf16(data: bytes) -> str | None:
    """`utf-16-le` or `utf-16-be` when the NULs of `data` say so."""
    if b"\0" not in data or len(data) < 2:
        return None
    even, odd = data[0::2].count(0) / ((len(data) + 1) // 2), data[1::2].count(0) / (len(data) // 2)
    # In UTF-16 they stand on one side; a run of NULs stands on both.
    if max(even, odd) <= UTF16_NULS or 2 * min(even, odd) > max(even, odd):
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
