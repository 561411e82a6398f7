"""What a written time is worth: the moment it means, in UTC. The hot path: one match, one datetime."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache, lru_cache

from pipeline.fields import lexicon, timeforms
from pipeline.fields.values import Context, Normalised, bad, unsure

MAX_AHEAD = timedelta(days=1)  # a device clock further ahead of us is wrong, whatever its zone
EARLIEST = datetime(
    2000, 1, 2
)  # dead clocks start at 1970, 1980 or 2000-01-01; no gateway hears older events
SKEW = timedelta(hours=1)  # a time of day further ahead of us is yesterday's
DAY = timedelta(days=1)
SHORTEST_DAY = timedelta(hours=21)  # a day loses at most three hours where clocks or zones change
NEAR = timedelta(hours=36)  # of two readings of a date, the one this near to the arrival is meant
LEAP_YEARS = 9  # years to look back for a 29 February: at most eight lie between two of them

_Groups = Mapping[str, str | None]


def normalise(raw: str, context: Context) -> Normalised:
    """UTC, ISO 8601, as precise as written up to the microsecond: "2025-03-03T10:15:10Z".

    A time without zone is the source's; one without date or year is the latest that is not in the future; a
    date alone is its first moment. Problems: bad_time (no time, a dead clock), ambiguous_time (03/04/2025 and
    nothing to tell, a zone of several meanings).
    """
    received = context.received_at.astimezone(UTC).replace(tzinfo=None)
    try:
        moment = _read(raw, context, received)
    except (ValueError, OverflowError, KeyError):
        return bad("bad_time")
    if moment is None:
        return unsure("ambiguous_time")
    if not EARLIEST <= moment <= received + MAX_AHEAD:
        return bad("bad_time")
    if moment.microsecond and moment.microsecond % 1000 == 0:
        return Normalised(moment.isoformat(timespec="milliseconds") + "Z")
    return Normalised(moment.isoformat() + "Z")


@lru_cache(maxsize=256)
def form_of(raw: str) -> str:
    """The name of the form `raw` is written in; "" when it is no time."""
    match = timeforms.NUMBER.fullmatch(raw)
    epoch = timeforms.epoch_form(match.group("digits")) if match is not None else None
    return epoch or next((form.name for form in timeforms.forms().values() if form.regex.fullmatch(raw)), "")


def _read(raw: str, context: Context, received: datetime) -> datetime | None:
    """The moment in UTC, naive; None when it reads two ways. Raises ValueError, KeyError, OverflowError."""
    name = context.form
    if name.startswith("epoch"):
        return datetime.fromtimestamp(timeforms.epoch_seconds(raw, name), UTC).replace(tzinfo=None)
    if name == "ymd_hms" or not name:
        moment = _iso(raw, context.timezone, received)
        if moment is not None:
            return moment
    form = timeforms.forms().get(name)
    match = form.regex.fullmatch(raw) if form is not None else None
    if match is None:
        found = form_of(raw)
        if found.startswith("epoch"):
            return datetime.fromtimestamp(timeforms.epoch_seconds(raw, found), UTC).replace(tzinfo=None)
        match = timeforms.forms()[found].regex.fullmatch(raw)
    return _from_groups(match.groupdict(), context, received) if match is not None else None


def _iso(raw: str, zone: tzinfo, received: datetime) -> datetime | None:
    """By the C parser, the fastest. It takes more than dates with dashes, so those are asked for."""
    if raw[4:5] != "-" or len(raw) < 19:
        return None
    try:
        return _in_utc(datetime.fromisoformat(raw), zone, received)
    except ValueError:
        return None


def _in_utc(moment: datetime, zone: tzinfo, received: datetime) -> datetime:
    """UTC, without tzinfo. Of the two times of an hour that comes twice, the nearer to the arrival."""
    if moment.tzinfo is not None:
        return moment.astimezone(UTC).replace(tzinfo=None)
    local = moment.replace(tzinfo=zone)
    first, second = local.utcoffset(), local.replace(fold=1).utcoffset()
    early = moment - (first or timedelta())
    if first == second or second is None:
        return early
    return min(early, moment - second, key=lambda t: abs(t - received))


def _from_groups(part: _Groups, context: Context, received: datetime) -> datetime | None:
    written = part.get("zone") or part.get("zone2")
    zone = _zone_of(written, context) if written else context.timezone
    if zone is None:
        return None
    clock = _clock(part)
    if part.get("n1"):
        return _ambiguous(part, clock, zone, context.convention, received)
    name = part.get("mon")
    month = _month_numbers()[name.lower()] if name else int(part.get("mo") or 0)
    if not month:
        return _latest_day(clock, zone, received)
    day, year = int(part.get("d") or 0), part.get("y") or part.get("y2")
    if year:
        return _in_utc(datetime(_year(year), month, day) + clock, zone, received)
    return _latest_year(month, day, clock, zone, received)


def _clock(part: _Groups) -> timedelta:
    """The time of day. A leap second counts as the one before it, 24:00 as the next day's start."""
    hour, minute, second = int(part.get("H") or 0), int(part.get("M") or 0), int(part.get("S") or 0)
    half = (part.get("ap") or "").strip().lower()[:1]
    if half and not 1 <= hour <= 12:
        raise ValueError("hour of a twelve-hour clock")
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    if part.get("zap") in ("下午", "晚上") and hour < 12:
        hour += 12
    if hour > 24 or minute > 59 or second > 60 or (hour == 24 and (minute or second)):
        raise ValueError("no time of day")
    micro = int((part.get("f") or "0").ljust(6, "0")[:6])
    return timedelta(0, min(second, 59), micro, 0, minute, hour)


