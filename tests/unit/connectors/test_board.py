"""The board writes through what it was given, and says that it deduplicates by key."""

from __future__ import annotations

from connectors.base import Receipt
from connectors.board import BoardConfig
from schemas.extraction import Severity
from schemas.ticket import Ticket


async def test_the_board_records_a_ticket() -> None:
    written: list[Ticket] = []

    async def record(ticket: Ticket) -> str:
        written.append(ticket)
        return "board-1"

    ticket = Ticket("k", "t", "b", Severity.ERROR, "a", "c")
    sink = BoardConfig(type="board").build("board", record=record)
    assert await sink.create(ticket) == Receipt("board-1")
    assert written == [ticket]
    assert (sink.idempotent, sink.searchable) == (True, False)
    assert await sink.find("k") is None
    assert (await sink.check()).ok
    await sink.close()
