"""Random values in the forms in which machines write them. Everything comes from the `random.Random`
given."""

from __future__ import annotations

import random
import re
import string
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from schemas.extraction import Severity

# Of ten numbers six are written with a blank before the unit, as the SI wants it.
SPACED_SHARE = 0.6
COMMA_SHARE = 0.5  # of decimals in languages that use the comma
COMMA_LANGUAGES = frozenset({"de", "fr", "es", "it", "pl"})
FIRST_YEAR, YEARS = 2012, 16

_HOLE = re.compile(r"\{(d+|h+|a+|[^{}]*\|[^{}]*)\}")
_ALPHABETS = {"d": string.digits, "h": "0123456789ABCDEF", "a": string.ascii_uppercase}


@cache
def data(name: str) -> Mapping[str, Any]:
    """The data file of that name beside this module."""
    path = Path(__file__).parent / "data" / f"{name}.yaml"
    loaded: Mapping[str, Any] = yaml.load(path.read_text("utf-8"), yaml.CSafeLoader)
    return loaded


def pools() -> Mapping[str, Any]:
    """What fills the slots of formats that bring nothing of their own."""
    return data("values")


def fill(pattern: str, chance: random.Random) -> str:
    """A name from its pattern: `P-{ddd}` gives `P-407`."""

    def one(found: re.Match[str]) -> str:
        hole: str = found.group(1)
        if "|" in hole:
            return chance.choice(hole.split("|"))
        return "".join(chance.choice(_ALPHABETS[letter]) for letter in hole)

    return _HOLE.sub(one, pattern)


def number(chance: random.Random, low: float, high: float, decimals: int, language: str) -> str:
    """A number of that size, small ones as likely as large ones."""
    places = chance.randint(0, decimals)
    value = low + (high - low) * chance.random() ** chance.choice((1.0, 1.0, 2.5))
    written = f"{value:.{places}f}"
    if language in COMMA_LANGUAGES and chance.random() < COMMA_SHARE:
        written = written.replace(".", ",")
    return written


def quantity(chance: random.Random, kind: str, form: str, language: str) -> tuple[str, str]:
    """A measured value: the number, and what follows it (the unit with or without a blank, or nothing)."""
    known: dict[str, list[float]] = pools()["quantities"][kind]
    if form == "lost":
        lost: str = chance.choice(pools()["lost"])
        return lost, ""
    bare, unit = form.startswith("#"), form.removeprefix("#").removeprefix("raw").strip()
    if not unit:
        unit = next(iter(known)) if bare else chance.choice(list(known))
    low, high, decimals = known.get(unit) or next(iter(known.values()))
    written = number(chance, low, high, int(decimals), language)
    if form.startswith("raw"):
        written = chance.choice(pools()["sentinels"])
    if bare or (form == "raw" and chance.random() < SPACED_SHARE):
        return written, ""
    return written, (" " if chance.random() < SPACED_SHARE else "") + unit


def moment(chance: random.Random) -> datetime:
    start = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC)
    return start + timedelta(microseconds=chance.randrange(YEARS * 365 * 86_400 * 1_000_000))


_TIMES: Mapping[str, Callable[[datetime], str]] = {
    "iso": lambda t: t.strftime("%Y-%m-%d %H:%M:%S"),
    "iso_z": lambda t: t.strftime("%Y-%m-%dT%H:%M:%SZ"),
    "iso_ms": lambda t: t.strftime("%Y-%m-%dT%H:%M:%S.") + f"{t.microsecond // 1000:03}+01:00",
    "iso_comma": lambda t: t.strftime("%Y-%m-%d %H:%M:%S,") + f"{t.microsecond // 1000:03}",
    "space_ms": lambda t: t.strftime("%Y-%m-%d %H:%M:%S.") + f"{t.microsecond // 1000:03}",
    "us12": lambda t: t.strftime("%m/%d/%Y %I:%M:%S %p"),
    "us24": lambda t: t.strftime("%m/%d/%Y %H:%M:%S"),
    "german": lambda t: t.strftime("%d.%m.%Y %H:%M:%S"),
    "german_short": lambda t: t.strftime("%d.%m.%y %H:%M"),
    "chinese": lambda t: f"{t.year}年{t.month}月{t.day}日 {t:%H:%M:%S}",
    "chinese_slash": lambda t: f"{t.year}/{t.month}/{t.day} {t:%H:%M:%S}",
    "syslog": lambda t: f"{t:%b} {t.day:2} {t:%H:%M:%S}",
    "syslog_year": lambda t: f"{t:%b} {t.day:2} {t:%Y %H:%M:%S}",
    "compact": lambda t: t.strftime("%Y%m%d%H%M%S"),
    "compact_dash": lambda t: t.strftime("%Y%m%d-%H%M%S"),
    "apache": lambda t: t.strftime("%d/%b/%Y:%H:%M:%S +0000"),
    "epoch_s": lambda t: str(int(t.timestamp())),
    "epoch_ms": lambda t: str(int(t.timestamp() * 1_000)),
    "epoch_us": lambda t: str(int(t.timestamp() * 1_000_000)),
    "time_only": lambda t: t.strftime("%H:%M:%S"),
    "time_ms": lambda t: t.strftime("%H:%M:%S.") + f"{t.microsecond // 1000:03}",
    "date_time_pipe": lambda t: t.strftime("%Y/%m/%d | %H:%M:%S"),
    "date_semicolon_time": lambda t: t.strftime("%d.%m.%Y;%H:%M:%S"),
    "rfc1123": lambda t: t.strftime("%a, %d %b %Y %H:%M:%S GMT"),
    "ctime": lambda t: f"{t:%a %b} {t.day:2} {t:%H:%M:%S %Y}",
    "dotted": lambda t: t.strftime("%Y.%m.%d %H:%M:%S"),
    "uptime_s": lambda t: f"{t.microsecond}.{t.second:03}",
    "uptime_brackets": lambda t: f"[{t.microsecond:>8}.{t.minute:02}{t.second:02}]",
}
TIME_FORMS = frozenset(_TIMES)


