"""A ticket system that answers as told, remembers every call, and notices two at once under one key."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from connectors.base import Check, Receipt
from schemas.errors import SinkError, SinkUnknown
from schemas.ticket import Ticket

OK = "ok"
LOST_AFTER = "created, answer lost"
LOST_BEFORE = "not created, answer lost"


class ScriptedSink:
    """Answers of `create` come from `script`, then all is well. `tickets` are what the system now has."""

    name = "desk"

    def __init__(
        self, script: Sequence[SinkError | str] = (), *, idempotent: bool = False, searchable: bool = False
    ) -> None:
        self.script = list(script)
        self.idempotent = idempotent
        self.searchable = searchable
        self.calls: list[Ticket] = []
        self.searches: list[str] = []
        self.tickets: Counter[str] = Counter()
        self.bodies: dict[str, Ticket] = {}
        self._busy: set[str] = set()

    async def create(self, ticket: Ticket) -> Receipt:
        assert ticket.key not in self._busy, "two requests at once under one key"
        self._busy.add(ticket.key)
        await asyncio.sleep(0)
        self._busy.discard(ticket.key)
        self.calls.append(ticket)
        answer = self.script.pop(0) if self.script else OK
        if isinstance(answer, SinkError):
            raise answer
        if answer != LOST_BEFORE:
            self.keep(ticket)
        if answer != OK:
            raise SinkUnknown(answer)
        return Receipt(f"T-{ticket.key}")

    async def find(self, key: str) -> Receipt | None:
        self.searches.append(key)
        await asyncio.sleep(0)
        return Receipt(f"T-{key}", existed=True) if self.tickets[key] else None

    async def check(self) -> Check:
        return Check(True, "scripted")

    async def close(self) -> None:
        """Nothing to do."""

    def keep(self, ticket: Ticket) -> None:
        """Make the ticket, unless its key has one and keys count here."""
        if self.idempotent and self.tickets[ticket.key]:
            assert self.bodies[ticket.key] == ticket, "one key, two contents"
            return
        self.tickets[ticket.key] += 1
        self.bodies[ticket.key] = ticket
