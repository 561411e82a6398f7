"""Alarm openings and returns to normal. A position is an EventId: (seq, index), the order of things."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, func, select

from pipeline.store.events import OPENED, EventRow, Kind
from pipeline.store.tables import bind_text, openings
from schemas.events import EventId
from schemas.extraction import Severity
from schemas.ticket import AlarmKey

# SQLite allows 32 766 bound values and a long statement, but a json_each of this many keys is fast enough.
_KEYS_MAX = 1000


@dataclass(slots=True, eq=False)
class Opening:
    """One time an alarm is open: from `opened` to `cleared` (None: still). `id` is None until it is stored.

    `number` counts the openings of the key in the order in which they were found, from 1. `ticket_key` is
    None for an alarm without a ticket.
    """

    subject: str
    cause: str
    scope: str
    number: int
    severity: Severity
    category: str | None
    action: str | None
    source: str
    topic: str
    line: str
    opened: EventId
    last: EventId
    occurrences: int
    first_seen_us: int
    last_seen_us: int
    cleared: EventId | None = None
    cleared_at_us: int | None = None
    ticket_key: str | None = None
    id: int | None = field(default=None)

    @property
    def key(self) -> AlarmKey:
        return AlarmKey(self.subject, self.cause)

    def holds(self, position: EventId) -> bool:
        return self.opened <= position and (self.cleared is None or position < self.cleared)


class Clear(NamedTuple):
    """The last return to normal of a key."""

    position: EventId
    at_us: int


class Occurrence(NamedTuple):
    """One event of an opening, as stored, with when it was received."""

    row: EventRow
    at_us: int


_COLUMNS = (
    "subject, cause, scope, number, severity, category, action, source, topic, line, opened_seq, opened_idx, "
    "last_seq, last_idx, cleared_seq, cleared_idx, occurrences, first_seen_us, last_seen_us, cleared_at_us, "
    "ticket_key, id"
)
_NAMES = tuple(name.strip() for name in _COLUMNS.split(","))
_O = ", ".join(f"o.{name}" for name in _NAMES)
# CROSS JOIN keeps the order: the keys, each looked up in the index.
_LATEST = f"""
SELECT {_O}, (SELECT max(n.number) FROM openings AS n WHERE n.subject = o.subject AND n.cause = o.cause)
FROM json_each(?) AS k CROSS JOIN openings AS o ON o.id = (
    SELECT x.id FROM openings AS x
    WHERE x.subject = json_extract(k.value, '$[0]') AND x.cause = json_extract(k.value, '$[1]')
    ORDER BY x.opened_seq DESC, x.opened_idx DESC LIMIT 1)
"""
_CLEARS = """
SELECT c.subject, c.cause, c.seq, c.idx, c.at_us FROM json_each(?) AS k CROSS JOIN clears AS c
ON c.subject = json_extract(k.value, '$[0]') AND c.cause = json_extract(k.value, '$[1]')
"""
_OPEN_IN_SCOPE = """
SELECT o.subject, o.cause, o.scope FROM json_each(?) AS k CROSS JOIN openings AS o
ON o.scope = json_extract(k.value, '$[0]') AND o.cause = json_extract(k.value, '$[1]')
WHERE o.cleared_seq IS NULL
"""
_OF_KEY = (
    f"SELECT {_O} FROM openings AS o WHERE o.subject = ? AND o.cause = ? ORDER BY o.opened_seq, o.opened_idx"
)
_OCCURRENCES_AFTER = """
SELECT e.seq, e.idx, e.kind, e.state, e.reason, e.opening_id, e.pattern_id, j.source, j.received_at_us
FROM events AS e JOIN journal AS j ON j.seq = e.seq
WHERE e.opening_id = ? AND (e.seq, e.idx) > (?, ?) ORDER BY e.seq, e.idx
"""
_LAST_BEFORE = """
SELECT seq, idx FROM events WHERE opening_id = ? AND (seq, idx) < (?, ?) ORDER BY seq DESC, idx DESC LIMIT 1
"""
_FIRST = """
SELECT e.seq, e.idx, e.kind, e.state, e.reason, e.opening_id, e.pattern_id, j.source
FROM events AS e JOIN journal AS j ON j.seq = e.seq WHERE e.opening_id = ? ORDER BY e.seq, e.idx LIMIT 1
"""
_OPENER_BEFORE = """
SELECT seq, idx FROM events WHERE opening_id = ? AND reason = ? AND (seq, idx) < (?, ?) LIMIT 1
"""
# The readings of a document that count for an opening: those after its line and before the next one.
_FOLDED = """
SELECT json_extract(k.value, '$[0]'), json_extract(k.value, '$[1]'), e.opening_id
FROM json_each(?) AS k CROSS JOIN events AS e
ON e.seq = json_extract(k.value, '$[0]') AND e.idx > json_extract(k.value, '$[1]')
WHERE e.kind = 1 AND e.opening_id IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM events AS b WHERE b.seq = e.seq AND b.kind = 0
    AND b.idx > json_extract(k.value, '$[1]') AND b.idx < e.idx)
