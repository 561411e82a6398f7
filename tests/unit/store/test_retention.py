"""Forgetting: bounded by age and bytes, never what is unfinished, and no counter changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, insert

from pipeline.store import admin, codec, events, journal, records, retention, reviews, seen, unread
from pipeline.store.engine import Store
from pipeline.store.events import UNREAD, EventRow, Kind
from pipeline.store.retention import Purged, purge
from pipeline.store.tables import openings, outbox
from schemas.events import EventId, LogLine
from schemas.ticket import Outcome

NOW = 1_000_000
BEFORE = 500_000
MUCH = 10**12


def settle(store: Store, seqs: range, state: str = Outcome.DISCARD, opening_id: int | None = None) -> None:
    def work(connection: Connection) -> None:
        events.settle(
            connection,
            [EventRow(EventId(seq, 0), "line7", Kind.LINE, state, "r", opening_id) for seq in seqs],
        )
        journal.set_cursor(connection, seqs[-1])

    store.write_sync(work)


def forget(store: Store, max_bytes: int = MUCH, chunk: int = 1000, before_us: int = BEFORE) -> Purged:
    """Everything that may go, as housekeeping does it: chunk by chunk."""
    done = Purged()
    while (step := store.write_sync(lambda c: purge(c, before_us, max_bytes, chunk, now_us=NOW))).total:
        done = Purged(**{name: n + getattr(step, name) for name, n in asdict(done).items()})
    assert admin.check(store.path) == []
    return done


def kept(store: Store) -> list[int]:
    with store.read() as connection:
        return [m.seq for m in journal.after(connection, 0, 10_000)]


@pytest.mark.parametrize("chunk", [1, 3, 1000])
def test_old_messages_go_and_their_counts_stay(
    store: Store, accept: Callable[..., range], chunk: int
) -> None:
    accept(7, received_at_us=BEFORE - 1)
    accept(3, received_at_us=BEFORE)
    settle(store, range(1, 11))
    with store.read() as connection:
        before = events.counts(connection)
    assert forget(store, chunk=chunk) == Purged(messages=7, events=7)
    assert kept(store) == [8, 9, 10]
    with store.read() as connection:
        assert events.counts(connection) == before
        assert events.get(connection, EventId(7, 0)) is None


def test_beyond_the_bytes_the_oldest_go_however_young(store: Store, accept: Callable[..., range]) -> None:
    accept(10, payload=b"x" * 100, received_at_us=NOW)
    settle(store, range(1, 11))
    assert forget(store, max_bytes=450).messages == 6
    assert kept(store) == [7, 8, 9, 10]
    with store.read() as connection:
        assert retention.stored_bytes(connection) == 400


def test_nothing_unfinished_goes(store: Store, accept: Callable[..., range]) -> None:
    accept(9, payload=b"x" * 100, received_at_us=1)
    settle(store, range(1, 4))
    settle(store, range(4, 5), UNREAD)
    settle(store, range(5, 6), Outcome.REVIEW)
    settle(store, range(7, 8))

    def work(connection: Connection) -> None:
        line = LogLine(EventId(4, 0), "line7", "t", "x", codec.from_us(1))
        unread.put(connection, [unread.UnreadRow(line, "p", "s", "", 0, 1)])
        reviews.put(connection, [reviews.NewReview(EventId(5, 0), "line7", "t", "g", "unsure", 1)])
        records.put(connection, [records.OpenRecord("line7", "t", EventId(6, 0), "x", 1, 1)])

    store.write_sync(work)
    assert forget(store, max_bytes=0).messages == 4
    assert kept(store) == [4, 5, 6, 8, 9]  # unread, in review, open, not decoded yet


@pytest.mark.parametrize(
    ("stamps", "gone"),
    [
        ([1, 1, NOW, 1], 2),  # the clock fell back: what came later is not older
        ([1, NOW + 5, 1, NOW], 3),  # it ran ahead for a moment
        ([1, NOW + 5, NOW + 5], 1),
        ([1, NOW + 5, NOW, 1], 1),
    ],
)
def test_a_wrong_clock_does_not_confuse_age(
    store: Store, accept: Callable[..., range], stamps: list[int], gone: int
) -> None:
    for stamp in stamps:
        accept(1, received_at_us=stamp)
    settle(store, range(1, len(stamps) + 1))
    assert forget(store).messages == gone


def test_digests_and_answered_questions_have_their_own_limits(
    store: Store, accept: Callable[..., range]
) -> None:
    accept(1, received_at_us=NOW)

    def work(connection: Connection) -> None:
        seen.add(connection, [seen.SeenRow(bytes([n]) * 16, EventId(1, 0), n) for n in range(10)])
        reviews.put(
            connection, [reviews.NewReview(EventId(1, n), "l", "t", "g", "unsure", 1) for n in range(4)]
        )
        for n in range(1, 4):
            reviews.resolve(connection, n, reviews.ReviewState.APPROVED, "ann", n * 10)
        done = purge(connection, 0, MUCH, now_us=NOW, seen_before_us=6, reviews_before_us=25)
        assert done == Purged(seen=6, reviews=2)
        assert reviews.get(connection, 3) is not None and reviews.get(connection, 4) is not None

    store.write_sync(work)


def opening(number: int, cause: str = "E7", **given: object) -> dict[str, object]:
    return {
        "subject": "p7",
        "cause": cause,
        "number": number,
        "severity": "error",
        "source": "line7",
        "topic": "t",
        "scope": "p7",
        "line": "x",
        "opened_seq": number,
        "opened_idx": 0,
        "last_seq": 1,
        "last_idx": 0,
        "occurrences": 1,
        "first_seen_us": 1,
        "last_seen_us": 1,
        "cleared_seq": 1,
        "cleared_idx": 0,
        "cleared_at_us": 1,
        "ticket_key": f"{cause}-{number}",
    } | given


def test_openings_go_when_all_is_done_but_never_the_last_of_a_key(
    store: Store, accept: Callable[..., range]
) -> None:
    """The last number makes the next idempotency key: forgotten, a new fault would pass for an old one."""
    rows = [
        opening(1),  # goes
        opening(2, cleared_at_us=BEFORE),  # cleared too recently
        opening(3),  # its ticket waits in the outbox
        opening(4),  # goes
        opening(5),  # an event that is kept belongs to it
        opening(6),  # the highest number of its key
        opening(1, "E8", opened_seq=9),  # the last of its key by position, though found first
        opening(2, "E8"),  # the highest number
        opening(1, "E9", cleared_seq=None, cleared_at_us=None),  # open
    ]
    states = ["sent", "sent", "unknown", "cancelled", *["sent"] * 5]
    accept(1, received_at_us=NOW)

    def work(connection: Connection) -> None:
        known = {column.name for column in openings.columns}
        for id, (row, state) in enumerate(zip(rows, states, strict=True), 1):
            values = {name: value for name, value in row.items() if name in known}
            connection.execute(insert(openings).values(id=id, **values))
            ticket = {"key": f"k{id}", "sink": "board", "opening_id": id, "ticket": {}, "state": state}
            connection.execute(insert(outbox).values(**ticket, next_try_at_us=0, created_at_us=0))

    store.write_sync(work)
    settle(store, range(1, 2), Outcome.TICKET, opening_id=5)
    assert forget(store).openings == 2
    with store.read() as connection:
        left = "SELECT o.id FROM openings AS o JOIN outbox AS x ON x.opening_id = o.id ORDER BY 1"
        assert connection.exec_driver_sql(left).scalars().all() == [2, 3, 5, 6, 7, 8, 9]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    messages=st.lists(
        st.tuples(st.integers(0, NOW + 10), st.integers(0, 50), st.sampled_from([UNREAD, *Outcome])),
        max_size=12,
    ),
    pending=st.integers(0, 3),
    max_bytes=st.integers(0, 300),
    chunk=st.integers(1, 5),
)
def test_whatever_goes_was_finished_and_the_sums_hold(
    store: Store,
    accept: Callable[..., range],
    messages: list[tuple[int, int, str]],
    pending: int,
    max_bytes: int,
    chunk: int,
) -> None:
    unfinished: set[int] = set()
    for stamp, size, state in messages:
        seq = accept(1, received_at_us=stamp, payload=b"x" * size)[0]

        def work(connection: Connection, seq: int = seq, state: str = state) -> None:
            id = EventId(seq, 0)
            of = EventId(seq, 1) if state in (Outcome.REPEAT, Outcome.PART_OF) else None
            rows = [EventRow(id, "line7", Kind.LINE, state, "r", of=of)]
            if of is not None:
                rows.append(EventRow(of, "line7", Kind.LINE, Outcome.DISCARD, "r"))
            events.settle(connection, rows)
            if state == UNREAD:
                line = LogLine(id, "line7", "t", "x", codec.from_us(1))
                unread.put(connection, [unread.UnreadRow(line, "p", "s", "", 0, 1)])
            if state == Outcome.REVIEW:
                reviews.put(connection, [reviews.NewReview(id, "line7", "t", "g", "unsure", 1)])
            journal.set_cursor(connection, seq)

        store.write_sync(work)
        if state in (UNREAD, Outcome.REVIEW):
            unfinished.add(seq)
    unfinished |= set(accept(pending, received_at_us=0))
    with store.read() as connection:
        before = events.counts(connection)
    forget(store, max_bytes, chunk)
    assert unfinished <= set(kept(store))
    with store.read() as connection:
        assert events.counts(connection) == before
        held = sum(len(m.payload) for m in journal.after(connection, 0, 10_000) if m.seq in unfinished)
        assert retention.stored_bytes(connection) <= max(max_bytes, 0) + held
    store.write_sync(_finish)


def _finish(connection: Connection) -> None:
    """Decode and answer everything: the examples share a store, and each begins with nothing unfinished."""
    for message in journal.after(connection, journal.cursor(connection), 100):
        row = EventRow(EventId(message.seq, 0), message.source, Kind.LINE, Outcome.DISCARD, "r")
        events.settle(connection, [row])
        journal.set_cursor(connection, message.seq)
    for group in unread.groups(connection, 100):
        ids = [id for id, _ in unread.take(connection, group, 100)]
        rows = [EventRow(id, "line7", Kind.LINE, Outcome.DISCARD, "r") for id in ids]
        events.move_all(connection, UNREAD, rows)
        unread.remove(connection, ids)
    for review in reviews.of_group(connection, "g", 100):
        reviews.resolve(connection, review.review_id, reviews.ReviewState.REJECTED, "ann", 1)
        row = EventRow(review.asked.id, "line7", Kind.LINE, Outcome.DISCARD, "rejected")
        events.move_all(connection, Outcome.REVIEW, [row])
