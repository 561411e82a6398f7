"""A look at a store from outside, read-only, and the accounts that must balance in it."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from ticket_server import TicketServer

from pipeline.stages.dedupe import REDELIVERED, SAME_CONTENT
from pipeline.store import admin
from pipeline.store.sqlite import connect
from pipeline.store.tables import read_text

Sent = tuple[str, bytes]

LAST = "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'journal'), 0)"
PENDING = (
    f"SELECT ({LAST}) - coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'cursor'), 0)"
    " + (SELECT count(*) FROM unread) + (SELECT count(*) FROM open_records)"
)
UNSENT = "SELECT count(*) FROM outbox WHERE state NOT IN ('sent', 'cancelled')"


class Look:
    """Questions to the store at `path`. Each is one short read; a store that is not there yet has nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with closing(connect(self.path)) as raw:
            return raw.execute(query, values).fetchall()

    def number(self, query: str) -> int:
        try:
            return int(self.rows(query)[0][0])
        except sqlite3.OperationalError:
            if self.path.exists() and self.rows("SELECT 1 FROM sqlite_master WHERE name = 'outbox'"):
                raise
            return 0

    @property
    def accepted(self) -> int:
        """Messages in the journal since the store was made."""
        return self.number(LAST)

    @property
    def pending(self) -> int:
        return self.number(PENDING)

    @property
    def unread(self) -> int:
        return self.number("SELECT count(*) FROM unread")

    @property
    def sending(self) -> int:
        """Ticket requests that are under way."""
        return self.number("SELECT count(*) FROM outbox WHERE state = 'sending'")

    @property
    def unsent(self) -> int:
        return self.number(UNSENT)

    @property
    def is_drained(self) -> bool:
        """Every accepted event has its outcome, and every ticket is out."""
        return self.pending == 0 and self.unsent == 0

    def states(self) -> Counter[tuple[str, str]]:
        """How many events ended how, by state and reason."""
        query = "SELECT state, reason, count(*) FROM events GROUP BY state, reason"
        return Counter({(state, reason): n for state, reason, n in self.rows(query)})

    def journaled(self) -> dict[int, Sent]:
        """Topic and payload of every message, by seq."""
        query = "SELECT seq, topic, payload FROM journal ORDER BY seq"
        return {seq: (read_text(topic), bytes(payload)) for seq, topic, payload in self.rows(query)}

    def repeats(self, reason: str) -> dict[int, int]:
        """Messages folded for that reason: their seq, and that of their original."""
        query = "SELECT seq, of_seq FROM events WHERE state = 'repeat' AND reason = ? ORDER BY seq"
        return dict(self.rows(query, reason))


def assert_sound(path: Path) -> None:
    """The file is whole, and what andon promises of it holds: one state an event, sums that add up."""
    assert Look(path).rows("PRAGMA integrity_check") == [("ok",)]
    assert admin.check(path) == []


def assert_each_once(path: Path, ledger: Mapping[Sent, int]) -> None:
    """What was confirmed to the publisher is in the journal as many times; whatever came again is folded."""
    look = Look(path)
    journaled, redelivered = look.journaled(), look.repeats(REDELIVERED)
    for seq, of in redelivered.items():
        assert of < seq
        assert journaled[of] == journaled[seq], f"message {seq} is no repeat of {of}"
    originals = Counter(sent for seq, sent in journaled.items() if seq not in redelivered)
    expected = Counter(ledger)
    assert expected - originals == Counter(), "confirmed, and lost"
    assert originals - expected == Counter(), "came again, and counted twice"
    for seq, of in look.repeats(SAME_CONTENT).items():
        assert ledger[journaled[seq]] > 1, f"message {seq} was sent once, and folded into {of}"


def assert_settled(path: Path) -> None:
    """Nothing is pending: every message has events, and each of them one outcome."""
    look = Look(path)
    assert look.pending == 0
    legal = {"ticket", "review", "discard", "repeat", "part_of"}
    assert {state for state, _ in look.states()} <= legal
    assert look.number("SELECT count(*) FROM journal WHERE seq NOT IN (SELECT seq FROM events)") == 0


def assert_one_ticket_each(path: Path, sink: str, server: TicketServer) -> int:
    """Every ticket of `sink` is sent and exists once at the server, under its key; how many there are."""
    rows = Look(path).rows("SELECT key, state, reference FROM outbox WHERE sink = ?", sink)
    assert {state for _, state, _ in rows} <= {"sent"}
    assert dict(server.created) == {key: 1 for key, _, _ in rows}
    for key, _, reference in rows:
        assert [ticket["id"] for ticket in server.tickets[key]] == [reference]
    return len(rows)
