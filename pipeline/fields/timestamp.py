"""Timestamps: when it happened. Times of day, dates, both in every written order, epochs; uptimes are marked as such.

Recognition and choice follow the labelling rules T1 to T5: date and time beat either alone, readable beats epoch, then the
first; uptimes, durations, build dates and "next run" are no event times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone
from functools import cache, lru_cache

from pipeline.fields import lexicon, timeforms
from pipeline.fields.values import Context, Normalised, bad, unsure
from schemas.extraction import Candidate, FieldType, Span

MAX_AHEAD = timedelta(days=1)  # a device clock further ahead of us is wrong, whatever its zone
EARLIEST = datetime(
    2000, 1, 2, tzinfo=UTC
)  # dead clocks start at 1970, 1980 or 2000-01-01; no gateway reads older events
NEAR = timedelta(hours=36)  # of two readings of a date, the one this near to the arrival is meant

_TYPES = frozenset({FieldType.TIMESTAMP})
_UPTIME = re.compile(
    r"(?:(?<=\[)|(?<=^))\s{0,8}(?P<s>\d{1,9}\.\d{3,9})(?=\]|\s)|(?<=[A-Z] \()\s{0,6}(?P<t>\d{1,10})(?=\) )"
)
_LEFT = 28  # characters before a time that may say it is no event time


class _Taken:
    """The characters that a time has already; asking costs the length of the span, however many times the line has."""

    def __init__(self, text: str) -> None:
        self._mask = bytearray(len(text))

    def add(self, span: Span) -> None:
        self._mask[span.start : span.end] = b"\x01" * (span.end - span.start)

    def touches(self, span: Span) -> bool:
        return 1 in self._mask[span.start : span.end]


def recognise(text: str) -> Iterator[Candidate]:
    """Every time in the line, without overlaps, in no particular order."""
    taken = _Taken(text)
    for match in _UPTIME.finditer(text):
        group = "s" if match.group("s") else "t"
        if len(match.group(group).partition(".")[0]) < 10:
            span = Span(*match.span(group))
            taken.add(span)
            yield Candidate(span, frozenset({FieldType.NUMBER}), weight=0.1, form="uptime")
    for form, match in timeforms.search(text):
        span = _stripped(match)
        if not taken.touches(span) and _is_possible(match):
            taken.add(span)
            yield _candidate(text, span, form)
    yield from _epochs(text, taken)


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
    if part.get("mo") and not (1 <= int(part["mo"]) <= 12 and 1 <= int(part["d"]) <= 31):
        return False
    if part.get("n1"):
        return bool(_readings(part))
    return not part.get("mon") or 1 <= int(part["d"]) <= 31


def _candidate(text: str, span: Span, form: timeforms.TimeForm) -> Candidate:
    left = text[max(0, span.start - _LEFT) : span.start]
    if form.kind in ("time", "date") and _not_event().search(left):
        kind = "duration" if form.kind == "time" and not form.name.startswith("zh") else "other_date"
        types = _TYPES if kind == "other_date" else frozenset({FieldType.TEXT})
        return Candidate(
            span,
            types,
            weight=0.1,
            form="uptime" if _says_uptime(left) else kind if kind == "duration" else form.name,
        )
    weight = {"datetime": 0.95, "time": 0.7, "date": 0.5}[form.kind]
    return Candidate(span, _TYPES, weight=0.2 if _not_event().search(left) else weight, form=form.name)


def _says_uptime(left: str) -> bool:
    return "up" in left.lower() or "运行" in left


@cache
def _not_event() -> re.Pattern[str]:
    """A word that makes the time after it no event time, with at most a separator and one word between."""
    names = lexicon.alternatives(lexicon.load("times")["not_event"])
    return re.compile(
        rf"(?:^|[^a-zäöü])(?:{names})[\"']?(?:\s{{1,2}}(?:time|date|run|seen|day|on|is|at|von))?\s?[:=：]?\s{{0,2}}[\"'(]?$",
        re.IGNORECASE,
    )


def _epochs(text: str, taken: _Taken) -> Iterator[Candidate]:
    types = frozenset({FieldType.TIMESTAMP, FieldType.NUMBER})
    for match in timeforms.EPOCH.finditer(text):
        span, form = Span(*match.span()), timeforms.epoch_form(match.group("epoch"))
        if form is not None and not taken.touches(span):
            yield Candidate(span, types, weight=0.6, form=form)


def pick(text: str, candidates: Sequence[Candidate]) -> Candidate | None:
    """The record's own time among `candidates` (RULES T1 to T4), or None."""
    times = [c for c in candidates if FieldType.TIMESTAMP in c.types and not c.bad and c.weight >= 0.25]
    return min(times, key=lambda c: (_rank(c), c.span.start), default=None)


