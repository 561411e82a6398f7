"""Digests of recent lines (content and event time), by which a redelivered one is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import Connection

from schemas.events import EventId

DIGEST_BYTES = 16

_ADD = (
    "INSERT INTO seen (digest, seq, idx, received_at_us) VALUES (?, ?, ?, ?) ON CONFLICT (digest) DO UPDATE "
    "SET seq = excluded.seq, idx = excluded.idx, received_at_us = excluded.received_at_us"
)
_FIND = "SELECT digest, seq, idx FROM seen WHERE digest IN ({}) AND received_at_us >= ?"
# SQLite allows 32 766 bound values in a statement (3.32 and later).
_DIGESTS_MAX = 1000


class SeenRow(NamedTuple):
    """One line's digest, of DIGEST_BYTES, and the event that carried it first."""

    digest: bytes
    id: EventId
    received_at_us: int


def find(connection: Connection, digests: Iterable[bytes], since_us: int) -> dict[bytes, EventId]:
    """The originals of those digests that were seen at or after `since_us`."""
    wanted = list(dict.fromkeys(digests))
    found: dict[bytes, EventId] = {}
    for start in range(0, len(wanted), _DIGESTS_MAX):
        some = wanted[start : start + _DIGESTS_MAX]
        statement = _FIND.format(", ".join("?" * len(some)))
        rows = connection.exec_driver_sql(statement, (*some, since_us))
        found |= {digest: EventId(seq, index) for digest, seq, index in rows}
    return found


def add(connection: Connection, rows: Sequence[SeenRow]) -> None:
    """Remember originals. A digest that is known already (outside its window) now points at the new one."""
    if rows:
        connection.exec_driver_sql(_ADD, [(row.digest, *row.id, row.received_at_us) for row in rows])
