"""Every table, in SQLAlchemy Core.

Times are integers, microseconds since the epoch (UTC): one meaning on SQLite and PostgreSQL.

The unit of bookkeeping is the event: (message seq, index). `events.state` is its one state; every other table
points at events, never the other way round.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Dialect,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    text,
)

metadata = MetaData()


def bind_text(value: str) -> str | bytes:
    """What SQLite is given for text from outside: the text itself, or its bytes when it is not valid Unicode.

    A payload may decode to lone surrogates (JSON "\\ud800"), which SQLite's UTF-8 cannot hold. SQLite types
    values, not columns, so those few are stored as blobs; equal texts still give equal values and can be
    keys.
    """
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")
    return value


def read_text(value: str | bytes) -> str:
    """The text that `bind_text` gave to SQLite."""
    return value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else value


class AnyText(TypeDecorator[str]):
    """Text from outside, any sequence of code points, stored without loss. For SQLite."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | bytes | None:
        return None if value is None else bind_text(value)

    def process_result_value(self, value: str | bytes | None, dialect: Dialect) -> str | None:
        return None if value is None else read_text(value)


# SQLite only gives a rowid alias to INTEGER, PostgreSQL needs 64 bits.
Seq = BigInteger().with_variant(Integer, "sqlite")

journal = Table(
    "journal",
    metadata,
    Column("seq", Seq, primary_key=True, autoincrement=True),
    Column("source", String, nullable=False),
    Column("topic", AnyText, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    Column("received_at_us", BigInteger, nullable=False),
    Column("qos", Integer, nullable=False),
    Column("flags", Integer, nullable=False),  # 1 retain, 2 duplicate flag of the protocol
    Column("mid", BigInteger, nullable=False),  # MQTT packet id, file offset, Kafka offset
    Column("connection", String, nullable=False),
    # What a lost connection may not have confirmed is found from the end, per source.
    Index("ix_journal_confirmable", "source", sqlite_where=text("qos > 0")),
    sqlite_autoincrement=True,  # a seq is never given twice, even after retention has emptied the table
)

# One row a source: how far a file was read, which connection came last, which encoding was found.
sources = Table(
    "sources",
    metadata,
    Column("source", String, primary_key=True),
    Column("connection", String, nullable=False, default=""),
    Column("position", JSON, nullable=False, default=dict),
    Column("encoding", String),
)

# Single values: "cursor" (last settled seq), "boot_id", "site" (hash of the site file in force), ...
meta = Table("meta", metadata, Column("key", String, primary_key=True), Column("value", Text, nullable=False))

site_versions = Table(
    "site_versions",
    metadata,
    Column("hash", String, primary_key=True),
    Column("text", Text, nullable=False),
    Column("loaded_at_us", BigInteger, nullable=False),
)

# Which site file decoded which messages, run-length coded: from `first_seq` on it was `hash`.
site_spans = Table(
    "site_spans",
    metadata,
    Column("first_seq", Seq, primary_key=True, autoincrement=False),
    Column("hash", String, nullable=False),
)

events = Table(
    "events",
    metadata,
    Column("seq", Seq, primary_key=True),
    Column("idx", Integer, primary_key=True),
    Column("kind", Integer, nullable=False),  # 0 line, 1 reading, 2 undecodable payload
    Column("state", String, nullable=False),  # unread, or an Outcome
    Column("reason", String, nullable=False, default=""),
    Column("opening_id", Integer),  # the alarm opening it opened or is an occurrence of
    Column("pattern_id", Integer),
    Column("of_seq", BigInteger),  # original of a repeat or a part
    Column("of_idx", Integer),
    Index("ix_events_opening", "opening_id", sqlite_where=text("opening_id IS NOT NULL")),
    sqlite_with_rowid=False,
)

# Totals that outlive the rows: one row per source, outcome and reason (totals.py names what is counted).
counters = Table(
    "counters",
    metadata,
    Column("source", String, primary_key=True),
    Column("outcome", String, primary_key=True),
    Column("reason", String, primary_key=True),
    Column("n", BigInteger, nullable=False),
)

# Content and event time of recent lines, for redelivery by content (window kept by retention).
seen = Table(
    "seen",
    metadata,
    Column("digest", LargeBinary(16), primary_key=True),
    Column("seq", Seq, nullable=False),
    Column("idx", Integer, nullable=False),
    Column("received_at_us", BigInteger, nullable=False),
    Index("ix_seen_received", "received_at_us"),
    sqlite_with_rowid=False,
)

# Multi-line records that are still open, so that a restart goes on with them.
open_records = Table(
    "open_records",
    metadata,
    Column("source", String, primary_key=True),
    Column("topic", AnyText, primary_key=True),
    Column("seq", Seq, nullable=False),
    Column("idx", Integer, nullable=False),
    Column("text", AnyText, nullable=False),
    Column("lines", Integer, nullable=False),
    Column("touched_at_us", BigInteger, nullable=False),
)

unread = Table(
    "unread",
    metadata,
    Column("seq", Seq, primary_key=True),
    Column("idx", Integer, primary_key=True),
    Column("profile", String, nullable=False),
    Column("signature", AnyText, nullable=False),
    Column("variant", AnyText, nullable=False),
    Column("rank", Integer, nullable=False),  # 0 routine .. 3 looks critical
    Column("event", JSON, nullable=False),  # the LogLine, so that it need not be decoded again
    Column("queued_at_us", BigInteger, nullable=False),
    # Covers the ranking of groups, so that it never touches the rows.
    Index("ix_unread_group", "profile", "signature", "variant", "rank", "queued_at_us"),
    Index("ix_unread_rank", "rank", "queued_at_us"),
)

# Attempts of the model, recorded before the call: a line that kills the process is found after the restart.
attempts = Table(
    "attempts",
    metadata,
    Column("seq", Seq, primary_key=True),
    Column("idx", Integer, primary_key=True),
    Column("batch", String, nullable=False),
    Column("deaths", Integer, nullable=False, default=0),
)

patterns = Table(
    "patterns",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),  # the stable lineage id
    Column("profile", String, nullable=False),
    Column("signature", AnyText, nullable=False),
    Column("sample", AnyText, nullable=False),
    Column("n", BigInteger, nullable=False, default=0),
    Column("first_seen_us", BigInteger, nullable=False),
    Column("last_seen_us", BigInteger, nullable=False),
    UniqueConstraint("profile", "signature"),
    sqlite_autoincrement=True,
)

