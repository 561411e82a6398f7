"""The smaller tables: what waits, what is asked, what was seen, what is being read, what is in force."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, select

from pipeline.store import attempts, codec, records, reviews, seen, sites, unread
from pipeline.store.engine import Store
from pipeline.store.reviews import NewReview, ReviewState
from pipeline.store.seen import SeenRow
from pipeline.store.tables import audit
from pipeline.store.unread import Group, UnreadRow
from schemas.events import EventId, LogLine, Reading
from schemas.extraction import Null

NOW = datetime(2026, 3, 1, 12, 0, 0, 123_457, tzinfo=UTC)


@pytest.fixture
def conn(store: Store) -> Iterator[Connection]:
    """A connection for tests of single functions: one transaction, never committed."""
    with store._writer._engine.connect() as connection:
        yield connection


def line(seq: int, text: str = "text", index: int = 0) -> LogLine:
    return LogLine(EventId(seq, index), "line7", "plant/p7/log", text, NOW, asset="p7", retain=True)


# codec

texts = st.text(st.characters(), max_size=20)  # lone surrogates and NUL included
optional = st.none() | texts
moments = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))
lines = st.builds(
    LogLine,
    st.builds(EventId, st.integers(1), st.integers(0)),
    texts,
    texts,
    texts,
    moments,
    optional,
    st.booleans(),
)
readings = st.builds(
    Reading,
    id=st.builds(EventId, st.integers(1), st.integers(0)),
    source=texts,
    topic=texts,
    metric=texts,
    value=st.none() | st.floats(allow_nan=False) | st.integers(-(2**70), 2**70),
    received_at=moments,
    null=st.none() | st.sampled_from(Null),
    asset=optional,
    time=st.none() | moments,
    written=texts,
)


@given(event=lines | readings)
def test_any_event_survives_json(event: LogLine | Reading) -> None:
    stored = json.loads(json.dumps(codec.dump_event(event)))
    assert codec.load_event(event.id, stored) == event


def test_events_of_another_version_are_read() -> None:
    row = codec.dump_event(line(1)) | {"of_a_newer_andon": 1}
    del row["repeated"]  # of an older one
    assert codec.load_event(EventId(1, 0), row) == line(1)


@given(
    moment=st.datetimes(
        datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(timezone(timedelta(hours=2)))
    )
)
def test_times_are_exact_to_the_microsecond(moment: datetime) -> None:
    assert codec.from_us(codec.to_us(moment)) == moment


# unread


def waiting(
    seq: int, signature: str = "sig", rank: int = 0, queued_at_us: int = 0, variant: str = ""
) -> UnreadRow:
    return UnreadRow(line(seq), "machine-log", signature, variant, rank, queued_at_us)


def test_groups_come_most_urgent_first_then_largest_then_oldest(conn: Connection) -> None:
    unread.put(
        conn,
        [
            *[waiting(n, "many", queued_at_us=50) for n in (1, 2, 3)],
            waiting(4, "young", queued_at_us=99),
            waiting(5, "old", queued_at_us=10),
            waiting(6, "urgent", rank=3, queued_at_us=77),
            waiting(7, "urgent", queued_at_us=70),
            waiting(8, "urgent", variant="FAULT", queued_at_us=98),
            waiting(9, "\ud800", rank=2, queued_at_us=1),
        ],
    )
    assert [(g.signature, g.variant, g.n, g.rank, g.oldest_us) for g in unread.groups(conn, 9)] == [
        ("urgent", "", 2, 3, 70),
        ("\ud800", "", 1, 2, 1),
        ("many", "", 3, 0, 50),
        ("old", "", 1, 0, 10),
        ("urgent", "FAULT", 1, 0, 98),
        ("young", "", 1, 0, 99),
    ]
    assert len(unread.groups(conn, 2)) == 2
    assert unread.size(conn) == 9


def test_a_group_is_taken_in_order_and_stays_until_it_is_removed(conn: Connection) -> None:
    unread.put(conn, [waiting(n) for n in (3, 1, 2)])
    group = Group("machine-log", "sig", "", 3, 0, 0)
    assert unread.take(conn, group, 2) == [(EventId(n, 0), line(n)) for n in (1, 2)]
    unread.remove(conn, [EventId(1, 0), EventId(3, 0)])
    assert [id for id, _ in unread.take(conn, group, 9)] == [EventId(2, 0)]


def test_overdue_means_urgent_and_waiting_too_long(conn: Connection) -> None:
    unread.put(conn, [waiting(1, rank=2, queued_at_us=9), waiting(2, rank=3, queued_at_us=5)])
    unread.put(conn, [waiting(3, rank=3, queued_at_us=10), waiting(4, rank=1, queued_at_us=1)])
    assert unread.overdue(conn, 10, 2, 9) == [
        waiting(2, rank=3, queued_at_us=5),
        waiting(1, rank=2, queued_at_us=9),
    ]
    assert len(unread.overdue(conn, 10, 2, 1)) == 1


# reviews


def question(seq: int, group: str = "g", severity: str | None = None) -> NewReview:
    return NewReview(
        EventId(seq, 0),
        "line7",
        "a\ud800",
        group,
        "unsure_severity",
        seq * 10,
        {"text": "\ud800"},
        {"fields": {"device": None}},
        5,
        severity,
    )


def test_one_event_is_asked_once_a_group_while_it_is_open(conn: Connection) -> None:
    assert reviews.put(conn, [question(1), question(1), question(1, "other")]) == 2
    assert reviews.put(conn, [question(1)]) == 0
    assert reviews.resolve(conn, 1, ReviewState.APPROVED, "ann", 99)
    assert reviews.put(conn, [question(1)]) == 1
    assert reviews.open_count(conn) == 2


def test_groups_of_questions_come_most_severe_first(conn: Connection) -> None:
    reviews.put(conn, [question(n, "big") for n in (1, 2, 3)])
    reviews.put(
        conn, [question(4, "small"), question(5, "grave", "warning"), question(6, "grave", "critical")]
    )
    found = [(g.group_key, g.n, g.severity, g.oldest_us, g.pattern_id) for g in reviews.groups(conn, 9)]
    assert found == [("grave", 2, "critical", 50, 5), ("big", 3, None, 10, 5), ("small", 1, None, 40, 5)]
    assert [r.asked for r in reviews.of_group(conn, "big", 2)] == [question(n, "big") for n in (1, 2)]


def test_an_answer_compares_before_it_sets_and_leaves_a_trace(conn: Connection) -> None:
    reviews.put(conn, [question(1)])
    assert not reviews.resolve(conn, 2, ReviewState.APPROVED, "ann", 99)
    assert reviews.resolve(conn, 1, ReviewState.CORRECTED, "ann", 99, {"device": "p7"})
    assert not reviews.resolve(conn, 1, ReviewState.REJECTED, "bob", 100)
    answered = reviews.get(conn, 1)
    assert answered is not None
    assert (answered.state, answered.resolved_by, answered.resolved_at_us) == (
        ReviewState.CORRECTED,
        "ann",
        99,
    )
    assert answered.resolution == {"device": "p7"} and answered.asked == question(1)
    trace = conn.execute(select(audit)).one()
    assert (trace.at_us, trace.who, trace.what) == (99, "ann", "review.corrected 1")
    assert trace.before == {"state": "open", "resolution": None}
    assert trace.after == {"state": "corrected", "resolution": {"device": "p7"}}


def test_an_answer_can_be_taken_back_unless_the_same_is_asked_again(conn: Connection) -> None:
    reviews.put(conn, [question(1)])
    assert reviews.resolve(conn, 1, ReviewState.APPROVED, "ann", 99)
    assert reviews.resolve(conn, 1, ReviewState.OPEN, "ann", 100, from_state=ReviewState.APPROVED)
    reopened = reviews.get(conn, 1)
    assert reopened is not None and reopened.resolved_by is None and reopened.resolution is None
    assert reviews.resolve(conn, 1, ReviewState.APPROVED, "ann", 101)
    reviews.put(conn, [question(1)])
    assert not reviews.resolve(conn, 1, ReviewState.OPEN, "ann", 102, from_state=ReviewState.APPROVED)


# seen


def digest(n: int) -> bytes:
    return n.to_bytes(seen.DIGEST_BYTES, "big")


def test_a_digest_is_known_within_its_window_only(conn: Connection) -> None:
    seen.add(conn, [SeenRow(digest(n), EventId(n, 0), n * 10) for n in range(3000)])
    found = seen.find(conn, [digest(n) for n in (0, 7, 2999, 5000, 7)], since_us=70)
    assert found == {digest(7): EventId(7, 0), digest(2999): EventId(2999, 0)}
    assert len(seen.find(conn, map(digest, range(3000)), since_us=0)) == 3000
    seen.add(conn, [SeenRow(digest(0), EventId(9000, 1), 90_000)])
    assert seen.find(conn, [digest(0)], since_us=70) == {digest(0): EventId(9000, 1)}


# open records


def test_there_is_one_open_record_a_source_and_topic(conn: Connection) -> None:
    first = records.OpenRecord("line7", "t\ud800", EventId(4, 0), "Traceback\n", 1, 10)
    grown = records.OpenRecord("line7", "t\ud800", EventId(4, 0), "Traceback\n  File\x00", 2, 20)
    other = records.OpenRecord("line8", "t\ud800", EventId(5, 0), "x", 1, 10)
    records.put(conn, [first, other])
    records.put(conn, [grown])
    assert records.load(conn) == [grown, other]
    assert records.load(conn, "line8") == [other]
    records.close(conn, "line7", "t\ud800")
    assert records.load(conn) == [other]


# site versions


def test_the_site_file_of_any_message_is_known(conn: Connection) -> None:
    assert sites.in_force(conn) is None and sites.version_of(conn, 1) is None
    sites.put(conn, "h1", "site: a", 5)
    sites.decoded_with(conn, 1, "h1")
    sites.decoded_with(conn, 50, "h1")
    sites.put(conn, "h2", "site: b", 6)
    sites.decoded_with(conn, 100, "h2")
    sites.put(conn, "h1", "site: a", 7)
    sites.decoded_with(conn, 200, "h1")
    assert [sites.version_of(conn, seq) for seq in (1, 99, 100, 199, 200, 999)] == [
        "h1",
        "h1",
        "h2",
        "h2",
        "h1",
        "h1",
    ]
    assert sites.in_force(conn) == "h1" and sites.text(conn, "h2") == "site: b"
    assert conn.exec_driver_sql("SELECT count(*) FROM site_spans").scalar() == 3


# attempts of the model


def ids(*seqs: int) -> list[EventId]:
    return [EventId(seq, 0) for seq in seqs]


def suspects(connection: Connection, blame: bool = True) -> dict[int, int]:
    return {suspect.id.seq: suspect.deaths for suspect in attempts.after_death(connection, blame)}


def test_a_reading_that_came_back_leaves_no_suspicion(conn: Connection) -> None:
    attempts.begin(conn, "a", ids(1, 2))
    attempts.finish(conn, "a")
    assert suspects(conn) == {}


def test_only_a_line_that_was_alone_is_blamed(conn: Connection) -> None:
    attempts.begin(conn, "a", ids(1, 2, 3))
    assert suspects(conn) == {1: 0, 2: 0, 3: 0}
    for seq in (1, 3):
        attempts.begin(conn, f"alone {seq}", ids(seq))
        attempts.finish(conn, f"alone {seq}")
    attempts.begin(conn, "alone 2", ids(2))
    assert suspects(conn) == {2: 1}
    attempts.begin(conn, "alone 2 again", ids(2))
    assert suspects(conn, blame=False) == {2: 1}  # killed from outside
    attempts.begin(conn, "alone 2 once more", ids(2))
    assert suspects(conn) == {2: 2}
    attempts.clear(conn, ids(2))
    assert suspects(conn) == {}
