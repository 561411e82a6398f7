"""Events and times as the store keeps them: JSON objects, and integer microseconds since the epoch (UTC)."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from schemas.events import Event, EventId, LogLine, Reading
from schemas.extraction import Null

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_KINDS: dict[str, type[LogLine] | type[Reading]] = {"line": LogLine, "reading": Reading}


def to_us(moment: datetime) -> int:
    """Exact microseconds of an aware time (a float of seconds would lose some)."""
    return (moment - _EPOCH) // _MICROSECOND


def now_us() -> int:
    """Now, by the wall clock, in the store's unit."""
    return time.time_ns() // 1000


def from_us(us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=us)


def dump_event(event: Event) -> dict[str, Any]:
    """A JSON object of everything but the id; lone surrogates and non-finite numbers survive it."""
    kind = "line" if isinstance(event, LogLine) else "reading"
    row: dict[str, Any] = {"kind": kind}
    for field in dataclasses.fields(event):
        value = getattr(event, field.name)
        if field.name != "id":
            row[field.name] = to_us(value) if isinstance(value, datetime) else value
    return row


def load_event(id: EventId, row: Mapping[str, Any]) -> Event:
    """The event that `dump_event` wrote. Unknown keys are left out, missing ones get their default."""
    kind = _KINDS[row["kind"]]
    known = {field.name for field in dataclasses.fields(kind)}
    values = {name: value for name, value in row.items() if name in known}
    values["received_at"] = from_us(values["received_at"])
    if values.get("time") is not None:
        values["time"] = from_us(values["time"])
    if values.get("null") is not None:
        values["null"] = Null(values["null"])
    return kind(id=id, **values)