"""
_PUT_CLEAR = """
INSERT INTO clears (subject, cause, seq, idx, at_us) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (subject, cause) DO UPDATE SET seq = excluded.seq, idx = excluded.idx, at_us = excluded.at_us
WHERE (excluded.seq, excluded.idx) > (clears.seq, clears.idx)
"""
_UPDATE = """
UPDATE openings SET severity = ?, category = ?, action = ?, opened_seq = ?, opened_idx = ?, last_seq = ?,
last_idx = ?, cleared_seq = ?, cleared_idx = ?, occurrences = ?, first_seen_us = ?, last_seen_us = ?,
cleared_at_us = ?, ticket_key = ? WHERE id = ?
"""


def latest(connection: Connection, keys: Sequence[AlarmKey]) -> dict[AlarmKey, tuple[Opening, int]]:
    """Of each key that ever opened: the opening that comes last, and the highest number."""
    found = {}
    for chunk in _chunks([(key.subject, key.cause) for key in keys]):
        for row in connection.exec_driver_sql(_LATEST, (chunk,)):
            opening = _opening(row)
            found[opening.key] = (opening, int(row[len(_NAMES)]))
    return found


def clears(connection: Connection, keys: Sequence[AlarmKey]) -> dict[AlarmKey, Clear]:
    """The last return to normal of each key that has one."""
    found = {}
    for chunk in _chunks([(key.subject, key.cause) for key in keys]):
        for subject, cause, seq, index, at_us in connection.exec_driver_sql(_CLEARS, (chunk,)):
            found[AlarmKey(_text(subject), _text(cause))] = Clear(EventId(seq, index), at_us)
    return found


def open_in_scope(
    connection: Connection, scopes: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], list[AlarmKey]]:
    """The keys that are open now, by (scope, cause)."""
    found: dict[tuple[str, str], list[AlarmKey]] = {}
    for chunk in _chunks(scopes):
        for subject, cause, scope in connection.exec_driver_sql(_OPEN_IN_SCOPE, (chunk,)):
            key = AlarmKey(_text(subject), _text(cause))
            found.setdefault((_text(scope), key.cause), []).append(key)
    return found


def of_key(connection: Connection, key: AlarmKey) -> list[Opening]:
    """Every opening of a key, in order of position."""
    bound = (bind_text(key.subject), bind_text(key.cause))
    return [_opening(row) for row in connection.exec_driver_sql(_OF_KEY, bound)]


def get(connection: Connection, opening_id: int) -> Opening | None:
    query = select(*(openings.c[name] for name in _NAMES)).where(openings.c.id == opening_id)
    row = connection.execute(query).one_or_none()
    return None if row is None else _opening(row)


def by_ids(connection: Connection, ids: Iterable[int]) -> dict[int, Opening]:
    query = select(*(openings.c[name] for name in _NAMES)).where(openings.c.id.in_(list(ids)))
    found = (_opening(row) for row in connection.execute(query))
    return {opening.id: opening for opening in found if opening.id is not None}


def open_alarms(connection: Connection, limit: int) -> list[Opening]:
    """What is open now, the newest first."""
    query = (
        select(*(openings.c[name] for name in _NAMES))
        .where(openings.c.cleared_seq.is_(None))
        .order_by(openings.c.id.desc())
        .limit(limit)
    )
    return [_opening(row) for row in connection.execute(query)]


def open_count(connection: Connection) -> int:
    query = select(func.count()).select_from(openings).where(openings.c.cleared_seq.is_(None))
    return int(connection.execute(query).scalar_one())


def folded(connection: Connection, lines: Sequence[EventId]) -> dict[EventId, int]:
    """For lines read late: the opening that a reading of the same document counts for already."""
    found: dict[EventId, int] = {}
    for chunk in _chunks(lines):
        for seq, index, opening_id in connection.exec_driver_sql(_FOLDED, (chunk,)):
            found.setdefault(EventId(seq, index), opening_id)
    return found


def occurrences_after(connection: Connection, opening_id: int, position: EventId) -> list[Occurrence]:
    """The stored events of an opening behind `position`, in order."""
    rows = connection.exec_driver_sql(_OCCURRENCES_AFTER, (opening_id, *position))
    return [
        Occurrence(EventRow(EventId(seq, index), source, Kind(kind), state, reason, opening, pattern), at_us)
        for seq, index, kind, state, reason, opening, pattern, source, at_us in rows
    ]


def last_before(connection: Connection, opening_id: int, position: EventId) -> EventId | None:
    """The last stored event of an opening before `position`."""
    row = connection.exec_driver_sql(_LAST_BEFORE, (opening_id, *position)).one_or_none()
    return None if row is None else EventId(*row)


def first(connection: Connection, opening_id: int) -> EventRow | None:
    """The first stored event of an opening."""
    row = connection.exec_driver_sql(_FIRST, (opening_id,)).one_or_none()
    if row is None:
        return None
    seq, index, kind, state, reason, opening, pattern, source = row
    return EventRow(EventId(seq, index), source, Kind(kind), state, reason, opening, pattern)


def opener_before(connection: Connection, opening_id: int, position: EventId) -> EventId | None:
    """The event that opened the opening's ticket, if it is stored and before `position`."""
    row = connection.exec_driver_sql(_OPENER_BEFORE, (opening_id, OPENED, *position)).one_or_none()
    return None if row is None else EventId(*row)


