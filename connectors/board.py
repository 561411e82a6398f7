"""The local ticket board: tickets kept in andon's own store, for plants (and demos) that have no other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal

from pydantic import Field

from connectors.base import Check, Receipt, Strict
from schemas.ticket import Ticket

# Writes a ticket on the board under its key and returns its reference; the same reference when it is there
# already.
Record = Callable[[Ticket], Awaitable[str]]


class BoardConfig(Strict):
    type: Literal["board"] = Field(description="the local ticket board, in andon's own store")

    def build(self, name: str, *, record: Record, base: Path = Path()) -> BoardSink:
        """The sink called `name`, on the board that `record` writes to."""
        return BoardSink(name, record)


class BoardSink:
    """The board as a sink: a ticket's key is unique there, so that writing it twice leaves one."""

    idempotent = True
    searchable = False

    def __init__(self, name: str, record: Record) -> None:
        self.name = name
        self._record = record

    async def create(self, ticket: Ticket) -> Receipt:
        return Receipt(await self._record(ticket))

    async def find(self, key: str) -> Receipt | None:
        """None: nothing is ever lost on the way to the board."""
        return None

    async def check(self) -> Check:
        return Check(True, "the local ticket board")

    async def close(self) -> None:
        """Nothing to do: the store is not ours to close."""
