"""Tickets on their way: the intent is written with the events it settles, each attempt before it is made.

States: `queued` (to be sent at next_try_at), `sending` (an attempt is under way, or the process died in it),
`lost` (an answer was lost: to be looked up at the sink before it is sent again), `doubtful` (the sink said
yes without a reference: to be looked up, and never sent again by itself), `sent`, `dead` (refused for good,
a person was asked), `unknown` (nobody knows and the sink cannot tell: a person has to look), `cancelled`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, or_, select, update
from sqlalchemy.dialects.sqlite import insert

from pipeline.store.tables import outbox
from schemas.extraction import Severity
from schemas.ticket import Ticket

# The longest wait between two tries that we choose ourselves.
RETRY_MAX_S = 600.0
# The longest that a server may ask for. A row that claims to wait longer has seen the clock go back: it is
# due.
RETRY_AFTER_MAX_S = 6 * 3600.0


class OutboxState(StrEnum):
    QUEUED = "queued"
    SENDING = "sending"
    LOST = "lost"
    DOUBTFUL = "doubtful"
    SENT = "sent"
    DEAD = "dead"
    UNKNOWN = "unknown"
    CANCELLED = "cancelled"


# States in which a row is worked on once its next try is due.
WAITING = (OutboxState.QUEUED, OutboxState.LOST, OutboxState.DOUBTFUL)


@dataclass(frozen=True, slots=True)
class Intent:
    """A ticket to be created at a sink, under `ticket.key`."""

    sink: str
    ticket: Ticket
    opening_id: int | None = None


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """An intent as stored."""

    id: int
    intent: Intent
    state: OutboxState
    attempts: int
    next_try_at_us: int
    created_at_us: int
    sent_at_us: int | None = None
    reference: str | None = None
    error: str | None = None


def dump_ticket(ticket: Ticket) -> dict[str, Any]:
    """JSON-ready."""
    return dataclasses.asdict(ticket)


def load_ticket(row: dict[str, Any]) -> Ticket:
    """The ticket `dump_ticket` wrote; keys of another version are left out."""
    known = {field.name for field in dataclasses.fields(Ticket)}
    values = {name: value for name, value in row.items() if name in known}
    return Ticket(**{**values, "severity": Severity(values["severity"])})


def put(connection: Connection, intents: Sequence[Intent], now_us: int) -> None:
    """Write intents. One that is there already (same key and sink) stays as it is."""
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
                "ticket": dump_ticket(intent.ticket),
                "state": OutboxState.QUEUED,
                "attempts": 0,
                "next_try_at_us": now_us,
                "created_at_us": now_us,
            }
            for intent in intents
        ],
    )


def due(connection: Connection, sink: str, now_us: int, limit: int) -> list[OutboxRow]:
    """At most `limit` rows to work on now, oldest first."""
    query = (
        select(outbox)
        .where(
            outbox.c.sink == sink,
            outbox.c.state.in_(WAITING),
            or_(
                outbox.c.next_try_at_us <= now_us,
                outbox.c.next_try_at_us > now_us + int(RETRY_AFTER_MAX_S * 1e6),
            ),
        )
        .order_by(outbox.c.id)
        .limit(limit)
    )
    return [_row(row) for row in connection.execute(query)]


def begin(connection: Connection, ids: Sequence[int]) -> None:
    """Mark queued rows as being sent, before the request goes out: after a crash their answers count as
    lost."""
    if not ids:
        return
    connection.execute(
        update(outbox)
        .where(outbox.c.id == bindparam("row"), outbox.c.state == OutboxState.QUEUED)
        .values(state=OutboxState.SENDING, attempts=outbox.c.attempts + 1),
        [{"row": row_id} for row_id in ids],
    )


def finish(
    connection: Connection,
    row_id: int,
    state: OutboxState,
    *,
    at_us: int,
    reference: str | None = None,
    error: str | None = None,
) -> None:
    """Record what became of an attempt. `at_us` is the next try for rows that wait for one, else the time
    it ended."""
    values: dict[str, Any] = {"state": state, "error": error}
    if state in WAITING:
        values["next_try_at_us"] = at_us
    if state is OutboxState.SENT:
        values |= {"sent_at_us": at_us, "reference": reference}
    connection.execute(update(outbox).where(outbox.c.id == row_id).values(**values))


def rewrite(connection: Connection, tickets: Sequence[tuple[int, Ticket]]) -> None:
    """Replace the tickets of rows that no attempt was made for yet. What went out once never changes: the
    other side may hold the key to the first request's content."""
    if not tickets:
        return
    connection.execute(
        update(outbox)
        .where(outbox.c.id == bindparam("row"), outbox.c.attempts == 0)
        .values(ticket=bindparam("new", type_=outbox.c.ticket.type)),
        [{"row": row_id, "new": dump_ticket(ticket)} for row_id, ticket in tickets],
    )


def of_opening(connection: Connection, opening_id: int) -> list[OutboxRow]:
    """The tickets of one alarm opening."""
    query = select(outbox).where(outbox.c.opening_id == opening_id).order_by(outbox.c.id)
    return [_row(row) for row in connection.execute(query)]


def interrupted(connection: Connection, sink: str) -> list[OutboxRow]:
    """Rows whose attempt was under way when the process ended."""
    query = select(outbox).where(outbox.c.sink == sink, outbox.c.state == OutboxState.SENDING)
    return [_row(row) for row in connection.execute(query.order_by(outbox.c.id))]


def cancel(connection: Connection, key: str) -> bool:
    """Take an unsent intent back; False when it is (or may be) sent already."""
    done = connection.execute(
        update(outbox)
        .where(outbox.c.key == key, outbox.c.state == OutboxState.QUEUED)
        .values(state=OutboxState.CANCELLED)
    )
    return bool(done.rowcount)


def requeue(connection: Connection, key: str, sink: str, now_us: int) -> bool:
    """Send again what was given up, because a person said so; False when it was not given up."""
    done = connection.execute(
        update(outbox)
        .where(
            outbox.c.key == key,
            outbox.c.sink == sink,
            outbox.c.state.in_((OutboxState.DEAD, OutboxState.UNKNOWN)),
        )
        .values(state=OutboxState.QUEUED, next_try_at_us=now_us, error=None)
    )
    return bool(done.rowcount)


def counts(connection: Connection) -> dict[str, int]:
    """Rows by state."""
    query = select(outbox.c.state, func.count()).group_by(outbox.c.state)
    return {state: n for state, n in connection.execute(query)}


def recent(connection: Connection, limit: int) -> list[OutboxRow]:
    """The newest rows, newest first."""
    return [_row(row) for row in connection.execute(select(outbox).order_by(outbox.c.id.desc()).limit(limit))]


def _row(row: Row[Any]) -> OutboxRow:
    return OutboxRow(
        id=row.id,
        intent=Intent(row.sink, load_ticket(row.ticket), row.opening_id),
        state=OutboxState(row.state),
        attempts=row.attempts,
        next_try_at_us=row.next_try_at_us,
        created_at_us=row.created_at_us,
        sent_at_us=row.sent_at_us,
        reference=row.reference,
        error=row.error,
    )