def _rank(candidate: Candidate) -> int:
    form = timeforms.forms().get(candidate.form)
    return form.rank if form is not None else 2


# --- reading a time -------------------------------------------------------------------------------------------------


def normalise(raw: str, context: Context) -> Normalised:
    """UTC, ISO 8601, as precise as written up to the microsecond.

    A time without zone is the source's; a time without date is the nearest to the arrival, one without year the latest
    that is not in the future. Problems: bad_time (no time, or a dead clock), ambiguous_time (03/04 with nothing to tell).
    """
    try:
        moment = _read(raw, context)
    except (ValueError, OverflowError, KeyError):
        return bad("bad_time")
    if moment is None:
        return unsure("ambiguous_time")
    if not EARLIEST <= moment <= context.received_at + MAX_AHEAD:
        return bad("bad_time")
    return Normalised(moment.astimezone(UTC).isoformat().replace("+00:00", "Z"))


def form_of(raw: str) -> str:
    """The name of the form `raw` is written in; "" when it is no time."""
    match = timeforms.EPOCH.fullmatch(raw)
    if match:
        return timeforms.epoch_form(match.group("epoch")) or ""
    return next((form.name for form in timeforms.forms().values() if form.regex.fullmatch(raw)), "")


def _read(raw: str, context: Context) -> datetime | None:
    name = context.form or form_of(raw)
    if name.startswith("epoch"):
        return datetime.fromtimestamp(timeforms.epoch_seconds(raw, name), UTC)
    if name == "ymd_hms" and raw[4:5] == "-":
        try:
            return _placed(datetime.fromisoformat(raw), context)
        except ValueError:
            pass  # ISO with a blank before the zone, one-digit months and the like: read by its groups
    match = timeforms.forms()[name].regex.fullmatch(raw)
    if match is None:
        raise ValueError(raw)
    return _from_groups(match.groupdict(), context)


def _placed(moment: datetime, context: Context) -> datetime:
    """A time without zone in the source's zone; of the two times of the hour that comes twice, the nearer to the arrival."""
    if moment.tzinfo is not None:
        return moment
    first = moment.replace(tzinfo=context.timezone)
    second = first.replace(fold=1)
    if first.utcoffset() == second.utcoffset():
        return first
    return min(first, second, key=lambda t: abs(t.astimezone(UTC) - context.received_at))


def _from_groups(part: dict[str, str | None], context: Context) -> datetime | None:
    hour, minute, second = _clock(part)
    micro = int((part.get("f") or "0").ljust(6, "0")[:6])
    zone = _zone_of(part.get("zone"), context)
    clock = timedelta(hours=hour, minutes=minute, seconds=second, microseconds=micro)
    local = context.received_at.astimezone(zone)
    if part.get("n1"):
        return _ambiguous(part, clock, zone, context)
    name = part.get("mon")
    month = _month_numbers()[name.lower()] if name else int(part.get("mo") or 0)
    if not month:
        return _nearest_day(local, clock, zone, context)
    written = part.get("y") or part.get("y2")
    day = int(part["d"] or 0)
    if written:
        return _placed(datetime(_year(written), month, day) + clock, Context(zone, context.received_at))
    return _latest_year(month, day, clock, zone, context)


def _clock(part: dict[str, str | None]) -> tuple[int, int, int]:
    hour, minute, second = (int(part.get(name) or 0) for name in ("H", "M", "S"))
    half = (part.get("ap") or "").strip().lower()[:1]
    if half and not 1 <= hour <= 12:
        raise ValueError("hour of a twelve-hour clock")
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    if part.get("zap") in ("下午", "晚上") and hour < 12:
        hour += 12
    if hour > 24 or minute > 59 or second > 60:
        raise ValueError("no time of day")
    return hour, minute, min(second, 59)  # a leap second counts as the one before it


