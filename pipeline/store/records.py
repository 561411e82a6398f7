"""Multi-line records that are still open, so that a restart goes on with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.sqlite import insert

from pipeline.store.tables import open_records
from schemas.events import EventId


@dataclass(frozen=True, slots=True)
class OpenRecord:
    """The record begun by event `id`; `text` is all of it so far, in `lines` lines."""

    source: str
    topic: str
    id: EventId
    text: str
    lines: int
    touched_at_us: int


def load(connection: Connection, source: str | None = None) -> list[OpenRecord]:
    """Every open record, or those of one source."""
    query = select(open_records).order_by(open_records.c.seq, open_records.c.idx)
    if source is not None:
        query = query.where(open_records.c.source == source)
    return [
        OpenRecord(row.source, row.topic, EventId(row.seq, row.idx), row.text, row.lines, row.touched_at_us)
        for row in connection.execute(query)
    ]


def put(connection: Connection, rows: Sequence[OpenRecord]) -> None:
    """Open records, or go on with them: there is one a source and topic."""
    if not rows:
        return
    statement = insert(open_records)
    changed = {name: statement.excluded[name] for name in ("seq", "idx", "text", "lines", "touched_at_us")}
    connection.execute(
        statement.on_conflict_do_update(index_elements=["source", "topic"], set_=changed),
        [
            {
                "source": row.source,
                "topic": row.topic,
                "seq": row.id.seq,
                "idx": row.id.index,
                "text": row.text,
                "lines": row.lines,
                "touched_at_us": row.touched_at_us,
            }
            for row in rows
        ],
    )


def close(connection: Connection, source: str, topic: str) -> None:
    """The record is complete, and its event settled in this transaction."""
    connection.execute(
        delete(open_records).where(open_records.c.source == source, open_records.c.topic == topic)
    )
