"""Totals that outlive the rows they count, and the summary drawn from them.

A total is named by source, outcome and reason. Outcomes are the states an event can be in (`unread` and the
five of schemas.ticket.Outcome; these shift when an event moves) and the flows below (these only grow).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection, select

from pipeline.store.tables import counters
from schemas.ticket import Outcome

UNREAD = "unread"
STATES = frozenset({UNREAD, *Outcome})

# The reason of the one event that opened a ticket; a ticket event with any other reason is an occurrence.
OPENED = "opened"

MESSAGES = "message"  # accepted
BYTES = "bytes"  # of raw payload accepted
KINDS = ("line", "reading", "undecodable")  # events by kind, indexed by events.kind
PURGED = "purged"  # events removed by retention; the reason is the state they ended in
PURGED_MESSAGES = "purged_message"
PURGED_BYTES = "purged_bytes"

Key = tuple[str, str, str]


class Total(NamedTuple):
    source: str
    outcome: str
    reason: str
    n: int


@dataclass(frozen=True, slots=True)
class Counts:
    """The summary of DESIGN §7. `events` = tickets + occurrences + review + discarded + repeats + part_of +
    pending.

    A message that is not decoded yet counts as one pending event, since no one knows how many it holds; so
    does an open multi-line record. `pending` = `unread` + `undecoded` + `open_records`.
    """

    messages: int
    events: int
    lines: int
    readings: int
    undecodable: int
    tickets: int
    occurrences: int
    review: int
    discarded: int
    repeats: int
    part_of: int
    pending: int
    unread: int
    undecoded: int
    open_records: int


_ADD = (
    "INSERT INTO counters (source, outcome, reason, n) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (source, outcome, reason) DO UPDATE SET n = n + excluded.n"
)

# One statement, hence one snapshot: the sums agree whatever is written meanwhile.
_SUMMARY = """
SELECT outcome, CASE WHEN outcome = 'ticket' AND reason = 'opened' THEN 1 ELSE 0 END, SUM(n) FROM counters
GROUP BY 1, 2 UNION ALL
SELECT 'undecoded', 0, COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'journal'), 0)
    - COALESCE((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'cursor'), 0)
UNION ALL
SELECT 'open_records', 0, COUNT(*) FROM open_records AS o
    WHERE NOT EXISTS (SELECT 1 FROM events AS e WHERE e.seq = o.seq AND e.idx = o.idx)
"""


def add(connection: Connection, amounts: Mapping[Key, int]) -> None:
    """Add to totals, in the caller's transaction. An event that moves is subtracted where it was."""
    rows = [(*key, amount) for key, amount in sorted(amounts.items()) if amount]
    if rows:
        connection.exec_driver_sql(_ADD, rows)


def totals(connection: Connection) -> list[Total]:
    """Every total, by source, outcome and reason."""
    query = select(counters).order_by(counters.c.source, counters.c.outcome, counters.c.reason)
    return [Total(*row) for row in connection.execute(query)]


def counts(connection: Connection) -> Counts:
    """The summary over all sources since the store was created."""
    found = {(outcome, opened): n for outcome, opened, n in connection.exec_driver_sql(_SUMMARY)}

    def of(outcome: str, opened: int = 0) -> int:
        return int(found.get((outcome, opened), 0))

    unread, undecoded, open_records = of(UNREAD), of("undecoded"), of("open_records")
    tickets = of(Outcome.TICKET, 1)
    settled = tickets + sum(of(outcome) for outcome in Outcome)
    pending = unread + undecoded + open_records
    return Counts(
        messages=of(MESSAGES),
        events=settled + pending,
        lines=of("line"),
        readings=of("reading"),
        undecodable=of("undecodable"),
        tickets=tickets,
        occurrences=of(Outcome.TICKET),
        review=of(Outcome.REVIEW),
        discarded=of(Outcome.DISCARD),
        repeats=of(Outcome.REPEAT),
        part_of=of(Outcome.PART_OF),
        pending=pending,
        unread=unread,
        undecoded=undecoded,
        open_records=open_records,
    )