def _nearest_day(local: datetime, clock: timedelta, zone: timezone, context: Context) -> datetime:
    days = (datetime(local.year, local.month, local.day) + timedelta(days=offset) for offset in (-1, 0, 1))
    return min(
        (_placed(day + clock, Context(zone, context.received_at)) for day in days),
        key=lambda t: abs(t - context.received_at),
    )


def _latest_year(month: int, day: int, clock: timedelta, zone: timezone, context: Context) -> datetime:
    year = context.received_at.year + 1
    for candidate in range(year, year - 9, -1):  # nine years hold two leap days
        try:
            moment = _placed(datetime(candidate, month, day) + clock, Context(zone, context.received_at))
        except ValueError:
            continue
        if moment <= context.received_at + MAX_AHEAD:
            return moment
    raise ValueError("no such day")


def _year(written: str) -> int:
    """Two digits mean 1970 to 2069, as in POSIX strptime."""
    year = int(written)
    return year if year > 99 else year + (1900 if year >= 70 else 2000)


def _readings(part: dict[str, str | None]) -> dict[str, tuple[int, int, int]]:
    """The orders in which n1, n2, n3 make a date: order -> (year, month, day)."""
    a, b, c = (part[name] or "" for name in ("n1", "n2", "n3"))
    orders = {"dmy": (c, b, a), "mdy": (c, a, b)}
    if len(c) == 2:
        orders["ymd"] = (a, b, c)
    found = {}
    for order, (year, month, day) in orders.items():
        try:
            moment = datetime(_year(year), int(month), int(day))
        except ValueError:
            continue
        found[order] = (moment.year, moment.month, moment.day)
    return found


def _ambiguous(
    part: dict[str, str | None], clock: timedelta, zone: timezone, context: Context
) -> datetime | None:
    found = _readings(part)
    if context.convention in found:
        found = {context.convention: found[context.convention]}
    elif part.get("ds") == "." and "dmy" in found:
        found = {"dmy": found["dmy"]}  # nobody writes 12.31.2024
    place = Context(zone, context.received_at)
    moments = {_placed(datetime(*day) + clock, place) for day in found.values()}
    if len(moments) > 1:
        moments = {m for m in moments if abs(m - context.received_at) <= NEAR} or moments
    if not moments:
        raise ValueError("no such day")
    return moments.pop() if len(moments) == 1 else None


def learn_order(raws: Sequence[str]) -> str | None:
    """ "dmy", "mdy" or "ymd" when all these dates read in that order and in no other; None when they do not tell."""
    left: set[str] = {"dmy", "mdy", "ymd"}
    for raw in raws:
        form = timeforms.forms().get(form_of(raw))
        match = form.regex.fullmatch(raw) if form else None
        if match and match.groupdict().get("n1"):
            left &= set(_readings(match.groupdict()))
    return left.pop() if len(left) == 1 else None


@cache
def _month_numbers() -> dict[str, int]:
    return {name: int(number) for number, names in lexicon.load("times")["months"].items() for name in names}


@lru_cache(maxsize=256)
def _fixed_zone(written: str) -> timezone | None:
    """An offset or a zone abbreviation of one meaning; None for the others."""
    known = lexicon.load("times")["zones"].get(written)
    if known is not None:
        return timezone(timedelta(minutes=int(known)))
    match = re.fullmatch(r"(?:utc|gmt)?([+-])(\d{1,2}):?(\d{2})?", written)
    if match is None:
        return None
    offset = timedelta(hours=int(match.group(2)), minutes=int(match.group(3) or 0))
    return timezone(-offset if match.group(1) == "-" else offset)


def _zone_of(written: str | None, context: Context) -> timezone:
    if not written:
        return context.timezone  # type: ignore[return-value]
    fixed = _fixed_zone(written.strip().lower())
    if fixed is not None:
        return fixed
    if context.received_at.astimezone(context.timezone).tzname() == written.strip().upper():
        return context.timezone  # type: ignore[return-value]
    raise ValueError("a zone of several meanings")
