"""The local ticket board: a ticket a key, kept in the store itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, func, select
from sqlalchemy.dialects.sqlite import insert

from pipeline.store.outbox import from_json, to_json
from pipeline.store.tables import board
from schemas.ticket import Ticket


@dataclass(frozen=True, slots=True)
class Card:
    """One ticket on the board; `reference` is what people call it by."""

    number: int
    ticket: Ticket
    created_at_us: int

    @property
    def reference(self) -> str:
        return f"board-{self.number}"


def record(connection: Connection, ticket: Ticket, now_us: int) -> Card:
    """Put a ticket on the board; the card that is there already when its key is."""
    connection.execute(
        insert(board)
        .values(key=ticket.key, ticket=to_json(ticket), created_at_us=now_us)
        .on_conflict_do_nothing(index_elements=["key"])
    )
    return _card(connection.execute(select(board).where(board.c.key == ticket.key)).one())


def find(connection: Connection, key: str) -> Card | None:
    row = connection.execute(select(board).where(board.c.key == key)).one_or_none()
    return None if row is None else _card(row)


def cards(connection: Connection, limit: int, before: int | None = None) -> list[Card]:
    """The newest cards first; `before` is the number to go on from."""
    query = select(board).order_by(board.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(board.c.id < before)
    return [_card(row) for row in connection.execute(query)]


def count(connection: Connection) -> int:
    return int(connection.execute(select(func.count()).select_from(board)).scalar_one())


def _card(row: Row[Any]) -> Card:
    return Card(row.id, from_json(row.ticket), row.created_at_us)