def _latest_day(clock: timedelta, zone: tzinfo, received: datetime) -> datetime:
    """A time of day on the last day on which it has been, or is about to be."""
    local = received.replace(tzinfo=UTC).astimezone(zone)
    day = datetime(local.year, local.month, local.day)
    moment = _in_utc(day + clock, zone, received)
    if moment <= received + SKEW - SHORTEST_DAY:  # only just after midnight may tomorrow's be meant
        tomorrow = _in_utc(day + DAY + clock, zone, received)
        return tomorrow if tomorrow <= received + SKEW else moment
    while moment > received + SKEW:
        day -= DAY
        moment = _in_utc(day + clock, zone, received)
    return moment


def _latest_year(month: int, day: int, clock: timedelta, zone: tzinfo, received: datetime) -> datetime:
    start = received.year + (1 if month == 1 and received.month == 12 else 0)
    for year in range(start, start - LEAP_YEARS, -1):
        try:
            moment = _in_utc(datetime(year, month, day) + clock, zone, received)
        except ValueError:
            continue
        if moment <= received + MAX_AHEAD:
            return moment
    raise ValueError("no such day")


def _year(written: str) -> int:
    """Two digits mean 1970 to 2069, as in POSIX strptime."""
    year = int(written)
    return year if year > 99 else year + (1900 if year >= 70 else 2000)


def readings(part: _Groups) -> dict[str, tuple[int, int, int]]:
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
    part: _Groups, clock: timedelta, zone: tzinfo, order: str | None, received: datetime
) -> datetime | None:
    found = readings(part)
    if order in found:
        found = {order: found[order]}
    elif part.get("ds") == "." and "dmy" in found:
        found = {"dmy": found["dmy"]}  # with dots the day comes first wherever dots are written
    moments = {_in_utc(datetime(*day) + clock, zone, received) for day in found.values()}
    if len(moments) > 1:
        moments = {moment for moment in moments if abs(moment - received) <= NEAR} or moments
    if not moments:
        raise ValueError("no such day")
    return moments.pop() if len(moments) == 1 else None


def learn_order(raws: Sequence[str]) -> str | None:
    """The one order in which all these dates read: dmy, mdy or ymd; None when they do not tell."""
    left = {"dmy", "mdy", "ymd"}
    for raw in raws:
        form = timeforms.forms().get(form_of(raw))
        match = form.regex.fullmatch(raw) if form else None
        if match and match.groupdict().get("n1"):
            left &= set(readings(match.groupdict()))
    return left.pop() if len(left) == 1 else None


@cache
def _month_numbers() -> dict[str, int]:
    return {name: int(number) for number, names in lexicon.load("times")["months"].items() for name in names}


@lru_cache(maxsize=256)
def _fixed_zone(written: str) -> timezone | None:
    """An offset or a zone abbreviation of one meaning; None for the others. Raises ValueError for +99:00."""
    known = lexicon.load("times")["zones"].get(written)
    if known is not None:
        return timezone(timedelta(minutes=int(known)))
    match = re.fullmatch(r"(?:utc|gmt)?([+-])(\d{1,2}):?(\d{2})?", written)
    if match is None:
        return None
    offset = timedelta(hours=int(match.group(2)), minutes=int(match.group(3) or 0))
    return timezone(-offset if match.group(1) == "-" else offset)


def _zone_of(written: str, context: Context) -> tzinfo | None:
    """The zone that stands behind a time; None when it means several and the source's own is none of them."""
    fixed = _fixed_zone(written.strip().lower())
    if fixed is not None:
        return fixed
    own = context.received_at.astimezone(context.timezone).tzname()
    return context.timezone if own == written.strip().upper() else None
