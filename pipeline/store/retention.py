"""Forgetting: the journal and the history are bounded by age and by bytes, in chunks that hold no one up.

Counters stay. What is not finished stays too, however old: messages after the cursor, with an event that is
unread or in an open review, or that began an open multi-line record.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row

from pipeline.store import journal, totals

# Rows a transaction: some 20 ms of the writer's time, so that intake never waits long.
CHUNK = 1000


@dataclass(frozen=True, slots=True)
class Purged:
    """What one call removed. Call again while `total` is not 0."""

    messages: int = 0
    events: int = 0
    seen: int = 0
    reviews: int = 0
    openings: int = 0

    @property
    def total(self) -> int:
        return self.messages + self.seen + self.reviews + self.openings


_CANDIDATES = """
SELECT j.seq, j.source, j.received_at_us, length(j.payload) AS size FROM journal AS j
WHERE j.seq <= ?
    AND NOT EXISTS (SELECT 1 FROM unread AS u WHERE u.seq = j.seq)
    AND NOT EXISTS (SELECT 1 FROM reviews AS r WHERE r.seq = j.seq AND r.state = 'open')
    AND j.seq NOT IN (SELECT seq FROM open_records)
ORDER BY j.seq LIMIT ?
"""
_STATES = (
    "SELECT e.seq, e.state, count(*) AS n FROM json_each(?) AS m CROSS JOIN events AS e ON e.seq = m.value "
    "GROUP BY e.seq, e.state"
)
_SEEN = "DELETE FROM seen WHERE digest IN (SELECT digest FROM seen WHERE received_at_us < ? LIMIT ?)"
_REVIEWS = (
    "DELETE FROM reviews WHERE id IN (SELECT id FROM reviews "
    "WHERE state IN ('approved', 'corrected', 'rejected') AND resolved_at_us < ? LIMIT ?)"
)
# Of each key the opening with the highest number stays for ever (it makes the next idempotency key, which
# must be new), and so does the last by position (a fault read late is placed before or behind it).
_OPENINGS = """
SELECT o.id FROM openings AS o
WHERE o.cleared_seq IS NOT NULL AND max(o.last_seen_us, coalesce(o.cleared_at_us, 0)) < ?
    AND EXISTS (SELECT 1 FROM openings AS later
        WHERE later.subject = o.subject AND later.cause = o.cause AND later.number > o.number)
    AND EXISTS (SELECT 1 FROM openings AS later WHERE later.subject = o.subject AND later.cause = o.cause
        AND (later.opened_seq, later.opened_idx) > (o.opened_seq, o.opened_idx))
    AND NOT EXISTS (SELECT 1 FROM outbox AS x
        WHERE x.opening_id = o.id AND x.state NOT IN ('sent', 'cancelled'))
    AND NOT EXISTS (SELECT 1 FROM events AS e WHERE e.opening_id = o.id)
ORDER BY o.id LIMIT ?
"""


def purge(
    connection: Connection,
    before_us: int,
    max_bytes: int,
    chunk: int = CHUNK,
    *,
    now_us: int,
    seen_before_us: int | None = None,
    reviews_before_us: int | None = None,
) -> Purged:
    """Remove at most `chunk` rows of each kind, oldest first.

    Messages go when they were received before `before_us`, and beyond that until at most `max_bytes` of
    payload are left; cleared openings that a later one of their key replaced, by `before_us`; `seen` digests
    and resolved reviews by their own limits (default: `before_us`). `now_us` tells stamps of a wrong clock:
    those in the future have no age.
    """
    messages, events = _purge_messages(connection, before_us, max_bytes, chunk, now_us)
    seen = connection.exec_driver_sql(_SEEN, (_or(seen_before_us, before_us), chunk)).rowcount
    reviews = connection.exec_driver_sql(_REVIEWS, (_or(reviews_before_us, before_us), chunk)).rowcount
    openings = _purge_openings(connection, before_us, chunk)
    return Purged(messages, events, seen, reviews, openings)


def stored_bytes(connection: Connection) -> int:
    """Bytes of raw payload in the journal."""
    query = "SELECT outcome, sum(n) FROM counters WHERE outcome IN (?, ?) GROUP BY outcome"
    rows = connection.exec_driver_sql(query, (totals.BYTES, totals.PURGED_BYTES))
    sums = {outcome: n for outcome, n in rows}
    return int(sums.get(totals.BYTES, 0) - sums.get(totals.PURGED_BYTES, 0))


def _or(limit_us: int | None, default_us: int) -> int:
    return default_us if limit_us is None else limit_us


def _purge_messages(
    connection: Connection, before_us: int, max_bytes: int, chunk: int, now_us: int
) -> tuple[int, int]:
    candidates = connection.exec_driver_sql(_CANDIDATES, (journal.cursor(connection), chunk)).all()
    excess = stored_bytes(connection) - max_bytes
    doomed = _doomed(candidates, before_us, excess, now_us)
    if not doomed:
        return 0, 0
    source_of = {row.seq: row.source for row in doomed}
    amounts: Counter[totals.Key] = Counter()
    for row in doomed:
        amounts[row.source, totals.PURGED_MESSAGES, ""] += 1
        amounts[row.source, totals.PURGED_BYTES, ""] += row.size
    events = 0
    for seq, state, n in connection.exec_driver_sql(_STATES, (json.dumps(list(source_of)),)):
        amounts[source_of[seq], totals.PURGED, state] += n
        events += n
    totals.add(connection, amounts)
    for table in ("events", "attempts", "journal"):
        connection.exec_driver_sql(f"DELETE FROM {table} WHERE seq = ?", [(seq,) for seq in source_of])
    return len(doomed), events


def _doomed(rows: Sequence[Row[Any]], before_us: int, excess: int, now_us: int) -> list[Row[Any]]:
    """The oldest of `rows` that must go. Arrival order is the truth, so the first young one ends it.

    Rows stamped in the future (a clock that was wrong) share the fate of the next one that is not.
    """
    doomed: list[Row[Any]] = []
    ageless: list[Row[Any]] = []
    for row in rows:
        if excess > 0 or row.received_at_us < before_us:
            doomed += [*ageless, row]
            excess -= row.size
            ageless = []
        elif row.received_at_us > now_us:
            ageless.append(row)
        else:
            break
    return doomed


def _purge_openings(connection: Connection, before_us: int, chunk: int) -> int:
    ids = [(id,) for (id,) in connection.exec_driver_sql(_OPENINGS, (before_us, chunk))]
    if ids:
        connection.exec_driver_sql("DELETE FROM outbox WHERE opening_id = ?", ids)
        connection.exec_driver_sql("DELETE FROM openings WHERE id = ?", ids)
    return len(ids)
