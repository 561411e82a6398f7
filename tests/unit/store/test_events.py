"""Events: exactly one state each, moves that compare first, and sums that always add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import astuple
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from pipeline.store import admin, codec, events, journal, records, reviews, totals, unread
from pipeline.store.engine import Store
from pipeline.store.events import OPENED, UNREAD, Counts, EventRow, Kind
from schemas.events import EventId, LogLine
from schemas.ticket import Outcome, Settlement

STATES = [UNREAD, *Outcome]


def row(seq: int, index: int, state: str, reason: str = "", **given: Any) -> EventRow:
    of = EventId(seq, index + 1) if state in (Outcome.REPEAT, Outcome.PART_OF) else None
    return EventRow(EventId(seq, index), "line7", Kind.LINE, state, reason, of=of, **given)


def counts(store: Store) -> Counts:
    with store.read() as connection:
        found = events.counts(connection)
    outcomes = (
        found.tickets + found.occurrences + found.review + found.discarded + found.repeats + found.part_of
    )
    assert found.events == outcomes + found.pending
    assert found.pending == found.unread + found.undecoded + found.open_records
    return found


def test_a_new_store_counts_nothing(store: Store) -> None:
    assert set(astuple(counts(store))) == {0}


def test_an_undecoded_message_is_one_pending_event(store: Store, accept: Callable[..., range]) -> None:
    accept(3)
    found = counts(store)
    assert (found.messages, found.events, found.pending, found.undecoded) == (3, 3, 3, 3)


def test_every_outcome_has_its_figure(store: Store, accept: Callable[..., range]) -> None:
    accept(2)

    def work(connection: Connection) -> None:
        events.settle(
            connection,
            [
                row(1, 0, UNREAD),
                row(1, 1, Outcome.TICKET, OPENED),
                row(1, 2, Outcome.TICKET, "occurrence"),
                row(1, 3, Outcome.TICKET, "reopened_late"),
                row(1, 4, Outcome.REVIEW, "unsure_severity"),
                row(1, 5, Outcome.DISCARD, "routine"),
                row(1, 6, Outcome.REPEAT, "redelivered"),
                row(1, 7, Outcome.PART_OF, "continuation"),
                EventRow(EventId(1, 8), "line7", Kind.READING, Outcome.DISCARD, "routine"),
                EventRow(EventId(1, 9), "line7", Kind.UNDECODABLE, Outcome.REVIEW, "undecodable"),
            ],
        )
        records.put(connection, [records.OpenRecord("line7", "t", EventId(2, 0), "Traceback", 1, 5)])
        journal.set_cursor(connection, 2)

    store.write_sync(work)
    assert counts(store) == Counts(
        messages=2,
        events=11,
        lines=8,
        readings=1,
        undecodable=1,
        tickets=1,
        occurrences=2,
        review=2,
        discarded=2,
        repeats=1,
        part_of=1,
        pending=2,
        unread=1,
        undecoded=0,
        open_records=1,
    )


def test_an_event_is_settled_once(store: Store, accept: Callable[..., range]) -> None:
    accept(1)
    store.write_sync(lambda c: events.settle(c, [row(1, 0, UNREAD)]))
    with pytest.raises(IntegrityError):
        store.write_sync(lambda c: events.settle(c, [row(1, 1, UNREAD), row(1, 0, Outcome.DISCARD)]))
    with store.read() as connection:
        assert events.get(connection, EventId(1, 1)) is None
        assert [t for t in totals.totals(connection) if t.outcome in STATES] == [("line7", UNREAD, "", 1)]


def test_an_event_comes_back_as_it_was_written(store: Store, accept: Callable[..., range]) -> None:
    accept(1)
    written = EventRow(
        EventId(1, 3), "line7", Kind.READING, Outcome.REPEAT, "redelivered", 7, 9, EventId(1, 0)
    )
    store.write_sync(lambda c: events.settle(c, [written]))
    with store.read() as connection:
        assert events.get(connection, EventId(1, 3)) == written


def test_a_move_compares_before_it_sets(store: Store, accept: Callable[..., range]) -> None:
    accept(1)
    id = EventId(1, 0)
    store.write_sync(lambda c: events.settle(c, [row(1, 0, Outcome.REVIEW, "unsure", pattern_id=4)]))
    ticket = Settlement(id, Outcome.TICKET, OPENED, alarm_id=12)
    rejected = Settlement(id, Outcome.DISCARD, "rejected")

    def work(connection: Connection) -> None:
        assert not events.move(connection, id, UNREAD, ticket)
        assert events.move(connection, id, Outcome.REVIEW, ticket)
        assert not events.move(connection, id, Outcome.REVIEW, rejected)
        assert not events.move(connection, EventId(99, 0), Outcome.REVIEW, rejected)
        assert events.get(connection, id) == EventRow(
            id, "line7", Kind.LINE, Outcome.TICKET, OPENED, opening_id=12, pattern_id=4
        )

    store.write_sync(work)
    assert counts(store).tickets == 1 and counts(store).review == 0


def test_many_move_at_once_and_each_only_once(store: Store, accept: Callable[..., range]) -> None:
    n = 5000
    accept(1)
    store.write_sync(lambda c: events.settle(c, [row(1, i, UNREAD, "new") for i in range(n)]))
    going = [row(1, i, Outcome.DISCARD, "routine") for i in (*range(0, n, 2), 0, 2, n + 7)]

    def work(connection: Connection) -> None:
        moved = events.move_all(connection, UNREAD, going)
        assert moved == {EventId(1, i) for i in range(0, n, 2)}
        assert events.move_all(connection, UNREAD, going) == set()

    store.write_sync(work)
    with store.read() as connection:
        found = {t.outcome: t.n for t in totals.totals(connection) if t.outcome in STATES}
    assert found == {UNREAD: n // 2, Outcome.DISCARD: n // 2}


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    first=st.lists(st.sampled_from(STATES), min_size=1, max_size=12),
    moves=st.lists(
        st.tuples(st.integers(0, 12), st.sampled_from(STATES), st.sampled_from(STATES)), max_size=12
    ),
)
def test_sums_add_up_after_any_moves(
    store: Store, accept: Callable[..., range], first: list[str], moves: list[tuple[int, str, str]]
) -> None:
    """A model of the table, kept beside it: states and counters agree with it, and `check` finds nothing."""
    seq = accept(1)[0]
    model = {i: str(state) for i, state in enumerate(first)}

    def work(connection: Connection) -> None:
        before = Counter({t.outcome: t.n for t in _by_state(connection)})
        events.settle(connection, [row(seq, i, state) for i, state in model.items()])
        for index, start, end in moves:
            moved = events.move_all(connection, start, [row(seq, index, end)])
            assert bool(moved) == (model.get(index) == start)
            if moved:
                model[index] = str(end)
        _keep_the_promises(connection, seq, model)
        after = Counter({t.outcome: t.n for t in _by_state(connection)})
        after.subtract(before)
        assert {state: n for state, n in after.items() if n} == dict(Counter(model.values()))

    store.write_sync(work)
    counts(store)
    assert admin.check(store.path) == []


def _by_state(connection: Connection) -> list[totals.Total]:
    summed: Counter[str] = Counter()
    for total in totals.totals(connection):
        summed[total.outcome] += total.n
    return [totals.Total("", state, "", summed[state]) for state in map(str, STATES)]


def _keep_the_promises(connection: Connection, seq: int, model: dict[int, str]) -> None:
    """The rows that go with each state: unread lines wait, reviews are asked, originals exist."""
    for index, state in model.items():
        id = EventId(seq, index)
        line = LogLine(id, "line7", "t", "text", codec.from_us(0))
        if state == UNREAD:
            unread.put(connection, [unread.UnreadRow(line, "p", "sig", "", 0, 0)])
        if state == Outcome.REVIEW:
            reviews.put(connection, [reviews.NewReview(id, "line7", "t", f"g{id}", "unsure", 0)])
    last = max(model)
    if model[last] in (Outcome.REPEAT, Outcome.PART_OF):
        events.settle(connection, [row(seq, last + 1, Outcome.DISCARD)])
        model[last + 1] = str(Outcome.DISCARD)
    journal.set_cursor(connection, seq)
