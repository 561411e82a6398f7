"""Lines of patterns that nobody has read yet, waiting by group: one reading serves the whole group.

The event's state is `unread` in events for exactly as long as its row is here: `put` goes with
`events.settle`, `remove` with `events.move_all`, each pair in one transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select

from pipeline.store.codec import dump_event, load_event
from pipeline.store.tables import unread
from schemas.events import EventId, LogLine


@dataclass(frozen=True, slots=True)
class UnreadRow:
    """One waiting line. `rank` is how urgent it looks, 0 (routine) to 3 (critical)."""

    line: LogLine
    profile: str
    signature: str
    variant: str
    rank: int
    queued_at_us: int


@dataclass(frozen=True, slots=True)
class Group:
    """Lines that one reading answers. `rank` is that of the most urgent one."""

    profile: str
    signature: str
    variant: str
    n: int
    rank: int
    oldest_us: int


def put(connection: Connection, rows: Sequence[UnreadRow]) -> None:
    if rows:
        connection.execute(insert(unread), [_values(row) for row in rows])


def groups(connection: Connection, limit: int) -> list[Group]:
    """The groups that wait, most urgent first, then largest, then oldest."""
    rank, n, oldest = func.max(unread.c.rank), func.count(), func.min(unread.c.queued_at_us)
    query = (
        select(unread.c.profile, unread.c.signature, unread.c.variant, n, rank, oldest)
        .group_by(unread.c.profile, unread.c.signature, unread.c.variant)
        .order_by(rank.desc(), n.desc(), oldest)
        .limit(limit)
    )
    return [Group(*row) for row in connection.execute(query)]


def take(connection: Connection, group: Group, limit: int) -> list[tuple[EventId, LogLine]]:
    """At most `limit` lines of a group, in order of arrival. They stay until `remove`."""
    query = (
        select(unread)
        .where(
            unread.c.profile == group.profile,
            unread.c.signature == group.signature,
            unread.c.variant == group.variant,
        )
        .order_by(unread.c.seq, unread.c.idx)
        .limit(limit)
    )
    return [(row.line.id, row.line) for row in map(_row, connection.execute(query))]


def overdue(connection: Connection, before_us: int, min_rank: int, limit: int) -> list[UnreadRow]:
    """Lines of at least `min_rank` queued before `before_us`, oldest first."""
    query = (
        select(unread)
        .where(unread.c.rank >= min_rank, unread.c.queued_at_us < before_us)
        .order_by(unread.c.queued_at_us, unread.c.seq, unread.c.idx)
        .limit(limit)
    )
    return [_row(row) for row in connection.execute(query)]


def remove(connection: Connection, ids: Sequence[EventId]) -> None:
    if ids:
        connection.exec_driver_sql("DELETE FROM unread WHERE seq = ? AND idx = ?", [tuple(id) for id in ids])


def size(connection: Connection) -> int:
    """How many lines wait."""
    return connection.execute(select(func.count()).select_from(unread)).scalar_one()


def oldest_us(connection: Connection) -> int | None:
    """When the line that waits longest was queued; None when none waits."""
    oldest: int | None = connection.execute(select(func.min(unread.c.queued_at_us))).scalar_one()
    return oldest


def _values(row: UnreadRow) -> dict[str, Any]:
    return {
        "seq": row.line.id.seq,
        "idx": row.line.id.index,
        "profile": row.profile,
        "signature": row.signature,
        "variant": row.variant,
        "rank": row.rank,
        "event": dump_event(row.line),
        "queued_at_us": row.queued_at_us,
    }


def _row(row: Row[Any]) -> UnreadRow:
    line = load_event(EventId(row.seq, row.idx), row.event)
    assert isinstance(line, LogLine), "only lines wait to be read"
    return UnreadRow(line, row.profile, row.signature, row.variant, row.rank, row.queued_at_us)