def time(chance: random.Random, form: str) -> str:
    return _TIMES[form](moment(chance))


def level(chance: random.Random, severity: Severity, words: Mapping[Severity, list[str]]) -> str:
    own = words.get(severity)
    words_of: list[str] = own if own else pools()["levels"][severity.value]
    return chance.choice(words_of)


def _ip(chance: random.Random) -> str:
    return (
        f"{chance.choice(('10', '192.168', '172.16'))}.{chance.randint(0, 255)}.{chance.randint(1, 254)}"
        + (f".{chance.randint(1, 254)}" if chance.random() < 0.5 else "")
    )


def _full_ip(chance: random.Random) -> str:
    address = _ip(chance)
    return ".".join([*address.split("."), *(str(chance.randint(1, 254)) for _ in range(4))][:4])


_NOISE: Mapping[str, Callable[[random.Random], str]] = {
    "number": lambda c: number(c, 0, c.choice((9, 99, 999, 99_999)), c.choice((0, 0, 1, 3)), "en"),
    "pid": lambda c: str(c.randint(100, 65_000)),
    "port": lambda c: str(c.choice((80, 102, 443, 502, 1883, 4840, 8080, c.randint(1024, 65_535)))),
    "ip": _full_ip,
    "version": lambda c: (
        f"{c.choice(('', 'v', 'V'))}{c.randint(0, 12)}.{c.randint(0, 30)}.{c.randint(0, 999)}"
    ),
    "percent": lambda c: f"{c.randint(0, 100)}{c.choice(('%', ' %'))}",
    "duration": lambda c: (
        f"{number(c, 0, 900, 1, 'en')}{c.choice((' s', 's', ' ms', 'ms', ' min', ' h', ' sec'))}"
    ),
    "hex": lambda c: "0x" + "".join(c.choice("0123456789abcdef") for _ in range(c.choice((2, 4, 8)))),
    "address": lambda c: c.choice(("DB{d}.DBX{d}.{d}", "4{dddd}", "%MW{ddd}", "0x{hhhh}", "{d}/{d}/{dd}")),
    "time": lambda c: time(c, c.choice(("iso", "time_only", "iso_z"))),
    "date": lambda c: moment(c).strftime(c.choice(("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y"))),
    "uptime": lambda c: c.choice(
        (f"{c.randint(0, 90)}d {c.randint(0, 23)}:{c.randint(0, 59):02}", str(c.randint(9, 9**8)))
    ),
    "count": lambda c: str(c.randint(0, c.choice((5, 60, 5_000)))),
    "id": lambda c: c.choice(
        (str(c.randint(1, 99_999)), "".join(c.choice("0123456789abcdef") for _ in range(8)))
    ),
    "mac": lambda c: c.choice(":-").join(
        "".join(c.choice("0123456789abcdef") for _ in "ab") for _ in range(6)
    ),
    "frame": lambda c: " ".join(
        "".join(c.choice("0123456789ABCDEF") for _ in "ab") for _ in range(c.randint(4, 10))
    ),
}
_POOLS = {
    "word": "words", "file": "files", "url": "urls", "user": "users", "device": "devices", "unit": "units",
    "host": "hosts", "error_code": "codes", "order": "orders", "product": "products", "program": "programs",
}  # fmt: skip


def named(chance: random.Random, kind: str, own: list[str]) -> str:
    """A name, code or filler of that kind, from the format's own pool where it has one."""
    if kind in _NOISE and not own:
        return fill(_NOISE[kind](chance), chance)
    return fill(chance.choice(own or pools()[_POOLS[kind]]), chance)
