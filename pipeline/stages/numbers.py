"""Numbers and what stands where a number should: sentinels of dead sensors, NaN, dashes. Null is never 0."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache

from pipeline.fields import lexicon, number
from schemas.extraction import Null

# What a 1-Wire thermometer that is gone sends. It counts for a metric whose name says nothing, too.
_GONE = -127.0

# OPC DA bad qualities are 0 to 28 in steps of four; OPC UA ones have the top bit set.
_OPC_DA_BAD = frozenset(range(0, 32, 4))
_OPC_UA_BAD = 0x8000_0000
_BAD_WORDS = frozenset("bad stale invalid error failed uncertain offline 坏 无效".split())

_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,4})?", re.ASCII)
_COMMA = re.compile(r"[-+]?\d+,\d+", re.ASCII)
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}", re.ASCII)
_NO_VALUE = re.compile(r"[-+]?(?:nan|inf|infinity)|[-?*#]{2,16}|\?|n/a", re.IGNORECASE)
# Words that mean "no value" only where a value must stand: alone on a metric's topic, or as the value of a
# point.
_NO_VALUE_WORDS = re.compile(r"-|n\.?a\.?|none|null|unavailable|unknown|undefined|err(?:or)?", re.IGNORECASE)
_WITH_UNIT = re.compile(r"([-+]?[\d.,]+(?:[eE][-+]?\d{1,4})?)\s?([^\W\d_]{1,8}|[°%µ][^\s\d]{0,7})", re.ASCII)
_DATE_TIME = re.compile(
    r"\d{4}[-/.]?\d{2}[-/.]?\d{2}[T _\-|,]{1,3}\d{1,2}[:.]\d{2}[:.]\d{2}"
    r"|\d{1,2}[./]\d{1,2}[./]\d{4}[,| ]{1,3}\d{1,2}:\d{2}:\d{2}|[A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2}"
    # An epoch only where a time is expected: elsewhere ten digits are an order or a serial number.
    r"|(?:^\W{0,3}|(?:ts|time|timestamp)[\"']?\s?[:=]\s?[\"']?)1\d{9}(?:\d{3}){0,3}(?!\d)",
    re.ASCII | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A value, or why there is none; and the text as written."""

    value: float | None
    null: Null | None
    written: str
    unit: str | None = None


def is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def of_number(written: str) -> Parsed:
    """The value of a number; what is larger than any float (1e400) is bad."""
    value = float(written)
    if not math.isfinite(value):
        return Parsed(None, Null.BAD, written)
    return Parsed(value, None, written)


def parse(text: str, value_expected: bool = False) -> Parsed | None:
    """A number or a no-value written as text; None for other text. `1,234` may be two numbers: unsure."""
    text = text.strip()
    if _NUMBER.fullmatch(text):
        return of_number(text)
    if _THOUSANDS.fullmatch(text):
        return Parsed(None, Null.UNSURE, text)
    if _COMMA.fullmatch(text):
        parsed = of_number(text.replace(",", "."))
        return Parsed(parsed.value, parsed.null, text)
    no_value = _NO_VALUE.fullmatch(text) or (value_expected and _NO_VALUE_WORDS.fullmatch(text))
    return Parsed(None, Null.BAD, text) if no_value else None


def parse_with_unit(text: str) -> Parsed | None:
    """As `parse` where a value is expected, and also a number with its unit (`21.5 °C`)."""
    parsed = parse(text, value_expected=True)
    if parsed is not None:
        return parsed
    match = _WITH_UNIT.fullmatch(text.strip())
    number = parse(match[1]) if match else None
    return Parsed(number.value, number.null, text.strip(), match[2]) if match and number else None


def is_sentinel(value: float, metric: str) -> bool:
    """Whether devices send this number as a value of `metric` to say that they have none (-127, 65535)."""
    dimension = _dimension(metric)
    return number.is_sentinel(value, dimension) or (dimension is None and value == _GONE)


# Metrics are the sender's choice of names: bounded.
_dimension = lru_cache(maxsize=4096)(lexicon.dimension)


def bad_quality(quality: str | None) -> bool:
    """Whether a quality code or word says that the value beside it must not be used."""
    if quality is None:
        return False
    if quality.isascii() and quality.isdigit() and len(quality) <= 10:
        return int(quality) in _OPC_DA_BAD or int(quality) >= _OPC_UA_BAD
    return quality.strip().lower().startswith(tuple(_BAD_WORDS))


def has_date_time(text: str) -> bool:
    """Whether a line carries date and time of day, or an epoch: what tells an event from its repeat."""
    return date_time(text) is not None


def date_time(text: str) -> str | None:
    """The first date and time of day, or epoch, as written; None when the line carries none."""
    found = _DATE_TIME.search(text)
    return None if found is None else found.group()
