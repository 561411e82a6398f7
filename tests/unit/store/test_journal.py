"""The journal: what is accepted comes back byte for byte, in order, under numbers never given twice."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from connectors.base import Delivery
from pipeline.store import journal
from pipeline.store.engine import Store
from pipeline.store.events import EventRow, Kind, settle
from pipeline.store.retention import purge
from schemas.events import EventId, Message
from schemas.ticket import Outcome

PAYLOADS = [
    b"",
    b"\x00\x00",
    b"a\x00b",
    bytes(range(256)),
    b'{"v": 1e400, "n": 9223372036854775808, "x": NaN}',
    b"[" * 1500 + b"]" * 1500,
    b"\xed\xa0\x80",
    b"x" * 2_000_000,
]
TOPICS = ["plant/p7", "", "a\x00b", "\ud800lone", "厂/七", "\U0001f525"]


def test_any_payload_and_topic_come_back_as_they_came(store: Store, accept: Callable[..., range]) -> None:
    cases = list(itertools.product(PAYLOADS, TOPICS))
    for payload, topic in cases:
        accept(1, payload=payload, topic=topic, retain=True, duplicate=True, received_at_us=1)
    with store.read() as connection:
        assert [(m.payload, m.topic) for m in journal.after(connection, 0, 100)] == cases
        message = journal.get(connection, 1)
    assert message == Message(
        seq=1,
        source="line7",
        topic=TOPICS[0],
        payload=PAYLOADS[0],
        received_at=datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
        qos=1,
        retain=True,
        duplicate=True,
        mid=0,
        connection="c1",
    )


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    batches=st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 5)), max_size=8), limit=st.integers(1, 7)
)
def test_order_is_arrival_order_whatever_the_batches(
    store: Store, accept: Callable[..., range], batches: list[tuple[str, int]], limit: int
) -> None:
    with store.read() as connection:
        start = journal.last_seq(connection)
    accepted: list[tuple[int, str]] = []
    for source, n in batches:
        accepted += [(seq, source) for seq in accept(n, source=source)]
    assert [seq for seq, _ in accepted] == list(range(start + 1, start + 1 + len(accepted)))
    found: list[tuple[int, str]] = []
    at = start
    with store.read() as connection:
        while page := journal.after(connection, at, limit):
            found += [(m.seq, m.source) for m in page]
            at = page[-1].seq
    assert found == accepted


def test_a_rolled_back_batch_leaves_no_gap(
    store: Store, accept: Callable[..., range], delivery: Callable[..., Delivery]
) -> None:
    accept(2)

    def fails(connection: Connection) -> None:
        assert journal.append(connection, "line7", [delivery()] * 3) == range(3, 6)
        raise LookupError

    with pytest.raises(LookupError):
        store.write_sync(fails)
    assert accept(1) == range(3, 4)


def test_a_number_is_never_given_twice_even_when_all_is_forgotten(
    store: Store, accept: Callable[..., range]
) -> None:
    accept(3, received_at_us=0)

    def forget(connection: Connection) -> None:
        settle(connection, [EventRow(EventId(n, 0), "line7", Kind.LINE, Outcome.DISCARD) for n in (1, 2, 3)])
        journal.set_cursor(connection, 3)
        assert purge(connection, before_us=1, max_bytes=10**9, now_us=2).messages == 3

    store.write_sync(forget)
    assert accept(1) == range(4, 5)
    with store.read() as connection:
        assert journal.get(connection, 1) is None
        assert journal.last_seq(connection) == 4


def test_the_cursor_starts_at_zero_and_stays_where_it_is_put(store: Store) -> None:
    with store.read() as connection:
        assert journal.cursor(connection) == 0
    store.write_sync(lambda c: journal.set_cursor(c, 2**40))
    with store.read() as connection:
        assert journal.cursor(connection) == 2**40


def test_the_tail_is_what_one_connection_of_one_source_may_not_have_confirmed(
    store: Store, accept: Callable[..., range]
) -> None:
    accept(3, connection="old")  # 1..3
    accept(2, source="other", connection="old")  # 4..5
    accept(1, connection="old", qos=0)  # 6: no one confirms QoS 0
    accept(2, connection="old")  # 7..8
    accept(1, connection="new")  # 9
    with store.read() as connection:
        assert [m.seq for m in journal.tail(connection, "line7", "old", 3)] == [3, 7, 8]
        assert [m.seq for m in journal.tail(connection, "line7", "old", 99)] == [1, 2, 3, 7, 8]
        assert [m.seq for m in journal.tail(connection, "line7", "never", 9)] == []
        assert journal.last_connection(connection, "line7") == "new"
        assert journal.last_connection(connection, "other") == "old"
        assert journal.last_connection(connection, "unknown") == ""


def test_the_tail_of_a_quiet_source_is_found_by_index(store: Store) -> None:
    with store.read() as connection:
        plan = connection.exec_driver_sql(
            "EXPLAIN QUERY PLAN SELECT * FROM journal WHERE qos > 0 AND source = 'a' AND connection = 'b' "
            "ORDER BY seq DESC LIMIT 5"
        ).all()
    assert ["ix_journal_confirmable" in row[3] for row in plan] == [True]  # and no sort


def test_what_is_known_of_a_source_is_kept_apart(
    store: Store, accept: Callable[..., range], delivery: Callable[..., Delivery]
) -> None:
    position = {"inode": 7, "offset": 2**60, "name": "a\ud800"}
    store.write_sync(lambda c: journal.append(c, "file", [delivery(connection="")], position))
    store.write_sync(lambda c: journal.set_encoding(c, "file", "gb18030"))
    store.write_sync(lambda c: journal.set_encoding(c, "line7", "cp1252"))
    accept(1)
    with store.read() as connection:
        assert journal.position(connection, "file") == position
        assert journal.position(connection, "line7") == {}
        assert journal.encoding(connection, "file") == "gb18030"
        assert journal.encoding(connection, "line7") == "cp1252"
        assert journal.encoding(connection, "unknown") is None
        assert journal.last_connection(connection, "line7") == "c1"
