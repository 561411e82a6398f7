"""The engine: whole transactions or none, one owner, harmless readers, errors that say what is known."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from connectors.base import Delivery
from pipeline.store import admin, journal, meta
from pipeline.store.engine import Store
from pipeline.store.options import StoreConfig
from pipeline.store.sqlite import WAL_LIMIT_BYTES
from schemas.errors import StoreCorrupt, StoreError, StoreLocked, StoreUnavailable

OPEN = """
import sys
from pathlib import Path
from pipeline.store.engine import Store
Store.open(Path(sys.argv[1]))
"""


def value(store: Store, key: str) -> str | None:
    with store.read() as connection:
        return meta.get(connection, key)


async def test_a_write_is_committed_when_it_returns(store: Store, path: Path) -> None:
    def work(connection: Connection) -> int:
        meta.put(connection, "k", "v")
        return 7

    assert await store.write(work) == 7
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT value FROM meta WHERE key = 'k'").fetchall() == [("v",)]
    other.close()


async def test_an_exception_rolls_back_and_passes_through(store: Store) -> None:
    def work(connection: Connection) -> None:
        meta.put(connection, "k", "v")
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        await store.write(work)
    assert value(store, "k") is None
    await store.write(lambda c: meta.put(c, "k", "again"))
    assert value(store, "k") == "again"


def test_transactions_are_immediate_and_pragmas_are_in_force(store: Store, path: Path) -> None:
    def work(connection: Connection) -> dict[str, object]:
        names = ("journal_mode", "synchronous", "foreign_keys", "wal_autocheckpoint")
        found = {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in names}
        intruder = sqlite3.connect(path, timeout=0)
        with pytest.raises(sqlite3.OperationalError, match="locked"):  # though nothing was written yet
            intruder.execute("BEGIN IMMEDIATE")
        intruder.close()
        return found

    assert store.write_sync(work) == {
        "journal_mode": "wal",
        "synchronous": 2,  # FULL
        "foreign_keys": 1,
        "wal_autocheckpoint": 0,
    }


def test_a_savepoint_inside_a_write_can_fail_alone(store: Store) -> None:
    def work(connection: Connection) -> None:
        meta.put(connection, "kept", "1")
        with pytest.raises(ZeroDivisionError), connection.begin_nested():
            meta.put(connection, "lost", "1")
            raise ZeroDivisionError

    store.write_sync(work)
    assert (value(store, "kept"), value(store, "lost")) == ("1", None)


def test_a_write_inside_a_write_is_refused_instead_of_waiting_for_ever(store: Store) -> None:
    def work(connection: Connection) -> None:
        store.write_sync(lambda c: None)

    with pytest.raises(RuntimeError, match="wait for itself"):
        store.write_sync(work)


def test_writes_from_many_threads_all_happen(store: Store) -> None:
    def add(connection: Connection) -> None:
        meta.put(connection, "n", str(int(meta.get(connection, "n") or 0) + 1))

    threads = [threading.Thread(target=lambda: [store.write_sync(add) for _ in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert value(store, "n") == "80"


async def test_a_cancelled_write_happens_whole_or_not_at_all(store: Store) -> None:
    started, go = threading.Event(), threading.Event()

    def slow(connection: Connection) -> None:
        meta.put(connection, "a", "1")
        started.set()
        go.wait(10)
        meta.put(connection, "b", "1")

    running = asyncio.create_task(store.write(slow))
    await asyncio.to_thread(started.wait, 10)
    queued = asyncio.create_task(store.write(lambda c: meta.put(c, "c", "1")))
    await asyncio.sleep(0)
    running.cancel()
    queued.cancel()
    await asyncio.wait([running, queued])
    go.set()
    await store.write(lambda c: None)
    assert (value(store, "a"), value(store, "b"), value(store, "c")) == ("1", "1", None)


def test_readers_cannot_write(store: Store) -> None:
    with pytest.raises(StoreError), store.read() as connection:
        connection.exec_driver_sql("DELETE FROM meta")


def test_readers_never_pin_the_wal(store: Store, accept: Callable[..., range]) -> None:
    accept(2000)
    with store.read() as connection:
        unfinished = connection.exec_driver_sql("SELECT * FROM journal")
        assert unfinished.fetchone() is not None
        accept(10)
        store._writer.checkpoint("TRUNCATE")
        assert store.wal_bytes() == 0
        assert len(unfinished.fetchmany(5)) == 5
        assert len(unfinished.fetchall()) == 1994  # what it saw when it was asked


def test_readers_see_what_is_committed_and_nothing_else(store: Store) -> None:
    def work(connection: Connection) -> None:
        meta.put(connection, "k", "v")
        with store.read() as reader:
            assert meta.get(reader, "k") is None

    store.write_sync(work)
    assert value(store, "k") == "v"


def test_the_wal_is_checkpointed_on_the_way(store: Store, accept: Callable[..., range]) -> None:
    for _ in range(40):
        accept(10, payload=b"x" * 100_000)  # 40 MB in all
    store.write_sync(lambda c: None)
    assert store.wal_bytes() < 3 * WAL_LIMIT_BYTES


def test_figures(store: Store, accept: Callable[..., range]) -> None:
    before = store.bytes_written()
    accept(1, payload=b"x" * 50_000)
    assert store.free_bytes() > 0
    if before is not None:
        written = store.bytes_written()
        assert written is not None and written - before >= 50_000


def test_only_one_process_owns_a_store(store: Store, path: Path, tmp_path: Path) -> None:
    alias = tmp_path / "alias.db"
    alias.symlink_to(path)
    for name in (path, alias):
        with pytest.raises(StoreLocked, match=f"process {os.getpid()}"):
            Store.open(name)
        ended = subprocess.run(
            [sys.executable, "-c", OPEN, str(name)], capture_output=True, text=True, check=False
        )
        assert ended.returncode == 1 and f"in use by process {os.getpid()}" in ended.stderr


def test_closing_gives_the_store_up_and_leaves_one_file(path: Path) -> None:
    store = Store.open(path)
    store.write_sync(lambda c: meta.put(c, "k", "v"))
    store.close()
    store.close()
    assert sorted(p.name for p in path.parent.iterdir()) == ["andon.db", "andon.db.lock"]
    uses: list[Callable[[], object]] = [
        lambda: store.write_sync(lambda c: None),
        store.checkpoint,
        lambda: value(store, "k"),
    ]
    for use in uses:
        with pytest.raises(StoreError, match="closed"):
            use()
    again = Store.open(path)
    assert value(again, "k") == "v"
    again.close()


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="nowhere: no such folder"):
        Store.open(tmp_path / "nowhere" / "andon.db")
    with pytest.raises(StoreError, match="is a folder"):
        Store.open(tmp_path)


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    store = Store.open(path)
    assert value(store, "k") is None
    store.close()


def _not_a_database(path: Path) -> None:
    path.write_bytes(b"this is a log file, not a database\n" * 400)


def _cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _overwritten_in_the_middle(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[5 * 4096 : 12 * 4096] = os.urandom(7 * 4096)
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [_not_a_database, _cut_short, _overwritten_in_the_middle])
def test_a_damaged_file_is_refused_and_kept(path: Path, damage: Callable[[Path], None]) -> None:
    store = Store.open(path)

    def fill(connection: Connection) -> None:
        for i in range(200):
            meta.put(connection, f"k{i}", "v" * 1000)

    store.write_sync(fill)
    store.close()
    damage(path)
    _touch(path, time.time_ns())  # the clock of files is coarse: the damage came later than the last write
    content = path.read_bytes()
    with pytest.raises(StoreCorrupt, match=r"kept as it is.*andon db check.*backup"):
        Store.open(path)
    assert path.read_bytes() == content
    path.unlink()
    Store.open(path).close()  # the lock was given up, and starting afresh works


def _touch(path: Path, mtime_ns: int) -> None:
    os.utime(path, ns=(mtime_ns, mtime_ns))


def _unseen_damage(path: Path) -> None:
    """In a page that nothing at the start touches, and as if nobody had written to the file."""
    store = Store.open(path)
    store.write_sync(lambda connection: [meta.put(connection, f"k{i}", "v" * 1000) for i in range(200)])
    store.close()
    mtime_ns = path.stat().st_mtime_ns
    with sqlite3.connect(path) as look:
        (page,) = look.execute("SELECT max(pageno) FROM dbstat WHERE name = 'meta'").fetchone()
    look.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(os.urandom(4096))
    _touch(path, mtime_ns)


def test_the_whole_file_is_read_only_after_an_end_that_was_not_clean(path: Path) -> None:
    """What a clean end left and nobody touched is as it was."""
    _unseen_damage(path)
    assert admin.check(path), "a full check finds it"
    store = Store.open(path)
    lock = path.with_name("andon.db.lock")
    assert lock.read_text() == f"{os.getpid()}\n"
    store._lock.release()  # as the kernel does for a process that is killed
    with pytest.raises(StoreCorrupt):
        Store.open(path)
    store.close()


def test_a_file_that_was_written_to_since_is_read_whole(path: Path) -> None:
    _unseen_damage(path)
    _touch(path, path.stat().st_mtime_ns + 1)
    with pytest.raises(StoreCorrupt):
        Store.open(path)


def test_a_file_put_in_the_place_of_the_one_that_was_left_is_read_whole(path: Path) -> None:
    _unseen_damage(path)
    copy = path.with_name("copy.db")
    shutil.copy2(path, copy)
    os.replace(copy, path)
    with pytest.raises(StoreCorrupt):
        Store.open(path)


def test_a_log_that_holds_something_has_the_file_read_whole(path: Path) -> None:
    _unseen_damage(path)
    path.with_name("andon.db-wal").write_bytes(b"left behind")
    with pytest.raises(StoreCorrupt):
        Store.open(path)


def test_the_database_of_another_program_is_refused(path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE notes (text)")
    other.close()
    with pytest.raises(StoreError, match="another program"):
        Store.open(path)


def test_a_newer_database_is_refused(path: Path) -> None:
    Store.open(path).close()
    with sqlite3.connect(path) as other:
        other.execute("UPDATE alembic_version SET version_num = '9999'")
    other.close()
    with pytest.raises(StoreError, match=r"newer andon \(schema 9999"):
        Store.open(path)


def _limit_pages(connection: Connection, pages: int) -> None:
    connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")


def test_a_full_disk_is_survived(store: Store, accept: Callable[..., range]) -> None:
    accept(1)
    store.write_sync(lambda c: _limit_pages(c, 60))
    for _ in range(3):
        with pytest.raises(StoreUnavailable, match="nothing of this was stored"):
            accept(1, payload=b"x" * 1_000_000)
    store.write_sync(lambda c: _limit_pages(c, 100_000))
    assert accept(1) == range(2, 3)
    with store.read() as connection:
        assert [m.seq for m in journal.after(connection, 0, 10)] == [1, 2]


def test_after_a_commit_that_failed_the_next_write_works(store: Store) -> None:
    """COMMIT itself fails (here by a deferred constraint, which leaves the transaction open)."""

    def tables(connection: Connection) -> None:
        connection.exec_driver_sql("CREATE TABLE parent (id INTEGER PRIMARY KEY)")
        connection.exec_driver_sql(
            "CREATE TABLE child (id INTEGER REFERENCES parent (id) DEFERRABLE INITIALLY DEFERRED)"
        )

    def orphan(connection: Connection) -> None:
        meta.put(connection, "k", "lost")
        connection.exec_driver_sql("INSERT INTO child VALUES (7)")

    store.write_sync(tables)
    for _ in range(2):
        with pytest.raises(IntegrityError, match="FOREIGN KEY"):
            store.write_sync(orphan)
    assert value(store, "k") is None
    store.write_sync(lambda c: meta.put(c, "k", "kept"))
    assert value(store, "k") == "kept"


def test_a_rollback_that_sqlite_did_alone_is_not_taken_for_success(store: Store) -> None:
    """SQLite may roll back by itself (full, I/O error); what follows would run outside the transaction."""

    def work(connection: Connection) -> None:
        connection.exec_driver_sql("ROLLBACK")  # as SQLite does, and a careless function would not notice

    with pytest.raises(StoreUnavailable, match="rolled back by SQLite"):
        store.write_sync(work)
    store.write_sync(lambda c: meta.put(c, "k", "v"))
    assert value(store, "k") == "v"


def test_another_programs_lock_is_reported(store: Store, path: Path) -> None:
    store.write_sync(lambda c: c.exec_driver_sql("PRAGMA busy_timeout = 10").all())
    intruder = sqlite3.connect(path, isolation_level=None)
    intruder.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="another program"):
        store.write_sync(lambda c: meta.put(c, "k", "v"))
    intruder.execute("ROLLBACK")
    intruder.close()
    store.write_sync(lambda c: meta.put(c, "k", "v"))


def test_below_the_floor_nothing_is_accepted_but_everything_else_goes_on(
    path: Path, delivery: Callable[..., Delivery]
) -> None:
    store = Store.open(path, StoreConfig(free_floor_mb=2**40))
    with pytest.raises(StoreUnavailable, match="below the floor"):
        store.write_sync(lambda c: journal.append(c, "line7", [delivery()]))
    store.write_sync(lambda c: journal.set_cursor(c, 0))
    store._space.floor_bytes = 0
    assert len(store.write_sync(lambda c: journal.append(c, "line7", [delivery()]))) == 1
    store.close()
