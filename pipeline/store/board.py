"""The local ticket board: tickets kept here, for plants without a ticket system. One row a key."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, func, select
from sqlalchemy.dialects.sqlite import insert

from pipeline.store.outbox import dump_ticket
from pipeline.store.tables import board
from schemas.ticket import Ticket


def post(connection: Connection, ticket: Ticket, now_us: int) -> str:
    """Put a ticket on the board and give its number. The same key again gives the same number."""
    connection.execute(
        insert(board)
        .values(key=ticket.key, ticket=dump_ticket(ticket), created_at_us=now_us)
        .on_conflict_do_nothing(index_elements=["key"])
    )
    number = connection.execute(select(board.c.id).where(board.c.key == ticket.key)).scalar_one()
    return str(number)


def count(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(board)).scalar_one()


def recent(connection: Connection, limit: int) -> list[dict[str, Any]]:
    """The newest tickets, newest first: number, time and the ticket as JSON-ready object."""
    query = select(board).order_by(board.c.id.desc()).limit(limit)
    return [
        {"number": row.id, "created_at_us": row.created_at_us, **row.ticket}
        for row in connection.execute(query)
    ]
