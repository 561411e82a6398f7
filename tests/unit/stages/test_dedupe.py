"""Redelivery is removed, and nothing that only looks like it."""

from __future__ import annotations

from typing import Any

import pytest
from making import NOW, journaled, line, memory, message

from pipeline.stages import dedupe
from pipeline.stages.dedupe import Folded, History, Redelivery, content_digest, dated, fold, history
from pipeline.store.seen import DIGEST_BYTES
from schemas.events import EventId, LogLine, Message
from schemas.ticket import Outcome

STAMPED = "2026-01-05 08:00:01 ERROR drive F30002"


def over(connection: str, seq: int, mid: int, payload: bytes = b"x", **given: Any) -> Message:
    return message(payload, seq, connection=connection, mid=mid, qos=given.pop("qos", 1), **given)


def repeats(messages: list[Message], receive_maximum: int = 4) -> dict[int, int]:
    """Which message is taken for a repeat of which, as the settle lane asks: journal first, then in order."""
    engine = memory()
    redelivery = Redelivery(receive_maximum)
    found = {}
    with engine.begin() as connection:
        journaled(connection, messages)
        for each in messages:
            if not redelivery.knows(each):
                redelivery.begin(each.connection, history(connection, each, receive_maximum))
            settled = redelivery.repeat_of(each)
            if settled is not None:
                assert (settled.outcome, settled.reason) == (Outcome.REPEAT, dedupe.REDELIVERED)
                assert settled.of is not None
                found[settled.id.seq] = settled.of.seq
    return found


def test_what_a_connection_left_unconfirmed_comes_again_once() -> None:
    first = [over("a", seq, mid=seq) for seq in (1, 2, 3)]
    again = [over("b", 4, mid=2), over("b", 5, mid=3), over("b", 6, mid=4)]
    assert repeats([*first, *again]) == {4: 2, 5: 3}
    twice = [over("b", 4, mid=3), over("b", 5, mid=3)]
    assert repeats([*first, *twice]) == {4: 3}, "each original is matched once"


@pytest.mark.parametrize(
    "other",
    [
        {"mid": 9},
        {"payload": b"y"},
        {"topic": "plant/p8/log"},
        {"qos": 0},
    ],
)
def test_what_differs_is_new(other: dict[str, Any]) -> None:
    assert repeats([over("a", 1, 5), over("b", 2, **{"mid": 5, **other})]) == {}


def test_equal_messages_of_one_connection_are_two() -> None:
    assert repeats([over("a", 1, 5), over("a", 2, 5), over("a", 3, 5)]) == {}


def test_the_duplicate_flag_tells_nothing() -> None:
    assert repeats([over("a", 1, 5), over("b", 2, 6, duplicate=True)]) == {}
    assert repeats([over("a", 1, 5), over("b", 2, 5, duplicate=False)]) == {2: 1}


def test_only_the_first_messages_of_a_connection_can_be_repeats() -> None:
    first = [over("a", seq, mid=seq) for seq in (1, 2, 3, 4)]
    new = [over("b", 4 + n, mid=10 + n) for n in range(1, 5)]
    assert repeats([*first, *new, over("b", 9, mid=4)]) == {}
    assert repeats([*first, *new[:3], over("b", 9, mid=4)]) == {9: 4}


def test_a_broker_that_sends_more_than_its_window_marks_what_comes_again() -> None:
    """Mosquitto 2.0.11 keeps to no Receive Maximum: a whole journal batch and more may be unconfirmed."""
    first = [over("a", seq, mid=seq) for seq in range(1, 21)]
    again = [over("b", 20 + seq, mid=seq, duplicate=True) for seq in range(3, 24)]
    assert repeats([*first, *again]) == {20 + seq: seq for seq in range(3, 21)}
    assert repeats([*first, *(over("b", 20 + seq, mid=seq) for seq in range(3, 24))]) == {}


def test_copies_beyond_the_window_go_on_after_an_early_death() -> None:
    first = [over("a", seq, mid=seq) for seq in range(1, 11)]
    early = [over("b", 10 + mid, mid=mid, duplicate=True) for mid in (1, 2)]
    again = [over("c", 12 + mid, mid=mid, duplicate=True) for mid in range(1, 13)]
    assert repeats([*first, *early, *again]) == {
        **{11: 1, 12: 2, 13: 11, 14: 12},
        **{12 + mid: mid for mid in range(3, 11)},
    }


