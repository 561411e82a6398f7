"""The journal: every accepted payload, raw, before anything is parsed. What is here may be acknowledged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy.dialects.sqlite import insert

from connectors.base import Delivery
from pipeline.store import meta, space, totals
from pipeline.store.codec import from_us
from pipeline.store.tables import bind_text, read_text, sources
from schemas.events import Message

RETAIN, DUPLICATE = 1, 2  # bits of journal.flags

_CURSOR = "cursor"

# Bound by hand: these run for every message, and Core's executemany costs 4 µs more a row.
_COLUMNS = "seq, source, topic, payload, received_at_us, qos, flags, mid, connection"
_INSERT = f"INSERT INTO journal ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_AFTER = f"SELECT {_COLUMNS} FROM journal WHERE seq > ? ORDER BY seq LIMIT ?"
# `qos > 0` written out is what lets SQLite use the partial index.
_TAIL = (
    f"SELECT {_COLUMNS} FROM journal WHERE qos > 0 AND source = ? AND connection = ? "
    "ORDER BY seq DESC LIMIT ?"
)
_LAST = "SELECT seq FROM sqlite_sequence WHERE name = 'journal'"
_NOTE_CONNECTION = (
    "INSERT INTO sources (source, connection, position) VALUES (?, ?, '{}') ON CONFLICT (source) "
    "DO UPDATE SET connection = excluded.connection WHERE connection <> excluded.connection"
)


def append(
    connection: Connection,
    source: str,
    deliveries: Sequence[Delivery],
    position: Mapping[str, Any] | None = None,
) -> range:
    """Accept `deliveries` in order; the range of seqs they got. `position` is what a file source resumes
    from.

    Raises StoreUnavailable below the floor of free disk. Seqs are dense and never given twice: AUTOINCREMENT
    remembers the last one in the same transaction, and there is one writer.
    """
    space.require(connection)
    if position is not None:
        set_position(connection, source, position)
    last = last_seq(connection)
    if not deliveries:
        return range(last + 1, last + 1)
    seqs = range(last + 1, last + 1 + len(deliveries))
    connection.exec_driver_sql(
        _INSERT,
        [
            (
                seq,
                source,
                bind_text(d.topic),
                d.payload,
                d.received_at_us,
                d.qos,
                (RETAIN if d.retain else 0) | (DUPLICATE if d.duplicate else 0),
                d.position,
                d.connection,
            )
            for seq, d in zip(seqs, deliveries, strict=True)
        ],
    )
    connection.exec_driver_sql(_NOTE_CONNECTION, (source, deliveries[-1].connection))
    size = sum(len(d.payload) for d in deliveries)
    totals.add(connection, {(source, totals.MESSAGES, ""): len(deliveries), (source, totals.BYTES, ""): size})
    return seqs


def last_seq(connection: Connection) -> int:
    """The last seq given out; 0 before the first."""
    return int(connection.exec_driver_sql(_LAST).scalar_one_or_none() or 0)


def after(connection: Connection, seq: int, limit: int) -> list[Message]:
    """At most `limit` messages that follow `seq`, in order: a range of the primary key."""
    return _messages(connection.exec_driver_sql(_AFTER, (seq, limit)))


def get(connection: Connection, seq: int) -> Message | None:
    """One message; None when retention has removed it."""
    found = after(connection, seq - 1, 1)
    return found[0] if found and found[0].seq == seq else None


def tail(connection: Connection, source: str, over: str, limit: int) -> list[Message]:
    """The last `limit` QoS 1 messages of the connection `over`, in order: it may not have confirmed them."""
    return _messages(connection.exec_driver_sql(_TAIL, (source, over, limit)))[::-1]


def cursor(connection: Connection) -> int:
    """The last message whose events are all written down (as outcome or unread); 0 before the first."""
    return int(meta.get(connection, _CURSOR) or 0)


def set_cursor(connection: Connection, seq: int) -> None:
    meta.put(connection, _CURSOR, str(seq))


def last_connection(connection: Connection, source: str) -> str:
    """Name of the connection over which the source's last message came; "" when there was none."""
    query = select(sources.c.connection).where(sources.c.source == source)
    return connection.execute(query).scalar_one_or_none() or ""


def position(connection: Connection, source: str) -> dict[str, Any]:
    """Where a file source goes on reading; empty when it was never read."""
    query = select(sources.c.position).where(sources.c.source == source)
    return dict(connection.execute(query).scalar_one_or_none() or {})


def set_position(connection: Connection, source: str, position: Mapping[str, Any]) -> None:
    _set(connection, source, position=dict(position))


def encoding(connection: Connection, source: str) -> str | None:
    """The text encoding found for this source, if it was."""
    query = select(sources.c.encoding).where(sources.c.source == source)
    return connection.execute(query).scalar_one_or_none()


def set_encoding(connection: Connection, source: str, encoding: str | None) -> None:
    _set(connection, source, encoding=encoding)


def _set(connection: Connection, source: str, **values: Any) -> None:
    statement = insert(sources).values(source=source, **values)
    connection.execute(statement.on_conflict_do_update(index_elements=["source"], set_=values))


def _messages(rows: Iterable[Sequence[Any]]) -> list[Message]:
    return [
        Message(
            seq,
            source,
            read_text(topic),
            payload,
            from_us(received_at_us),
            qos,
            bool(flags & RETAIN),
            bool(flags & DUPLICATE),
            mid,
            over,
        )
        for seq, source, topic, payload, received_at_us, qos, flags, mid, over in rows
    ]