# A pattern's plans: one per value of its enumerable slots (variant "" when it has none).
plans = Table(
    "plans",
    metadata,
    Column("pattern_id", Integer, primary_key=True),
    Column("variant", AnyText, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("trust", String, nullable=False),  # provisional, trusted, disputed
    Column("plan", JSON, nullable=False),
    Column("verdict", JSON, nullable=False),  # severity, category, action as taught
    Column("taught_by", String, nullable=False),  # "model:HASH", "rules:VERSION", "person:NAME"
    Column("agreed", Integer, nullable=False, default=0),
    Column("n", BigInteger, nullable=False, default=0),
    Column("taught_at_us", BigInteger, nullable=False),
)

# Earlier plans, so that a correction can be told from what it corrected.
plan_history = Table(
    "plan_history",
    metadata,
    Column("pattern_id", Integer, primary_key=True),
    Column("variant", AnyText, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("plan", JSON, nullable=False),
    Column("verdict", JSON, nullable=False),
    Column("taught_by", String, nullable=False),
    Column("taught_at_us", BigInteger, nullable=False),
)

# Alarm openings: one row each time an alarm of a key opens; at most one of a key has cleared_seq NULL.
openings = Table(
    "openings",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("subject", AnyText, nullable=False),
    Column("cause", AnyText, nullable=False),
    Column("number", Integer, nullable=False),
    Column("severity", String, nullable=False),
    Column("category", String),
    Column("action", String),
    Column("source", String, nullable=False),
    Column("topic", AnyText, nullable=False),
    Column("line", AnyText, nullable=False),
    Column("scope", String, nullable=False),  # where a return to normal that names no component counts
    Column("opened_seq", BigInteger, nullable=False),
    Column("opened_idx", Integer, nullable=False),
    Column("last_seq", BigInteger, nullable=False),
    Column("last_idx", Integer, nullable=False),
    Column("cleared_seq", BigInteger),
    Column("cleared_idx", Integer),
    Column("occurrences", BigInteger, nullable=False),
    Column("first_seen_us", BigInteger, nullable=False),
    Column("last_seen_us", BigInteger, nullable=False),
    Column("cleared_at_us", BigInteger),
    Column("ticket_key", String),  # NULL: no ticket (below ticket_from, or observed only)
    UniqueConstraint("subject", "cause", "number"),
    Index("ix_openings_key", "subject", "cause", "opened_seq", "opened_idx"),
    Index("ix_openings_open", "scope", "cause", sqlite_where=text("cleared_seq IS NULL")),
    sqlite_autoincrement=True,
)

# The last return to normal of each key, also of keys that never opened.
clears = Table(
    "clears",
    metadata,
    Column("subject", AnyText, primary_key=True),
    Column("cause", AnyText, primary_key=True),
    Column("seq", BigInteger, nullable=False),
    Column("idx", Integer, nullable=False),
    Column("at_us", BigInteger, nullable=False),
)

outbox = Table(
    "outbox",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("key", AnyText, nullable=False),  # the idempotency key
    Column("sink", String, nullable=False),
    Column("opening_id", Integer),
    Column("ticket", JSON, nullable=False),
    Column("state", String, nullable=False),  # queued, sending, sent, dead, unknown, cancelled
    Column("attempts", Integer, nullable=False, default=0),
    Column("next_try_at_us", BigInteger, nullable=False),
    Column("created_at_us", BigInteger, nullable=False),
    Column("sent_at_us", BigInteger),
    Column("reference", AnyText),
    Column("error", AnyText),
    UniqueConstraint("key", "sink"),
    Index("ix_outbox_due", "state", "next_try_at_us"),
    Index("ix_outbox_opening", "opening_id"),
    sqlite_autoincrement=True,
)

# The local ticket board.
board = Table(
    "board",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("key", AnyText, nullable=False, unique=True),
    Column("ticket", JSON, nullable=False),
    Column("created_at_us", BigInteger, nullable=False),
    sqlite_autoincrement=True,
)

reviews = Table(
    "reviews",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("seq", Seq, nullable=False),
    Column("idx", Integer, nullable=False),
    Column("source", String, nullable=False),
    Column("topic", AnyText, nullable=False),
    Column("group_key", AnyText, nullable=False),  # pattern and reason: what is asked once
    Column("pattern_id", Integer),
    Column("reason", String, nullable=False),  # named: unsure_severity, out_of_range, dead_letter ...
    Column("severity", String),
    # The event as decoded; {"bytes": base64 of the first 4 KB} when it was not.
    Column("event", JSON, nullable=False),
    Column("reading", JSON, nullable=False),  # fields and decision as read, with origins
    Column("state", String, nullable=False),  # open, approved, corrected, rejected
    Column("created_at_us", BigInteger, nullable=False),
    Column("resolved_at_us", BigInteger),
    Column("resolved_by", String),
    Column("resolution", JSON),
    # One event is asked once about one thing at a time; it may come back after it was resolved.
    Index("ux_reviews_asked", "seq", "idx", "group_key", unique=True, sqlite_where=text("state = 'open'")),
    Index("ix_reviews_open", "state", "group_key"),
    sqlite_autoincrement=True,
)

audit = Table(
    "audit",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("at_us", BigInteger, nullable=False),
    Column("who", String, nullable=False),
    Column("what", String, nullable=False),
    Column("before", JSON),
    Column("after", JSON),
    sqlite_autoincrement=True,
)

__all__ = [
    "AnyText",
    "Seq",
    "attempts",
    "audit",
    "bind_text",
    "board",
    "clears",
    "counters",
    "events",
    "journal",
    "meta",
    "metadata",
    "open_records",
    "openings",
    "outbox",
    "patterns",
    "plan_history",
    "plans",
    "read_text",
    "reviews",
    "seen",
    "site_spans",
    "site_versions",
    "sources",
    "unread",
]
