"""What must hold in every store at every commit, as queries that return what breaks it.

Each query gives (count, example). They run on one snapshot, so a running service may go on writing.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple


class Invariant(NamedTuple):
    """`says` completes "N ..., for example X"."""

    says: str
    query: str


def _events(says: str, where: str) -> Invariant:
    return Invariant(says, f"SELECT count(*), min(e.seq || '.' || e.idx) FROM events AS e WHERE {where}")


_CURSOR = "coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'cursor'), 0)"
_STATES = "('unread', 'ticket', 'review', 'discard', 'repeat', 'part_of')"
_LAST = "coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'journal'), 0)"

# Totals against rows: what is counted is still there, or was counted when retention removed it.
_COUNTED_STATES = f"""
WITH counted AS (
    SELECT source, outcome AS state, n FROM counters WHERE outcome IN {_STATES}
    UNION ALL SELECT source, reason, -n FROM counters WHERE outcome = 'purged'
    UNION ALL SELECT j.source, e.state, -count(*) FROM events AS e JOIN journal AS j ON j.seq = e.seq
        GROUP BY j.source, e.state
)
SELECT count(*), min(source || ' ' || state || ': off by ' || off) FROM (
    SELECT source, state, sum(n) AS off FROM counted GROUP BY source, state HAVING sum(n) <> 0)
"""
_COUNTED_KINDS = """
WITH counted AS (
    SELECT source, n FROM counters WHERE outcome IN ('line', 'reading', 'undecodable')
    UNION ALL SELECT source, -n FROM counters WHERE outcome = 'purged'
    UNION ALL SELECT j.source, -count(*) FROM events AS e JOIN journal AS j ON j.seq = e.seq GROUP BY 1
)
SELECT count(*), min(source || ': off by ' || off) FROM (
    SELECT source, sum(n) AS off FROM counted GROUP BY source HAVING sum(n) <> 0)
"""
_COUNTED_MESSAGES = """
WITH counted AS (
    SELECT source, n, 0 AS bytes FROM counters WHERE outcome = 'message'
    UNION ALL SELECT source, -n, 0 FROM counters WHERE outcome = 'purged_message'
    UNION ALL SELECT source, 0, n FROM counters WHERE outcome = 'bytes'
    UNION ALL SELECT source, 0, -n FROM counters WHERE outcome = 'purged_bytes'
    UNION ALL SELECT source, -count(*), -sum(length(payload)) FROM journal GROUP BY source
)
SELECT count(*), min(source || ': off by ' || n || ' messages, ' || bytes || ' bytes') FROM (
    SELECT source, sum(n) AS n, sum(bytes) AS bytes FROM counted GROUP BY source
    HAVING sum(n) <> 0 OR sum(bytes) <> 0)
"""

INVARIANTS = (
    _events("events have no legal state", f"e.state NOT IN {_STATES}"),
    _events("events have no legal kind", "e.kind NOT IN (0, 1, 2)"),
    _events("events belong to no message", "NOT EXISTS (SELECT 1 FROM journal AS j WHERE j.seq = e.seq)"),
    _events("events are settled beyond the cursor", f"e.seq > {_CURSOR}"),
    _events(
        "unread events wait nowhere",
        "e.state = 'unread' AND NOT EXISTS (SELECT 1 FROM unread AS u WHERE u.seq = e.seq AND u.idx = e.idx)",
    ),
    _events(
        "events in review are asked of no one",
        "e.state = 'review' AND NOT EXISTS (SELECT 1 FROM reviews AS r "
        "WHERE r.seq = e.seq AND r.idx = e.idx AND r.state = 'open')",
    ),
    _events(
        "repeats or parts point at nothing",
        "e.state IN ('repeat', 'part_of') AND e.of_seq IS NULL OR e.of_seq = e.seq AND e.of_idx = e.idx",
    ),
    _events(
        "pointers to an original do not resolve",  # a message that retention removed may be pointed at
        "e.of_seq IS NOT NULL AND EXISTS (SELECT 1 FROM journal AS j WHERE j.seq = e.of_seq) "
        "AND NOT EXISTS (SELECT 1 FROM events AS o WHERE o.seq = e.of_seq AND o.idx = e.of_idx) "
        "AND NOT EXISTS (SELECT 1 FROM open_records AS r WHERE r.seq = e.of_seq AND r.idx = e.of_idx)",
    ),
    _events(
        "events belong to an alarm that does not exist",
        "e.opening_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM openings AS o WHERE o.id = e.opening_id)",
    ),
    Invariant(
        "waiting lines are not unread",
        "SELECT count(*), min(u.seq || '.' || u.idx) FROM unread AS u WHERE NOT EXISTS "
        "(SELECT 1 FROM events AS e WHERE e.seq = u.seq AND e.idx = u.idx AND e.state = 'unread')",
    ),
    Invariant(
        "decoded messages left no event",
        f"SELECT count(*), min(j.seq) FROM journal AS j WHERE j.seq <= {_CURSOR} "
        "AND NOT EXISTS (SELECT 1 FROM events AS e WHERE e.seq = j.seq) "
        "AND j.seq NOT IN (SELECT seq FROM open_records)",
    ),
    Invariant("cursor is beyond the journal", f"SELECT {_CURSOR} > {_LAST}, {_CURSOR}"),
    Invariant(
        "messages are unaccounted for",  # seqs are dense: as many were accepted as were numbered
        f"SELECT abs({_LAST} - coalesce(sum(n), 0)), {_LAST} FROM counters WHERE outcome = 'message'",
    ),
    Invariant(
        "alarms are open more than once",
        "SELECT count(*), min(subject || '|' || cause) FROM (SELECT subject, cause FROM openings "
        "WHERE cleared_seq IS NULL GROUP BY subject, cause HAVING count(*) > 1)",
    ),
    Invariant(
        "tickets are in no outbox",
        "SELECT count(*), min(o.ticket_key) FROM openings AS o WHERE o.ticket_key IS NOT NULL "
        "AND NOT EXISTS (SELECT 1 FROM outbox AS x WHERE x.opening_id = o.id)",
    ),
    Invariant("counters of outcomes do not add up", _COUNTED_STATES),
    Invariant("counters of events do not add up", _COUNTED_KINDS),
    Invariant("counters of messages do not add up", _COUNTED_MESSAGES),
)


def broken(raw: sqlite3.Connection) -> list[str]:
    """The invariants that do not hold, in words. Reads one snapshot of the whole store."""
    found: list[str] = []
    raw.execute("BEGIN")
    try:
        for says, query in INVARIANTS:
            count, example = raw.execute(query).fetchone()
            if count:
                found.append(f"{count} {says}, for example {example}")
    finally:
        raw.execute("ROLLBACK")
    return found