def test_a_packet_id_that_was_used_again_was_confirmed_before() -> None:
    first = [over("a", seq, mid=seq) for seq in range(1, 11)]
    reused = [over("a", 10 + mid, mid=mid, payload=b"y") for mid in range(1, 7)]
    assert repeats([*first, *reused, over("b", 17, mid=1, duplicate=True)]) == {}
    assert repeats([*first, *reused, over("b", 17, mid=7, duplicate=True)]) == {17: 7}


def test_a_connection_that_died_early_leaves_the_rest_to_the_next() -> None:
    first = [over("a", seq, mid=seq) for seq in (1, 2, 3)]
    assert repeats([*first, over("b", 4, mid=1), over("c", 5, mid=2), over("c", 6, mid=3)]) == {
        4: 1,
        5: 2,
        6: 3,
    }


def test_other_sources_do_not_count() -> None:
    elsewhere = Message(1, "other", "plant/p7/log", b"x", NOW, 1, mid=5, connection="a")
    assert repeats([elsewhere, over("b", 2, 5)]) == {}


@pytest.mark.parametrize("stop", range(1, 8))
def test_a_restart_in_the_middle_goes_on_as_if_nothing_had_happened(stop: int) -> None:
    messages = [
        *(over("a", seq, mid=seq) for seq in (1, 2, 3)),
        *(over("b", 3 + n, mid=mid) for n, mid in enumerate((2, 3, 3, 7, 1), start=1)),
    ]
    engine, found = memory(), {}
    with engine.begin() as connection:
        journaled(connection, messages)
        redelivery = Redelivery(4)
        for each in messages:
            if each.seq == stop:
                redelivery.reset()
            if not redelivery.knows(each):
                redelivery.begin(each.connection, history(connection, each, 4))
            settled = redelivery.repeat_of(each)
            if settled is not None and settled.of is not None:
                found[each.seq] = settled.of.seq
    assert found == repeats(messages) == {4: 2, 5: 3}


def test_a_first_connection_has_nothing_to_repeat() -> None:
    redelivery = Redelivery(4)
    redelivery.begin("a", History())
    assert redelivery.repeat_of(over("a", 1, 5)) is None


def folding(*lines: LogLine, known: dict[bytes, EventId] | None = None) -> Folded:
    return fold(dated(lines), known or {})


def test_equal_lines_with_their_time_are_one() -> None:
    one, two, three = line(STAMPED, 1), line(STAMPED, 2), line(STAMPED + "1", 3)
    folded = folding(one, two, three)
    assert {id_: done.of for id_, done in folded.repeats.items()} == {EventId(2, 0): EventId(1, 0)}
    assert [row.id for row in folded.fresh] == [EventId(1, 0), EventId(3, 0)]
    digest = content_digest(one)
    assert digest is not None
    later = folding(line(STAMPED, 9), known={digest: EventId(1, 0)})
    assert list(later.repeats) == [EventId(9, 0)] and not later.fresh


def test_lines_without_time_and_lines_of_one_message_are_never_one() -> None:
    assert not folding(line("drive F30002", 1), line("drive F30002", 2)).repeats
    assert not folding(line(STAMPED, EventId(1, 0)), line(STAMPED, EventId(1, 1))).repeats


@pytest.mark.parametrize("other", [{"topic": "plant/p8/log"}])
def test_equal_lines_of_other_topics_are_two(other: dict[str, Any]) -> None:
    assert not folding(line(STAMPED, 1), line(STAMPED, 2, **other)).repeats


@pytest.mark.parametrize(
    ("text", "carries"),
    [
        (STAMPED, True),
        ("Jun 14 15:16:01 combo sshd", True),
        ("2005-06-03-15.42.50.675872 R02", True),
        ("20171223-22:15:29:606|Step", True),
        ("14.06.2024 10:00:00 Störung", True),
        ("11/15/2019 | 18:50:40 | x", True),
        ('{"ts":1700000000000,"msg":"x"}', True),
        ("[1573674017.322336741]: x", True),
        ("10:00:05 a", False),
        ("order 1234567890 failed", False),
        ("drive F30002", False),
    ],
)
def test_what_counts_as_a_full_time(text: str, carries: bool) -> None:
    assert (content_digest(line(text)) is not None) == carries


def test_digests_lie_in_the_order_of_time() -> None:
    """Or each of them would dirty a page of the store of its own."""
    stamps = [f"2026-03-02T{s // 3600:02}:{s // 60 % 60:02}:{s % 60:02}Z" for s in range(0, 9000, 7)]
    digests = [content_digest(line(f"{stamp} pump {len(stamps) - n} on")) for n, stamp in enumerate(stamps)]
    assert all(digest is not None and len(digest) == DIGEST_BYTES for digest in digests)
    assert digests == sorted(digests, key=bytes)
