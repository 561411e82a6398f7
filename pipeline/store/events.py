"""Events and their one state. The counters shift in the same transaction, so that sums always add up."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, select

from pipeline.store import totals
from pipeline.store.tables import events, journal
from pipeline.store.totals import OPENED, UNREAD, Counts, counts
from schemas.events import EventId
from schemas.ticket import Outcome, Settlement


class Kind(IntEnum):
    """What the event is; an undecodable payload is one event of its own."""

    LINE = 0
    READING = 1
    UNDECODABLE = 2


class EventRow(NamedTuple):
    """One event as stored: `state` is `unread` or an Outcome. A tuple, since one is made for every line.

    Of an event that opened a ticket the reason is OPENED; of its occurrences it is another one.
    """

    id: EventId
    source: str
    kind: Kind
    state: Outcome | str
    reason: str = ""
    opening_id: int | None = None
    pattern_id: int | None = None
    of: EventId | None = None


NOWHERE = (None, None)

# Bound by hand: this runs for every line.
_INSERT = (
    "INSERT INTO events (seq, idx, kind, state, reason, opening_id, pattern_id, of_seq, of_idx) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_MOVE = (
    "UPDATE events SET state = ?, reason = ?, opening_id = ?, pattern_id = coalesce(?, pattern_id), "
    "of_seq = ?, of_idx = ? WHERE seq = ? AND idx = ?"
)
# CROSS JOIN keeps the order: each id is looked up by key. `(seq, idx) IN (VALUES ...)` would scan the table.
_REASONS = (
    "SELECT e.seq, e.idx, e.reason FROM json_each(?) AS id CROSS JOIN events AS e "
    "ON e.seq = json_extract(id.value, '$[0]') AND e.idx = json_extract(id.value, '$[1]') WHERE e.state = ?"
)


def settle(connection: Connection, rows: Sequence[EventRow]) -> None:
    """Write down what became of events seen for the first time (an outcome, or `unread`), and count them.

    Raises IntegrityError when one of them is known already: an event is settled once, and then only moves.
    """
    if not rows:
        return
    connection.exec_driver_sql(
        _INSERT,
        [
            (*id, kind, state, reason, opening_id, pattern_id, *(of or NOWHERE))
            for id, _, kind, state, reason, opening_id, pattern_id, of in rows
        ],
    )
    amounts = Counter((row.source, str(row.state), row.reason) for row in rows)
    amounts.update((row.source, totals.KINDS[row.kind], "") for row in rows)
    totals.add(connection, amounts)


def move(
    connection: Connection,
    id: EventId,
    from_state: Outcome | str,
    settlement: Settlement,
    pattern_id: int | None = None,
) -> bool:
    """Move one event from `from_state` to the settlement's outcome; False when it is not in that state."""
    known = get(connection, id)
    if known is None:
        return False
    row = known._replace(
        state=settlement.outcome,
        reason=settlement.reason,
        opening_id=settlement.alarm_id,
        pattern_id=pattern_id,
        of=settlement.of,
    )
    return bool(move_all(connection, from_state, [row]))


def move_all(connection: Connection, from_state: Outcome | str, rows: Sequence[EventRow]) -> set[EventId]:
    """Move those of `rows` that are in `from_state` (compare and set); the ids of those that were.

    `kind` is not changed, and a `pattern_id` of None leaves the one that is known.
    """
    latest = {row.id: row for row in rows}
    reasons = _reasons(connection, list(latest), from_state)
    going = [row for id, row in latest.items() if id in reasons]
    if not going:
        return set()
    connection.exec_driver_sql(
        _MOVE,
        [
            (row.state, row.reason, row.opening_id, row.pattern_id, *(row.of or NOWHERE), *row.id)
            for row in going
        ],
    )
    amounts = Counter((row.source, str(row.state), row.reason) for row in going)
    amounts.subtract((row.source, str(from_state), reasons[row.id]) for row in going)
    totals.add(connection, amounts)
    return {row.id for row in going}


def of_message(connection: Connection, seq: int) -> list[EventRow]:
    """The events of one message, by index; none when it is not decoded yet."""
    query = (
        select(events, journal.c.source)
        .join(journal, journal.c.seq == events.c.seq)
        .where(events.c.seq == seq)
        .order_by(events.c.idx)
    )
    return [_event_row(row) for row in connection.execute(query)]


def standing(connection: Connection, ids: Sequence[EventId], state: Outcome | str) -> set[EventId]:
    """Those of `ids` that are in `state` now: what the writer may still move."""
    return set(_reasons(connection, ids, state)) if ids else set()


def get(connection: Connection, id: EventId) -> EventRow | None:
    """One event as it stands; None when it is not decoded yet, or removed by retention."""
    query = (
        select(events, journal.c.source)
        .join(journal, journal.c.seq == events.c.seq)
        .where(events.c.seq == id.seq, events.c.idx == id.index)
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else _event_row(row)


def _event_row(row: Row[Any]) -> EventRow:
    return EventRow(
        EventId(row.seq, row.idx),
        row.source,
        Kind(row.kind),
        row.state,
        row.reason,
        row.opening_id,
        row.pattern_id,
        None if row.of_seq is None else EventId(row.of_seq, row.of_idx),
    )


def _reasons(connection: Connection, ids: Sequence[EventId], state: str) -> dict[EventId, str]:
    """The reasons of those of `ids` that are in `state`."""
    found = connection.exec_driver_sql(_REASONS, (json.dumps(ids), state))
    return {EventId(seq, index): reason for seq, index, reason in found}


__all__ = ["OPENED", "UNREAD", "Counts", "EventRow", "Kind", "counts", "get", "move", "move_all", "settle"]
