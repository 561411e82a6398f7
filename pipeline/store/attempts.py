"""Lines in the model's hands, written down before each call: what a killed process was reading is found
afterwards.

After a death every line of the batch is suspect and is tried alone; a line that was alone when the process
died is blamed for it (`deaths`), and the innocent are cleared as soon as their own attempt comes back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, delete, select, update

from pipeline.store.tables import attempts
from schemas.events import EventId

_BEGIN = (
    "INSERT INTO attempts (seq, idx, batch, deaths) VALUES (?, ?, ?, 0) "
    "ON CONFLICT (seq, idx) DO UPDATE SET batch = excluded.batch"
)


@dataclass(frozen=True, slots=True)
class Suspect:
    """A line that was being read when the process died; `deaths` counts those in which it was alone."""

    id: EventId
    deaths: int


def begin(connection: Connection, batch: str, ids: Sequence[EventId]) -> None:
    """About to read `ids` in one call named `batch` (a fresh name, not empty)."""
    if ids:
        connection.exec_driver_sql(_BEGIN, [(*id, batch) for id in ids])


def finish(connection: Connection, batch: str) -> None:
    """The call came back: its lines are cleared of every suspicion."""
    connection.execute(delete(attempts).where(attempts.c.batch == batch))


def clear(connection: Connection, ids: Sequence[EventId]) -> None:
    """These lines will not be tried again (they went to review)."""
    if ids:
        connection.exec_driver_sql(
            "DELETE FROM attempts WHERE seq = ? AND idx = ?", [tuple(id) for id in ids]
        )


def after_death(connection: Connection, blame: bool = True) -> list[Suspect]:
    """At start: the lines that were in the model's hands when the process ended. Try each alone.

    A batch of one is blamed, unless `blame` is false (the death was from outside: SIGKILL, out of memory).
    """
    rows = connection.execute(select(attempts)).all()
    sizes = Counter(row.batch for row in rows)
    alone = [row.batch for row in rows if row.batch and sizes[row.batch] == 1] if blame else []
    for batch in alone:
        connection.execute(
            update(attempts).where(attempts.c.batch == batch).values(deaths=attempts.c.deaths + 1)
        )
    connection.execute(update(attempts).values(batch=""))
    query = select(attempts.c.seq, attempts.c.idx, attempts.c.deaths).order_by(attempts.c.seq, attempts.c.idx)
    return [Suspect(EventId(seq, index), deaths) for seq, index, deaths in connection.execute(query)]
