"""Plain numbers: how they are written, and what they are worth."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

from pipeline.fields import lexicon
from pipeline.fields.definition import FieldConfig
from pipeline.fields.values import Context, Normalised, bad, unsure
from schemas.extraction import Null, Span

MINUS = "−–"  # U+2212 and the en dash that word processors put for it

_NUMBER = (
    r"\d{1,3}(?:,\d{3}){1,5}\.\d{1,12}|\d{1,3}(?:\.\d{3}){1,5},\d{1,12}"
    r"|\d{1,3}(?:,\d{3}){2,5}(?![\d,])|\d{1,3}(?:\.\d{3}){2,5}(?![\d.])"
    r"|\d{1,3}(?:['’ ]\d{3}){1,5}(?:[.,]\d{1,12})?(?!\d)"
    r"|\d{1,24}[.,]\d{1,24}(?:[eE][-+]?\d{1,3})?|\d{1,24}(?:[eE][-+]?\d{1,3})?|\.\d{1,12}"
)
_PLAIN = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_WRITTEN = re.compile(
    rf"(?P<sign>[-+{MINUS}]\s?)?(?:(?P<hex>0[xX][0-9A-Fa-f]{{1,16}}|16#[0-9A-Fa-f]{{1,16}})|(?P<body>{_NUMBER}))"
)
_GROUPED_COMMA = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")
_GROUPED_POINT = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+(?:,\d+)?")
_SAYS_COMMA = re.compile(r"(?<![\d.,])\d{1,9},(?:\d{1,2}|\d{4,9})(?!\d|[.,]\d)")
_SAYS_POINT = re.compile(r"(?<![\d.,])\d{1,9}\.(?:\d{1,2}|\d{4,9})(?!\d|[.,]\d)")


def normalise(raw: str, config: FieldConfig, context: Context, text: str = "") -> Normalised:
    """The number as written, within the field's range."""
    return ranged(parse(raw, context.convention, text), config)


def ranged(read: Normalised, config: FieldConfig, dimension: str | None = None) -> Normalised:
    """A read number against the sentinels and the range of its field."""
    if not isinstance(read.value, float):
        return read
    if is_sentinel(read.value, dimension):
        return bad("sentinel")
    low_high = config.range
    if low_high is not None and not low_high[0] <= read.value <= low_high[1]:
        return Normalised(read.value, None, "out_of_range")
    return read


def parse(raw: str, mark: str | None = None, text: str = "") -> Normalised:
    """The value of a written number. `mark` is the decimal mark, "comma" or "point", where it is known.

    1,234 alone reads two ways: the other numbers of `text` may tell, else it is ambiguous_number.
    """
    if _PLAIN.fullmatch(raw) and (mark == "point" or not _GROUPED_POINT.fullmatch(raw.lstrip("+-"))):
        return Normalised(float(raw))
    if is_sentinel_word(raw):
        return bad("sentinel")
    match = _WRITTEN.fullmatch(raw.strip())
    if match is None:
        return Normalised(None, Null.BAD, "bad_number")
    if match.group("hex"):
        digits = match.group("hex")[2:] if match.group("hex")[1] in "xX" else match.group("hex")[3:]
        return (
            bad("sentinel")
            if raw.lower() in lexicon.words("sentinels", "hex")
            else Normalised(float(int(digits, 16)))
        )
    value = _decimal(match.group("body"), mark, text)
    if value is None:
        return unsure("ambiguous_number")
    sign = (match.group("sign") or "+").strip()
    return Normalised(-value if sign in "-" + MINUS else value)


def _decimal(body: str, mark: str | None, text: str) -> float | None:
    body = re.sub(r"['’ ]", "", body)
    comma, point = body.count(","), body.count(".")
    if comma and point:
        mark = "comma" if body.rfind(",") > body.rfind(".") else "point"
    elif comma > 1 or point > 1:
        mark = "point" if comma > 1 else "comma"
    elif comma and not _GROUPED_COMMA.fullmatch(body):
        mark = "comma"
    elif comma or (point and _GROUPED_POINT.fullmatch(body)):
        mark = mark or learn_mark([text]) or ("point" if point else None)
    if mark is None and comma:
        return None
    if mark == "comma":
        return float(body.replace(".", "").replace(",", "."))
    return float(body.replace(",", ""))


def learn_mark(texts: Iterable[str]) -> str | None:
    """The decimal mark that these lines show, "comma" or "point"; None when they do not tell."""
    comma = point = False
    for text in texts:
        comma = comma or _SAYS_COMMA.search(text) is not None
        point = point or _SAYS_POINT.search(text) is not None
    return None if comma == point else ("comma" if comma else "point")


@cache
def _sentinel_numbers() -> tuple[frozenset[float], dict[str, frozenset[float]]]:
    lists = lexicon.load("sentinels")
    table = {name: frozenset(float(x) for x in values) for name, values in lists["by_dimension"].items()}
    return frozenset(float(x) for x in lists["numbers"]), table


def is_sentinel(value: float, dimension: str | None = None) -> bool:
    """Whether devices write this number to say that they have none. A dimension adds its own."""
    always, table = _sentinel_numbers()
    return value in always or (dimension is not None and value in table.get(dimension, ())) or value != value


def is_sentinel_word(raw: str) -> bool:
    return raw.strip().lower() in lexicon.words("sentinels", "words")


# --- finding numbers

FIND = re.compile(
    rf"(?<![A-Za-z0-9_.À-ɏ#])(?P<sign>[-+{MINUS}](?=[\d.]))?(?P<body>{_NUMBER})(?![\d])(?!\.\d)"
)


def spans(text: str, found: re.Match[str], has_unit: bool = False) -> Sequence[Span]:
    """The span of a number; of two where "750,12000" may be two; none where it is part of a name."""
    start, end = found.span()
    before = text[start - 1 : start]
    if before in ("-", *MINUS) and text[start - 2 : start - 1].isalpha():
        glued = text[start:end].isdigit() and text[end : end + 1].isalpha()
        if not has_unit or (glued and not text[end + 1 : end + 2].isalpha()):
            return []  # IS620P-07, P-101A
    body = text[start:end]
    at = body.find(",")
    if at < 0 or body.count(",") > 1 or "." in body:
        return [Span(start, end)]
    parts = [Span(start, start + at), Span(start + at + 1, end)]
    if before == "," or text[end : end + 1] == ",":
        return parts
    is_decimal = has_unit and len(body) - at - 1 <= 3
    return [Span(start, end)] if is_decimal else [Span(start, end), *parts]
