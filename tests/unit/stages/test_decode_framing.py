"""Framing: payloads, lines and joined records; what is remembered between messages."""

from __future__ import annotations

from datetime import timedelta

from making import NOW, decode, decoder, ids, lines, message

from connectors.base import Multiline
from pipeline.stages.encodings import EVIDENCE_PAYLOADS
from schemas.events import EventId
from schemas.ticket import Outcome

TRACE = b"ERROR poll failed\n\tat a.b.C(D.java:10)\nCaused by: java.net.SocketException: reset"


def test_a_payload_is_one_event_however_many_lines() -> None:
    assert lines(decode(TRACE)) == [TRACE.decode()]


def test_lines_are_events_and_blank_ones_are_counted() -> None:
    decoded = decode(b"a\r\n\r\nb\n", framing="lines")
    assert lines(decoded) == ["a", "b"]
    assert [(settled.id.index, settled.reason) for settled in decoded.settled] == [(1, "blank_line")]
    assert ids(decoded) == [EventId(7, 0), EventId(7, 1), EventId(7, 2)]


def test_a_line_that_is_no_text_leaves_the_others_alone() -> None:
    decoded = decode(b"a\n\xff\xff\xff\nb", framing="lines")
    assert lines(decoded) == ["a", "b"]
    assert [(refused.reason, refused.head) for refused in decoded.undecodable] == [
        ("undecodable", b"\xff\xff\xff")
    ]


def test_a_stack_trace_is_one_record_and_its_lines_are_parts() -> None:
    joining = decoder(framing="multiline")
    first = joining.decode(message(TRACE))
    assert not first.events
    assert {settled.of for settled in first.settled} == {EventId(7, 0)}
    assert [settled.outcome for settled in first.settled] == [Outcome.PART_OF] * 2
    then = joining.decode(message(b"INFO next", seq=8))
    (record,) = then.events
    assert record.id == EventId(7, 0)
    assert lines(then) == [TRACE.decode()]


def test_records_join_across_messages_of_one_topic_only() -> None:
    joining = decoder(framing="multiline", multiline=Multiline(start=r"^\d{4}-"))
    joining.decode(message(b"2026-01-05 ERROR a", seq=1, topic="x"))
    joining.decode(message(b"2026-01-05 ERROR b", seq=2, topic="y"))
    part = joining.decode(message(b"more of a", seq=3, topic="x"))
    assert [settled.of for settled in part.settled] == [EventId(1, 0)]
    assert lines(joining.finish()) == ["2026-01-05 ERROR a\nmore of a", "2026-01-05 ERROR b"]
    assert not joining.open_records


def test_silence_completes_a_record() -> None:
    joining = decoder(framing="multiline", multiline=Multiline(start="^E", flush_s=2))
    joining.decode(message(b"E a", seq=1))
    assert not joining.flush(NOW + timedelta(seconds=1)).events
    late = joining.decode(message(b"tail", seq=2, received_at=NOW + timedelta(seconds=3)))
    assert lines(late) == ["E a"], "the tail came too late to belong to it"
    assert lines(joining.flush(NOW + timedelta(seconds=6))) == ["tail"]


def test_a_long_record_is_closed_and_nothing_is_cut() -> None:
    joining = decoder(framing="multiline", multiline=Multiline(start="^E", max_lines=2))
    decoded = joining.decode(message(b"E a\n1\n2\n3\nE b"))
    assert lines(decoded) == ["E a\n1", "2\n3"]
    assert lines(joining.finish()) == ["E b"]


def test_open_records_are_restored() -> None:
    joining = decoder(framing="multiline")
    joining.decode(message(b"ERROR a", seq=1))
    before, encoding = joining.open_records, joining.encoding
    joining.decode(message(b"\tat b", seq=2))
    joining.restore(encoding, before)  # the transaction rolled back: the message comes again
    joining.decode(message(b"\tat b", seq=2))
    assert lines(joining.finish()) == ["ERROR a\n\tat b"]


def test_the_encoding_found_is_there_for_the_next_start() -> None:
    first = decoder()
    for seq in range(EVIDENCE_PAYLOADS):
        first.decode(message("轴承".encode("gbk"), seq=seq))
    assert first.encoding == "gb18030"
    assert decoder(encoding=first.encoding).encoding == "gb18030"


def test_gbk_files_line_by_line() -> None:
    payload = "轴承温度过高 92℃\n".encode("gbk") + b"plain\n" + "油温 40℃\n".encode()
    assert lines(decode(payload, framing="lines")) == ["轴承温度过高 92℃", "plain", "油温 40℃"]


def test_evidence_that_was_rolled_back_does_not_count_twice() -> None:
    once = decoder()
    for _ in range(EVIDENCE_PAYLOADS):
        once.decode(message("轴承".encode("gbk")))
        once.restore(None, ())
    assert once.encoding is None


def test_a_marked_line_speaks_for_itself_and_stays_readable() -> None:
    payload = b"\xff\xfe bad\n" + "Ofen 4: Übertemperatur 20 °C Alarm\n".encode("cp1252")
    decoded = decode(payload, framing="lines")
    assert lines(decoded) == ["Ofen 4: Übertemperatur 20 °C Alarm"]
    assert [refused.head for refused in decoded.undecodable] == [b"\xff\xfe bad"]