def insert(connection: Connection, rows: Sequence[Opening]) -> None:
    """Store new openings; each gets its id."""
    if not rows:
        return
    statement = openings.insert().returning(openings.c.id, sort_by_parameter_order=True)
    ids = connection.execute(statement, [_values(row) for row in rows]).scalars()
    for row, id_ in zip(rows, ids, strict=True):
        row.id = id_


def update(connection: Connection, rows: Sequence[Opening]) -> None:
    """Write what can change of openings that are stored."""
    if rows:
        connection.exec_driver_sql(
            _UPDATE,
            [
                (
                    *(row.severity, row.category, row.action),
                    *(*row.opened, *row.last, *(row.cleared or (None, None))),
                    *(row.occurrences, row.first_seen_us, row.last_seen_us, row.cleared_at_us),
                    *(row.ticket_key, row.id),
                )
                for row in rows
            ],
        )


def put_clears(connection: Connection, rows: Iterable[tuple[AlarmKey, Clear]]) -> None:
    """Remember returns to normal; of two of one key the later one by position."""
    bound = [
        (bind_text(key.subject), bind_text(key.cause), *clear.position, clear.at_us) for key, clear in rows
    ]
    if bound:
        connection.exec_driver_sql(_PUT_CLEAR, bound)


def drop_clears(connection: Connection, keys: Iterable[AlarmKey]) -> None:
    """Forget the last return to normal of each key."""
    bound = [(bind_text(key.subject), bind_text(key.cause)) for key in keys]
    if bound:
        connection.exec_driver_sql("DELETE FROM clears WHERE subject = ? AND cause = ?", bound)


def _chunks(rows: Sequence[Sequence[Any]]) -> Iterable[str]:
    for start in range(0, len(rows), _KEYS_MAX):
        yield json.dumps(rows[start : start + _KEYS_MAX], ensure_ascii=False)


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else value


def _values(row: Opening) -> dict[str, Any]:
    values: dict[str, Any] = {
        item.name: getattr(row, item.name)
        for item in fields(row)
        if item.name not in ("opened", "last", "cleared", "id")
    }
    values["severity"] = str(row.severity)
    values["opened_seq"], values["opened_idx"] = row.opened
    values["last_seq"], values["last_idx"] = row.last
    values["cleared_seq"], values["cleared_idx"] = row.cleared or (None, None)
    return values


def _opening(row: Row[Any]) -> Opening:
    of = dict(zip(_NAMES, row, strict=False))
    cleared = None if of["cleared_seq"] is None else EventId(of["cleared_seq"], of["cleared_idx"])
    return Opening(
        subject=_text(of["subject"]),
        cause=_text(of["cause"]),
        scope=_text(of["scope"]),
        number=of["number"],
        severity=Severity(of["severity"]),
        category=of["category"],
        action=of["action"],
        source=of["source"],
        topic=_text(of["topic"]),
        line=_text(of["line"]),
        opened=EventId(of["opened_seq"], of["opened_idx"]),
        last=EventId(of["last_seq"], of["last_idx"]),
        occurrences=of["occurrences"],
        first_seen_us=of["first_seen_us"],
        last_seen_us=of["last_seen_us"],
        cleared=cleared,
        cleared_at_us=of["cleared_at_us"],
        ticket_key=of["ticket_key"],
        id=of["id"],
    )
