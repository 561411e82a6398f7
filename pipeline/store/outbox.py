"""The outbox: tickets to be created, written in the transaction that settles their events.

A row is queued, then sending (marked before the call goes out), then sent, dead or unknown. One row a key and
sink: a ticket's intent is written once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from sqlalchemy import Connection, Row, func, select, update
from sqlalchemy.dialects.sqlite import insert

from pipeline.store.tables import outbox
from schemas.extraction import Severity
from schemas.ticket import Ticket

QUEUED, SENDING, SENT, DEAD, UNKNOWN, CANCELLED = (
    "queued",
    "sending",
    "sent",
    "dead",
    "unknown",
    "cancelled",
)


@dataclass(frozen=True, slots=True)
class Intent:
    """A ticket to be created at a sink, not yet stored."""

    ticket: Ticket
    sink: str
    opening_id: int | None
    created_at_us: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A ticket in the outbox."""

    id: int
    ticket: Ticket
    sink: str
    opening_id: int | None
    state: str
    attempts: int
    next_try_at_us: int
    created_at_us: int
    sent_at_us: int | None = None
    reference: str | None = None
    error: str | None = None


def to_json(ticket: Ticket) -> dict[str, Any]:
    """A ticket as JSON; `from_json` gives the equal ticket back."""
    return {**asdict(ticket), "severity": str(ticket.severity)}


def from_json(row: Mapping[str, Any]) -> Ticket:
    """The ticket that `to_json` wrote. Unknown keys are left out: an older andon reads a newer store."""
    known = {item.name for item in fields(Ticket)}
    values = {name: value for name, value in row.items() if name in known}
    return Ticket(**{**values, "severity": Severity(values["severity"])})


def put(connection: Connection, intents: Sequence[Intent]) -> None:
    """Queue tickets, due at once. A key that a sink has already stays as it is."""
    if not intents:
        return
    statement = insert(outbox).on_conflict_do_nothing(index_elements=["key", "sink"])
    connection.execute(
        statement,
        [
            {
                "key": intent.ticket.key,
                "sink": intent.sink,
                "opening_id": intent.opening_id,
                "ticket": to_json(intent.ticket),
                "state": QUEUED,
                "attempts": 0,
                "next_try_at_us": intent.created_at_us,
                "created_at_us": intent.created_at_us,
            }
            for intent in intents
        ],
    )


def due(connection: Connection, now_us: int, limit: int, without: Collection[str] = ()) -> list[Entry]:
    """Queued tickets whose time has come, the oldest time first; none of the sinks in `without`."""
    query = (
        select(outbox)
        .where(
            outbox.c.state == QUEUED, outbox.c.next_try_at_us <= now_us, outbox.c.sink.not_in(list(without))
        )
        .order_by(outbox.c.next_try_at_us, outbox.c.id)
        .limit(limit)
    )
    return [_entry(row) for row in connection.execute(query)]


def next_due_us(connection: Connection) -> int | None:
    """When the next queued ticket is due; None when nothing is queued."""
    query = select(func.min(outbox.c.next_try_at_us)).where(outbox.c.state == QUEUED)
    due_us: int | None = connection.execute(query).scalar_one()
    return due_us


def start(connection: Connection, entry: Entry, ticket: Ticket) -> bool:
    """Mark a queued entry as sending, with the ticket as it goes out; False when it is queued no more."""
    done = connection.execute(
        update(outbox)
        .where(outbox.c.id == entry.id, outbox.c.state == QUEUED)
        .values(state=SENDING, attempts=outbox.c.attempts + 1, ticket=to_json(ticket))
    )
    return done.rowcount == 1


def sent(connection: Connection, entry_id: int, reference: str, at_us: int) -> None:
    _finish(connection, entry_id, state=SENT, reference=reference, sent_at_us=at_us, error=None)


def retry(connection: Connection, entry_id: int, at_us: int, error: str) -> None:
    """Back into the queue, due at `at_us`."""
    _finish(connection, entry_id, state=QUEUED, next_try_at_us=at_us, error=error)


def give_up(connection: Connection, entry_id: int, state: str, error: str) -> None:
    """`dead` (refused for good) or `unknown` (may exist; needs a look)."""
    _finish(connection, entry_id, state=state, error=error)


def cancel(connection: Connection, key: str) -> int:
    """Cancel what is not on its way yet; how many rows."""
    statement = update(outbox).where(outbox.c.key == key, outbox.c.state == QUEUED).values(state=CANCELLED)
    return connection.execute(statement).rowcount


def in_state(connection: Connection, state: str, limit: int) -> list[Entry]:
    query = select(outbox).where(outbox.c.state == state).order_by(outbox.c.id).limit(limit)
    return [_entry(row) for row in connection.execute(query)]


def of_opening(connection: Connection, opening_id: int) -> list[Entry]:
    query = select(outbox).where(outbox.c.opening_id == opening_id).order_by(outbox.c.id)
    return [_entry(row) for row in connection.execute(query)]


def get(connection: Connection, entry_id: int) -> Entry | None:
    row = connection.execute(select(outbox).where(outbox.c.id == entry_id)).one_or_none()
    return None if row is None else _entry(row)


def depth(connection: Connection) -> dict[str, int]:
    """How many entries are in each state."""
    query = select(outbox.c.state, func.count()).group_by(outbox.c.state)
    return {state: n for state, n in connection.execute(query)}


def _finish(connection: Connection, entry_id: int, **values: Any) -> None:
    connection.execute(
        update(outbox).where(outbox.c.id == entry_id, outbox.c.state == SENDING).values(**values)
    )


def _entry(row: Row[Any]) -> Entry:
    return Entry(
        row.id,
        from_json(row.ticket),
        row.sink,
        row.opening_id,
        row.state,
        row.attempts,
        row.next_try_at_us,
        row.created_at_us,
        row.sent_at_us,
        row.reference,
        row.error,
    )
