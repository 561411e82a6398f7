"""`andon db`: upgrades, backups that open, checks that find what is broken."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, create_engine

from pipeline.store import admin, alarms, events, journal, meta, schema
from pipeline.store.engine import Store
from pipeline.store.events import EventRow, Kind
from pipeline.store.tables import metadata
from schemas.errors import StoreCorrupt, StoreError, StoreLocked
from schemas.events import EventId
from schemas.extraction import Severity
from schemas.ticket import Outcome


def ddl(path: Path) -> dict[str, str]:
    """Every table and index as SQLite was told to create it, white space aside."""
    with sqlite3.connect(path) as raw:
        rows = raw.execute(
            "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'alembic%'"
        )
        found = {name: re.sub(r"\s*([(),])\s*", r"\1", re.sub(r"\s+", " ", sql)) for name, sql in rows}
    raw.close()
    return found


def test_the_migrated_schema_is_that_of_the_tables(store: Store, tmp_path: Path) -> None:
    with store.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    # Alembic does not compare partial indexes, AUTOINCREMENT and WITHOUT ROWID; SQLite's own words tell them.
    plain = tmp_path / "plain.db"
    engine = create_engine(f"sqlite:///{plain}")
    metadata.create_all(engine)
    engine.dispose()
    assert ddl(store.path) == ddl(plain)


def test_upgrading_creates_and_then_changes_nothing(path: Path) -> None:
    path.touch()
    assert admin.upgrade(path) == schema.revisions()[-1]
    first = ddl(path)
    assert admin.upgrade(path) == schema.revisions()[-1]
    assert ddl(path) == first and "journal" in first


def test_an_upgrade_that_fails_leaves_everything_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a schema would be worse than an old one: all steps are one transaction."""
    path.touch()

    def interrupted(connection: Connection) -> None:
        upgrade(connection)
        raise LookupError

    upgrade = schema.upgrade
    monkeypatch.setattr(schema, "upgrade", interrupted)
    with pytest.raises(LookupError):
        admin.upgrade(path)
    assert ddl(path) == {}
    monkeypatch.undo()
    admin.upgrade(path)


def test_only_the_owner_upgrades(store: Store) -> None:
    with pytest.raises(StoreLocked):
        admin.upgrade(store.path)


def test_a_backup_of_a_running_store_is_a_store(
    store: Store, accept: Callable[..., range], tmp_path: Path
) -> None:
    accept(100)
    target = tmp_path / "copy.db"
    assert admin.backup(store.path, target) == target.stat().st_size
    accept(5)
    assert not list(tmp_path.glob("copy.db?*"))  # one file, nothing to forget beside it
    copy = Store.open(target)
    with copy.read() as connection:
        assert len(journal.after(connection, 0, 1000)) == 100
    copy.close()
    assert admin.check(target) == []


