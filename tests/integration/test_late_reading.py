"""A line that is read after its return to normal has passed opens an alarm that is cleared already.

The stages of a site on a real store. The reader is a slow one: it holds a fault's line in its hands, in the
model's own thread, while the fast lane goes on and settles what comes behind it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from consumer import PATIENCE_S, until
from rig import SITE, Rig, ScriptedReader, verdict
from scripted_sink import ScriptedSink

from pipeline.stages.deliver import Deliver
from schemas.extraction import Verdict
from schemas.ticket import Outcome, Ticket

RULES = """
rules:
  - {id: back, when: {text: "jam cleared"}, clears: jam}
  - {id: jam, when: {text: "belt jammed"}, severity: error}
"""
FAULT = "belt jammed at tray %d"
CLEAR = "jam cleared after %d s"


class SlowReader(ScriptedReader):
    """Reads clears at once; takes a fault into its hands and waits there until `go` is set."""

    def __init__(self) -> None:
        super().__init__(self._says)
        self.go = threading.Event()
        self.holds = threading.Event()

    def _says(self, line: str) -> Verdict:
        if "jammed" not in line:
            return verdict(line, "info")
        self.holds.set()
        assert self.go.wait(PATIENCE_S), "nobody let the reader go on"
        return verdict(line, "error")


class Hall(Rig):
    """A rig with a slow reader and a ticket system."""

    def __init__(self, folder: Path) -> None:
        self.slow_reader = SlowReader()
        super().__init__(folder, SITE + RULES, self.slow_reader)
        self.desk = ScriptedSink(idempotent=True)
        self.desk.name = "board"

    async def deliver(self) -> list[Ticket]:
        """Send what is due; the tickets that the system has now, in order."""
        while await Deliver(self.desk, self.store, self.tickets_put, self.metrics).step():
            pass
        return list(self.desk.bodies.values())

    def openings(self) -> list[tuple[int, int | None, int]]:
        """Position of opening and return, and the occurrences."""
        query = "SELECT opened_seq, cleared_seq, occurrences FROM openings ORDER BY opened_seq"
        with self.store.read() as connection:
            return [tuple(row) for row in connection.exec_driver_sql(query)]


@pytest.fixture
async def hall(tmp_path: Path) -> AsyncIterator[Hall]:
    hall = Hall(tmp_path)
    async with hall:
        await hall.tell(CLEAR % 1)  # its pattern is known from here on: it is settled at once
        try:
            yield hall
        finally:
            hall.slow_reader.go.set()
        hall.assert_sound()


async def test_a_fault_read_after_its_clear_opens_as_cleared(hall: Hall) -> None:
    (fault,) = await hall.accept(FAULT % 7)
    await hall.settle()
    reading = asyncio.create_task(hall.read())
    await until(hall.slow_reader.holds.is_set, "the reader holds the fault")
    (clear,) = await hall.accept(CLEAR % 20)
    await hall.settle()
    assert hall.states() == [("discard", "return_to_normal"), ("unread", ""), ("discard", "return_to_normal")]
    assert hall.openings() == []
    hall.slow_reader.go.set()
    await reading
    assert hall.openings() == [(fault, clear, 1)]
    (ticket,) = await hall.deliver()
    assert (ticket.state, ticket.cause, ticket.occurrences) == ("cleared", "jam", 1)
    assert "cleared" in ticket.body


async def test_faults_on_both_sides_of_the_clear_are_two_openings(hall: Hall) -> None:
    (first,) = await hall.accept(FAULT % 7)
    await hall.settle()
    reading = asyncio.create_task(hall.read())
    await until(hall.slow_reader.holds.is_set, "the reader holds the fault")
    (repeat,) = await hall.accept(FAULT % 8)
    (clear,) = await hall.accept(CLEAR % 20)
    (second,) = await hall.accept(FAULT % 9)
    await hall.settle()
    assert first < repeat < clear < second
    hall.slow_reader.go.set()
    await reading
    assert hall.openings() == [(first, clear, 2), (second, None, 1)]
    tickets = await hall.deliver()
    assert sorted((ticket.state, ticket.occurrences) for ticket in tickets) == [("cleared", 2), ("open", 1)]
    assert len({ticket.key for ticket in tickets}) == 2


async def test_the_clear_is_remembered_over_a_restart(tmp_path: Path) -> None:
    async with Hall(tmp_path) as hall:
        await hall.tell(CLEAR % 1)
        (fault,) = await hall.accept(FAULT % 7)
        (clear,) = await hall.accept(CLEAR % 20)
        await hall.settle()
        assert [state for state, _ in hall.states()] == [Outcome.DISCARD, "unread", Outcome.DISCARD]
    async with Hall(tmp_path) as hall:
        hall.slow_reader.go.set()
        await hall.read()
        assert hall.openings() == [(fault, clear, 1)]
        hall.assert_sound()
