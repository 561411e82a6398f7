"""The written forms of times: each a compiled expression, and how its groups become a time.

A form is a date layout, a separator and a time layout, in either order. All quantifiers are bounded, so
that looking for times is linear in the length of the line. Once the form is known, reading a time is one
match and one datetime.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from pipeline.fields import lexicon

# Numbers that may be seconds, milli-, micro- or nanoseconds since 1970, by their digits; ten begin in 2001.
_EPOCH_DIGITS = {9: "epoch_s", 10: "epoch_s", 12: "epoch_ms", 13: "epoch_ms", 16: "epoch_us", 19: "epoch_ns"}
_EPOCH_SCALE = {"epoch_s": 1, "epoch_ms": 10**3, "epoch_us": 10**6, "epoch_ns": 10**9}
EXACT_DIGITS = (10, 13, 16, 19)  # the lengths an epoch of 2001 to 2286 has
EPOCH_RANK = 2  # readable beats epoch (T1)
_FROM, _TO = 946_684_800, 2_000_000_000  # 2000-01-01 to 2033-05-18


@dataclass(frozen=True, slots=True)
class TimeForm:
    """`kind` says what is written: "datetime", "date" or "time". `rank` orders them by T1: complete first."""

    name: str
    kind: str
    regex: re.Pattern[str]

    @property
    def rank(self) -> int:
        return 0 if self.kind == "datetime" else 1


def _months() -> str:
    return lexicon.alternatives(name for names in lexicon.load("times")["months"].values() for name in names)


def _zone_names() -> str:
    lists = lexicon.load("times")
    return lexicon.alternatives(
        [*(zone for zone in lists["zones"] if zone != "z"), *lists["ambiguous_zones"]]
    )


def _zone() -> str:
    return (
        r"(?P<zone>\s?Z(?![^\W_])|\s?[+-]\d{2}:?\d{2}(?![\d:])|\s?[+-]\d{2}(?![\d:.-])"
        rf"|\s(?:{_zone_names()})(?![^\W_])(?:[+-]\d{{1,2}}(?!\d))?)?"
    )


_AMPM = r"(?P<ap>\s?[AaPp]\.?[Mm]\.?(?![^\W_]))?"
_FRACTION = r"(?:[.,:](?P<f>\d{1,9})(?![\d]|\.\d))?"


def _date_layouts() -> dict[str, str]:
    month = rf"(?P<mon>{_months()})\.?"
    weekday = rf"(?:(?:{lexicon.alternatives(lexicon.load('times')['weekdays'])})\.?,?\s{{1,2}})?"
    short_day = r"(?:(?-i:Mo|Di|Mi|Do|Fr|Sa|So|Mon|Tue|Wed|Thu|Fri|Sat|Sun)\.?,?\s)?"
    return {
        "ymd": short_day + r"(?P<y>\d{4})(?P<ds>[-/._])(?P<mo>\d{1,2})(?P=ds)(?P<d>\d{1,2})(?!\d)",
        "num": short_day + r"(?P<n1>\d{1,2})(?P<ds>[-/.])(?P<n2>\d{1,2})(?P=ds)(?P<n3>\d{4}|\d{2})(?![\d])",
        "dMy": weekday
        + rf"(?P<d>\d{{1,2}})\.?[-/\s]\s?{month}[-/\s,]{{1,2}}(?P<y>\d{{4}}|\d{{2}}(?!\d|:))(?!\d)",
        "Mdy": weekday
        + rf"(?<![^\W\d_]){month}\s{{1,2}}(?P<d>\d{{1,2}})(?!\d|:)(?:,?\s(?P<y>(?:19|20)\d{{2}})(?!\d|:))?",
        "M-d-y": weekday + rf"(?<![^\W\d_]){month}(?P<ds>[-/])(?P<d>\d{{1,2}})(?P=ds)(?P<y>\d{{4}})(?!\d)",
        "M/d": rf"(?<![^\W\d_]){month}/(?P<d>\d{{1,2}})",
        "dM": rf"(?P<d>\d{{1,2}})\.?[-/\s]\s?{month}",
        "zh": r"(?:(?P<y>\d{4})\s?年\s?)?(?P<mo>\d{1,2})\s?月\s?(?P<d>\d{1,2})\s?日",
        "compact": r"(?P<y>(?:19|20)\d{2})(?P<mo>0[1-9]|1[0-2])(?P<d>[0-2]\d|3[01])",
        "short": r"(?P<y>\d{2})(?P<mo>0[1-9]|1[0-2])(?P<d>[0-2]\d|3[01])",
    }


def _time_layouts() -> dict[str, str]:
    return {
        "hms": r"(?P<H>\d{1,2}):(?P<M>\d{2}):(?P<S>\d{2})(?!\d)" + _FRACTION + _AMPM + _zone(),
        "hm": r"(?P<H>\d{1,2}):(?P<M>\d{2})(?!\d|:\d)" + _AMPM + _zone(),
        "dots": r"(?P<H>\d{1,2})\.(?P<M>\d{2})\.(?P<S>\d{2})(?!\d)(?:[.,](?P<f>\d{1,9}))?" + _AMPM + _zone(),
        "dashes": r"(?P<H>\d{2})-(?P<M>\d{2})-(?P<S>\d{2})(?!\d)(?:[.,](?P<f>\d{1,9}))?" + _zone(),
        "zh": r"(?P<zap>上午|下午|凌晨|晚上|中午)?\s?(?P<H>\d{1,2})\s?[时時点:：]\s?(?P<M>\d{1,2})"
        r"(?:\s?[分:：]\s?(?:(?P<S>\d{1,2})(?:[.,](?P<f>\d{1,9}))?\s?秒?)?)?(?!\d)",
        "packed": r"(?P<H>[01]\d|2[0-3])(?P<M>[0-5]\d)(?P<S>[0-5]\d)(?:[.,](?P<f>\d{1,9}))?" + _zone(),
    }


# Two columns, or two pairs (date=2024-05-15 time=04:18:33), are one time (T2).
_SEP = (
    r"(?:T|t|\"?[\s,;]{1,2}(?:time|zeit|uhrzeit)=\"?|"
    r"\s?[|,;]\s?|[ _:\-/]|\s{2,4}|,\s|\s?\t\s?|\"\s?[,;]\s?\"|\sat\s|\sum\s|\s-\s|\.\s)"
)
_BEFORE = r"(?<![A-Za-z0-9_.\-/:])"
_BEFORE_WORD = r"(?<![A-Za-z0-9.\-/:])"
_AFTER = r"(?![A-Za-z0-9]|[-/:]\d)"

# E0311 12:00:41.220193: month and day behind the letter of the level, microseconds always.
_GLOG = r"(?:(?<=^[IWEF])|^)(?P<mo>0[1-9]|1[0-2])(?P<d>0[1-9]|[12]\d|3[01])\s{1,2}(?=\d\d:\d\d:\d\d\.\d{6})"

# date, time; the order matters: the first form that matches at a place has it.
_JOINED = (
    ("ymd", "hms"), ("num", "hms"), ("dMy", "hms"), ("Mdy", "hms"), ("M-d-y", "hms"), ("zh", "zh"),
    ("zh", "hms"), ("compact", "hms"), ("compact", "packed"), ("ymd", "dots"), ("num", "dots"),
    ("ymd", "dashes"), ("ymd", "packed"), ("ymd", "hm"), ("num", "hm"), ("dMy", "hm"), ("Mdy", "hm"),
    ("M-d-y", "hm"), ("dM", "hms"), ("M/d", "hms"), ("short", "packed"), ("short", "hms"), ("ymd", "zh"),
)  # fmt: skip
_TURNED = (
    ("hms", "ymd"), ("hms", "num"), ("hms", "dMy"), ("hms", "Mdy"), ("hm", "num"), ("hm", "ymd"),
    ("hm", "dMy"),
)  # fmt: skip
# Dates alone: only with four digits of a year, since 1.2.24 is a version and "set 40" no September.
_ALONE = ("ymd", "num", "dMy", "Mdy", "M-d-y", "zh")
_NEEDS_SEP = {"short": r"[ T_\-]", "compact": r"[ T_\-]?"}


@cache
def forms() -> Mapping[str, TimeForm]:
    """All forms by name, in the order in which they are tried."""
    dates, times = _date_layouts(), _time_layouts()
    found: list[TimeForm] = []
    for date, time in _JOINED:
        sep = _NEEDS_SEP.get(date, _SEP) if time != "zh" else r"\s?"
        after = r"(?:\s(?P<y2>(?:19|20)\d{2})(?![\d:]))?" if date == "Mdy" else ""
        found.append(_form(f"{date}_{time}", "datetime", dates[date] + sep + times[time] + after))
    found.append(TimeForm("glog", "datetime", re.compile(_GLOG + times["hms"] + _AFTER, re.IGNORECASE)))
    found.append(_form("clf", "datetime", r"(?P<d>\d{2})/(?P<mon>[A-Za-z]{3})/(?P<y>\d{4}):" + times["hms"]))
    for time, date in _TURNED:
        sep = r"(?:\s{1,2}|\s?[|,;]\s?|\son\s|,\s)"
        after = r"(?:\s(?P<zone2>" + _zone_names() + r"|[+-]\d{4})(?![^\W_]))?"
        found.append(_form(f"{time}_{date}", "datetime", times[time] + sep + dates[date] + after))
    found += [
        _form("hms", "time", times["hms"]),
        _form("zh_time", "time", times["zh"].replace("[时時点:：]", "[时時点]")),
        _form("hm", "time", times["hm"]),
    ]
    alone = {name: body.replace(r"|\d{2})(?![\d])", r")(?!\d)") for name, body in dates.items()}
    alone["Mdy"] = alone["Mdy"].removesuffix("?")  # the year is a must
    alone["dMy"] = alone["dMy"].replace(r"|\d{2}(?!\d|:))", ")")
    found += [_form(name, "date", alone[name]) for name in _ALONE]
    return {form.name: form for form in found}


def _form(name: str, kind: str, body: str) -> TimeForm:
    before = _BEFORE_WORD if "P<mon>" in body else _BEFORE
    return TimeForm(name, kind, re.compile(before + body + _AFTER, re.IGNORECASE))


NUMBER = re.compile(r"(?<![\w.,\-#])(?P<digits>\d{9,19})(?:\.\d{1,9})?(?![\w]|[.,]\d|-\d)")


def epoch_form(digits: str) -> str | None:
    """epoch_s, epoch_ms, epoch_us or epoch_ns by the number of digits; None for other lengths."""
    return _EPOCH_DIGITS.get(len(digits))


def epoch_seconds(raw: str, form: str) -> float:
    """Seconds since 1970 of a number written in `form`. Raises ValueError when it is none."""
    return float(raw) / _EPOCH_SCALE[form]


def is_plausible(digits: str, form: str) -> bool:
    """Whether a machine of today could mean it."""
    return _FROM <= int(digits) // _EPOCH_SCALE[form] < _TO


def search(text: str) -> Iterator[tuple[TimeForm, re.Match[str]]]:
    """Every match of every form, form by form; the first ones have precedence over what overlaps them."""
    if any(char.isdigit() for char in text):
        for form in forms().values():
            for match in form.regex.finditer(text):
                yield form, match
