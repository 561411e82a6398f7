"""The ground: journal, events, unread, patterns, alarms, tickets, review.

There is no way down: going back to an older andon means restoring a backup made before the upgrade.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision: str | None = None

# SQLite only gives a rowid alias to INTEGER.
SEQ = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    intake()
    events()
    reading()
    alarms()
    tickets()
    review()


def intake() -> None:
    op.create_table(
        "journal",
        sa.Column("seq", SEQ, autoincrement=True, nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("received_at_us", sa.BigInteger(), nullable=False),
        sa.Column("qos", sa.Integer(), nullable=False),
        sa.Column("flags", sa.Integer(), nullable=False),
        sa.Column("mid", sa.BigInteger(), nullable=False),
        sa.Column("connection", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_journal_confirmable", "journal", ["source"], unique=False, sqlite_where=sa.text("qos > 0")
    )
    op.create_table(
        "sources",
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("connection", sa.String(), nullable=False),
        sa.Column("position", sa.JSON(), nullable=False),
        sa.Column("encoding", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("source"),
    )
    op.create_table(
        "meta",
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_table(
        "site_versions",
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("loaded_at_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("hash"),
    )
    op.create_table(
        "site_spans",
        sa.Column("first_seq", SEQ, autoincrement=False, nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("first_seq"),
    )
    op.create_table(
        "seen",
        sa.Column("digest", sa.LargeBinary(length=16), nullable=False),
        sa.Column("seq", SEQ, nullable=False),
        sa.Column("idx", sa.Integer(), nullable=False),
        sa.Column("received_at_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_seen_received", "seen", ["received_at_us"], unique=False)
    op.create_table(
        "open_records",
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("seq", SEQ, nullable=False),
        sa.Column("idx", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("lines", sa.Integer(), nullable=False),
        sa.Column("touched_at_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("source", "topic"),
    )


def events() -> None:
    op.create_table(
        "events",
        sa.Column("seq", SEQ, nullable=False),
        sa.Column("idx", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("opening_id", sa.Integer(), nullable=True),
        sa.Column("pattern_id", sa.Integer(), nullable=True),
        sa.Column("of_seq", sa.BigInteger(), nullable=True),
        sa.Column("of_idx", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("seq", "idx"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "ix_events_opening",
        "events",
        ["opening_id"],
        unique=False,
        sqlite_where=sa.text("opening_id IS NOT NULL"),
    )
    op.create_table(
        "counters",
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("source", "outcome", "reason"),
    )


def reading() -> None:
    op.create_table(
        "unread",
        sa.Column("seq", SEQ, nullable=False),
        sa.Column("idx", sa.Integer(), nullable=False),
        sa.Column("profile", sa.String(), nullable=False),
        sa.Column("signature", sa.Text(), nullable=False),
        sa.Column("variant", sa.Text(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("event", sa.JSON(), nullable=False),
        sa.Column("queued_at_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("seq", "idx"),
    )
    op.create_index(
        "ix_unread_group", "unread", ["profile", "signature", "variant", "rank", "queued_at_us"], unique=False
    )
    op.create_index("ix_unread_rank", "unread", ["rank", "queued_at_us"], unique=False)
    op.create_table(
        "attempts",
        sa.Column("seq", SEQ, nullable=False),
        sa.Column("idx", sa.Integer(), nullable=False),
        sa.Column("batch", sa.String(), nullable=False),
        sa.Column("deaths", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("seq", "idx"),
    )
    op.create_table(
        "patterns",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("profile", sa.String(), nullable=False),
        sa.Column("signature", sa.Text(), nullable=False),
        sa.Column("sample", sa.Text(), nullable=False),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.Column("first_seen_us", sa.BigInteger(), nullable=False),
        sa.Column("last_seen_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("profile", "signature"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "plans",
        sa.Column("pattern_id", sa.Integer(), nullable=False),
        sa.Column("variant", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("trust", sa.String(), nullable=False),
        sa.Column("plan", sa.JSON(), nullable=False),
        sa.Column("verdict", sa.JSON(), nullable=False),
        sa.Column("taught_by", sa.String(), nullable=False),
        sa.Column("agreed", sa.Integer(), nullable=False),
        sa.Column("n", sa.BigInteger(), nullable=False),
        sa.Column("taught_at_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("pattern_id", "variant"),
    )
    op.create_table(
        "plan_history",
        sa.Column("pattern_id", sa.Integer(), nullable=False),
        sa.Column("variant", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("plan", sa.JSON(), nullable=False),
        sa.Column("verdict", sa.JSON(), nullable=False),
        sa.Column("taught_by", sa.String(), nullable=False),
        sa.Column("taught_at_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("pattern_id", "variant", "version"),
    )


def alarms() -> None:
    op.create_table(
        "openings",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("severity", sa.String(), nullable=False),
        sa.Column("category", sa.String(), nullable=True),
        sa.Column("action", sa.String(), nullable=True),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("line", sa.Text(), nullable=False),
        sa.Column("scope", sa.String(), nullable=False),
        sa.Column("opened_seq", sa.BigInteger(), nullable=False),
        sa.Column("opened_idx", sa.Integer(), nullable=False),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.Column("last_idx", sa.Integer(), nullable=False),
        sa.Column("cleared_seq", sa.BigInteger(), nullable=True),
        sa.Column("cleared_idx", sa.Integer(), nullable=True),
        sa.Column("occurrences", sa.BigInteger(), nullable=False),
        sa.Column("first_seen_us", sa.BigInteger(), nullable=False),
        sa.Column("last_seen_us", sa.BigInteger(), nullable=False),
        sa.Column("cleared_at_us", sa.BigInteger(), nullable=True),
        sa.Column("ticket_key", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("subject", "cause", "number"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_openings_key", "openings", ["subject", "cause", "opened_seq", "opened_idx"], unique=False
    )
    op.create_index(
        "ix_openings_open",
        "openings",
        ["scope", "cause"],
        unique=False,
        sqlite_where=sa.text("cleared_seq IS NULL"),
    )
    op.create_table(
        "clears",
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("idx", sa.Integer(), nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("subject", "cause"),
    )


def tickets() -> None:
    op.create_table(
        "outbox",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("sink", sa.String(), nullable=False),
        sa.Column("opening_id", sa.Integer(), nullable=True),
        sa.Column("ticket", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_try_at_us", sa.BigInteger(), nullable=False),
        sa.Column("created_at_us", sa.BigInteger(), nullable=False),
        sa.Column("sent_at_us", sa.BigInteger(), nullable=True),
        sa.Column("reference", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("key", "sink"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_outbox_due", "outbox", ["state", "next_try_at_us"], unique=False)
    op.create_index("ix_outbox_opening", "outbox", ["opening_id"], unique=False)
    op.create_table(
        "board",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("ticket", sa.JSON(), nullable=False),
        sa.Column("created_at_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("key"),
        sqlite_autoincrement=True,
    )


def review() -> None:
    op.create_table(
        "reviews",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("seq", SEQ, nullable=False),
        sa.Column("idx", sa.Integer(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("group_key", sa.Text(), nullable=False),
        sa.Column("pattern_id", sa.Integer(), nullable=True),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("severity", sa.String(), nullable=True),
        sa.Column("event", sa.JSON(), nullable=False),
        sa.Column("reading", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("created_at_us", sa.BigInteger(), nullable=False),
        sa.Column("resolved_at_us", sa.BigInteger(), nullable=True),
        sa.Column("resolved_by", sa.String(), nullable=True),
        sa.Column("resolution", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_reviews_open", "reviews", ["state", "group_key"], unique=False)
    op.create_index(
        "ux_reviews_asked",
        "reviews",
        ["seq", "idx", "group_key"],
        unique=True,
        sqlite_where=sa.text("state = 'open'"),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("at_us", sa.BigInteger(), nullable=False),
        sa.Column("who", sa.String(), nullable=False),
        sa.Column("what", sa.String(), nullable=False),
        sa.Column("before", sa.JSON(), nullable=True),
        sa.Column("after", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
