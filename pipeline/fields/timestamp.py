"""Timestamps: when it happened. Dates and times in every written order, epochs; uptimes are marked so.

Recognition and choice follow the labelling rules T1 to T5: date and time beat either alone, readable beats
epoch, then the first; uptimes, durations, build dates and "next run" are no event times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from pipeline.fields import lexicon, timeforms
from pipeline.fields.timevalue import form_of, learn_order, normalise, readings
from schemas.extraction import Candidate, FieldType, Span

__all__ = ["form_of", "learn_order", "normalise", "pick", "recognise"]

PICKED_MIN = 0.25  # weaker times are next runs, build dates, numbers under another key
DEAD = 0.3  # weight of a keyed epoch that cannot be: kept with its span, read as bad

_TYPES = frozenset({FieldType.TIMESTAMP})
_EPOCH_TYPES = frozenset({FieldType.TIMESTAMP, FieldType.NUMBER})
_KIND_WEIGHT = {"datetime": 0.95, "time": 0.7, "date": 0.5}
_LEFT = 32  # characters before a time that may say what it is
_UPTIME = re.compile(
    r"(?:(?<=\[)|^)\s{0,8}(?P<bracketed>\d{1,9}\.\d{3,9})(?=\]|\s)"
    r"|(?<=[A-Z] \()\s{0,6}(?P<ticks>\d{1,9})(?=\) )"
)
_KEY = re.compile(r"(?P<key>[^\W\d_][\w@.\-]{0,31}|@[a-z]{1,16})[\"']?\s?[=:：]\s?[\"']?$")
_AFTER_NOT_EVENT = (
    "time|date|run|seen|day|on|is|at|von|boot|reset|restart|maintenance|service|calibration|login"
)


class _Taken:
    """The characters that a time has already. Asking costs the length of the span."""

    def __init__(self, text: str) -> None:
        self._mask = bytearray(len(text))

    def add(self, span: Span) -> None:
        self._mask[span.start : span.end] = b"\x01" * (span.end - span.start)

    def touches(self, span: Span) -> bool:
        return 1 in self._mask[span.start : span.end]


def recognise(text: str) -> Iterator[Candidate]:
    """Every time in the line, without overlaps, in no particular order."""
    taken = _Taken(text)
    yield from _uptimes(text, taken)
    for form, match in timeforms.search(text):
        span = _stripped(match)
        if not taken.touches(span) and _is_possible(match):
            taken.add(span)
            yield _candidate(text, span, form)
    yield from _epochs(text, taken)


def _uptimes(text: str, taken: _Taken) -> Iterator[Candidate]:
    """Seconds since boot as kernels and firmware write them: [ 48.450854], E (7752)."""
    for match in _UPTIME.finditer(text):
        span = Span(*match.span(match.lastgroup or 0))
        taken.add(span)
        yield Candidate(span, frozenset({FieldType.NUMBER}), weight=0.1, form="uptime")


def _stripped(match: re.Match[str]) -> Span:
    start, end = match.span()
    while match.string[start].isspace():
        start += 1
    while match.string[end - 1].isspace():
        end -= 1
    return Span(start, end)


def _is_possible(match: re.Match[str]) -> bool:
    """Whether the groups can be a time at all: 24:61:00, 45/45/20 and version numbers are none."""
    part = match.groupdict()
    if int(part.get("H") or 0) > 24 or int(part.get("M") or 0) > 59 or int(part.get("S") or 0) > 60:
        return False
    if part.get("n1"):
        return bool(readings(part))
    month, day = part.get("mo"), part.get("d")
    return (month is None or 1 <= int(month) <= 12) and (day is None or 1 <= int(day) <= 31)


def _candidate(text: str, span: Span, form: timeforms.TimeForm) -> Candidate:
    left = text[max(0, span.start - _LEFT) : span.start]
    if _not_event().search(left) is None:
        return Candidate(span, _TYPES, weight=_KIND_WEIGHT[form.kind], form=form.name)
    if form.kind != "time" or form.name == "zh_time":
        return Candidate(span, _TYPES, weight=0.2, form=form.name)
    says_uptime = "up" in left.lower() or "运行" in left
    form_name = "uptime" if says_uptime else "duration"
    return Candidate(span, frozenset({FieldType.TEXT}), weight=0.1, form=form_name)


@cache
def _not_event() -> re.Pattern[str]:
    """A word that makes the time after it no event time, with at most one word and a separator between."""
    names = lexicon.alternatives(lexicon.load("times")["not_event"])
    return re.compile(
        rf"(?:^|[^a-zäöü])(?:{names})[\"']?(?:[\s_\-]{{0,2}}(?:{_AFTER_NOT_EVENT}))?[\"']?\s?[:=：]?\s{{0,2}}[\"'(]?$",
        re.IGNORECASE,
    )


def _epochs(text: str, taken: _Taken) -> Iterator[Candidate]:
    """Seconds, milli-, micro- or nanoseconds since 1970: the key says time, or no key says otherwise."""
    for match in timeforms.NUMBER.finditer(text):
        digits, span = match.group("digits"), Span(*match.span())
        form = timeforms.epoch_form(digits)
        if form is None or taken.touches(span):
            continue
        left = text[max(0, span.start - _LEFT) : span.start]
        key = _KEY.search(left)
        plausible = timeforms.is_plausible(digits, form)
        if key is not None and _says_time(key.group("key")):
            yield Candidate(
                span, _EPOCH_TYPES, bad=not plausible, weight=0.65 if plausible else DEAD, form=form
            )
        elif plausible and len(digits) in timeforms.EXACT_DIGITS:
            weak = key is not None or _not_event().search(left) is not None
            yield Candidate(span, _EPOCH_TYPES, weight=0.2 if weak else 0.6, form=form)


def _says_time(key: str) -> bool:
    """`ts`, `@timestamp`, `raiseTime`, `event_time_ms`, 采集时间; not `timeout`, `uptime`."""
    words = lexicon.plain(key).replace("-", " ").replace(".", " ").split()
    keys = lexicon.words("times", "keys")
    return any(word.strip("@") in keys for word in words) or key.endswith(("时间", "时间戳"))


def pick(text: str, candidates: Sequence[Candidate]) -> Candidate | None:
    """The record's own time among `candidates` (RULES T1 to T4), or None. A dead clock's is taken last."""
    times = [c for c in candidates if FieldType.TIMESTAMP in c.types and c.weight >= PICKED_MIN]
    return min(times, key=lambda c: (c.bad, _rank(c), c.span.start), default=None)


def _rank(candidate: Candidate) -> int:
    form = timeforms.forms().get(candidate.form)
    return form.rank if form is not None else timeforms.EPOCH_RANK