def test_a_backup_never_overwrites_and_leaves_no_debris(store: Store, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    target.write_bytes(b"precious")
    with pytest.raises(StoreError, match="exists already"):
        admin.backup(store.path, target)
    assert target.read_bytes() == b"precious"
    with pytest.raises(StoreError, match="no such store"):
        admin.backup(tmp_path / "absent.db", tmp_path / "other.db")
    with pytest.raises(StoreError, match="no such folder"):
        admin.backup(store.path, tmp_path / "absent" / "copy.db")
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(b"nonsense" * 5000)
    with pytest.raises(StoreCorrupt):
        admin.backup(damaged, tmp_path / "other.db")
    assert not list(tmp_path.glob("other.db*"))


def test_a_sound_store_has_no_problems_open_or_closed(path: Path) -> None:
    store = Store.open(path)
    assert admin.check(path) == []
    store.close()
    assert admin.check(path) == []
    with pytest.raises(StoreError, match="no such store"):
        admin.check(path.with_name("absent.db"))


def test_what_cannot_be_understood_is_said(path: Path) -> None:
    with sqlite3.connect(path) as raw:
        raw.execute("CREATE TABLE notes (text)")
    raw.close()
    assert "another program" in admin.check(path)[0]
    path.write_bytes(b"nonsense" * 5000)
    assert "damaged" in admin.check(path)[0]
    path.write_bytes(b"")
    assert "andon db upgrade" in admin.check(path)[0]


EVENT = "INSERT INTO events (seq, idx, kind, state, reason, of_seq, of_idx, opening_id) VALUES "

BREAKS = {
    "no legal state": "UPDATE events SET state = 'lost' WHERE idx = 0",
    "no legal kind": "UPDATE events SET kind = 9 WHERE idx = 0",
    "belong to no message": EVENT + "(0, 0, 0, 'discard', '', NULL, NULL, NULL)",
    "beyond the cursor": EVENT + "(2, 0, 0, 'discard', '', NULL, NULL, NULL)",
    "wait nowhere": EVENT + "(1, 9, 0, 'unread', '', NULL, NULL, NULL)",
    "asked of no one": EVENT + "(1, 9, 0, 'review', '', NULL, NULL, NULL)",
    "point at nothing": EVENT + "(1, 9, 0, 'repeat', '', NULL, NULL, NULL)",
    "do not resolve": EVENT + "(1, 9, 0, 'part_of', '', 1, 55, NULL)",
    "alarm that does not exist": EVENT + "(1, 9, 0, 'ticket', '', NULL, NULL, 77)",
    "waiting lines are not unread": "INSERT INTO unread VALUES (1, 0, 'p', 's', '', 0, '{}', 0)",
    "left no event": "DELETE FROM events",
    "cursor is beyond the journal": "UPDATE meta SET value = '99' WHERE key = 'cursor'",
    "counters of outcomes": "UPDATE counters SET n = n + 1 WHERE outcome = 'discard'",
    "counters of events": "UPDATE counters SET n = n + 1 WHERE outcome = 'line'",
    "counters of messages": "UPDATE counters SET n = n + 1 WHERE outcome = 'bytes'",
    "messages are unaccounted for": "UPDATE sqlite_sequence SET seq = 7 WHERE name = 'journal'",
}


@pytest.mark.parametrize("says", BREAKS)
def test_a_broken_promise_is_found(store: Store, accept: Callable[..., range], says: str) -> None:
    accept(2)

    def work(connection: Connection) -> None:
        events.settle(
            connection, [EventRow(EventId(1, n), "line7", Kind.LINE, Outcome.DISCARD, "r") for n in (0, 1)]
        )
        journal.set_cursor(connection, 1)

    store.write_sync(work)
    assert admin.check(store.path) == []
    store.write_sync(lambda c: c.exec_driver_sql(BREAKS[says]))
    assert [problem for problem in admin.check(store.path) if says in problem]


def opening(number: int, **given: Any) -> alarms.Opening:
    at = EventId(number, 0)
    values = {"cleared": None, "ticket_key": None} | given
    return alarms.Opening(
        "p7", "E7", "p7", number, Severity.ERROR, None, None, "line7", "t", "x", at, at, 1, 1, 1, **values
    )


def test_alarms_that_are_open_twice_or_without_their_ticket_are_found(store: Store) -> None:
    store.write_sync(lambda c: alarms.insert(c, [opening(1), opening(2)]))
    assert admin.check(store.path) == ["1 alarms are open more than once, for example p7|E7"]
    store.write_sync(lambda c: c.exec_driver_sql("UPDATE openings SET cleared_seq = 3"))
    store.write_sync(lambda c: alarms.insert(c, [opening(3, ticket_key="k3")]))
    assert admin.check(store.path) == ["1 tickets are in no outbox, for example k3"]


def test_a_check_does_not_need_the_lock_and_changes_nothing(store: Store) -> None:
    store.write_sync(lambda c: meta.put(c, "k", "v"))
    before = store.wal_bytes()
    assert admin.check(store.path) == []
    assert store.wal_bytes() == before
