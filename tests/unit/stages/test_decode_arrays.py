"""An array of records is as many documents; each becomes what it would become as a payload of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import decode, decoder, ids, lines, message

from pipeline.stages.decode import Decoded, Refused
from pipeline.stages.options import Limits
from pipeline.stages.payload import items
from schemas.events import EventId, Reading

WORDS = st.text('a,[]{}"\\: é', max_size=8)
VALUES = st.one_of(
    st.integers(0, 99), st.floats(0, 99).map(lambda x: round(x, 2)), WORDS, st.just(float("nan"))
)
RECORDS = st.dictionaries(
    st.sampled_from(["temp", "pressure", "msg", "device", "ts", "errorCode", "x"]), VALUES, min_size=1
)
# What stands between the parts of a document; the JSON module alone knows two ways of writing one.
GAPS = st.sampled_from([", ", ",", " ,\n  "])


def carried(decoded: Decoded) -> list[tuple[Any, ...]]:
    """The readings without where they stand in the payload."""
    found = [event for event in decoded.events if isinstance(event, Reading)]
    return [
        (each.metric, each.value, each.null, each.asset, each.unit, each.time, each.written) for each in found
    ]


@given(st.lists(RECORDS, min_size=1, max_size=6), GAPS)
def test_each_record_becomes_what_it_is_alone(records: list[dict[str, Any]], gap: str) -> None:
    written = [json.dumps(record, ensure_ascii=False) for record in records]
    alone = [decode(each.encode()) for each in written]
    together = decode(f"[{gap.join(written)}]".encode())
    assert carried(together) == [reading for each in alone for reading in carried(each)]
    said = [line for each in alone for line in lines(each)]
    assert len(lines(together)) == (len(records) if said else 0), (
        "one record that speaks makes all of them lines"
    )
    assert set(said) <= set(lines(together))
    assert ids(together) == [EventId(7, index) for index in range(len(ids(together)))]


@given(st.lists(RECORDS, min_size=1, max_size=6), GAPS)
def test_pointers_lead_to_the_value_in_the_payload(records: list[dict[str, Any]], gap: str) -> None:
    text = f"[{gap.join(json.dumps(record) for record in records)}]"
    for event in decode(text.encode()).events:
        if isinstance(event, Reading):
            _, index, name = event.pointer.split("/")
            value = records[int(index)][name]
            assert event.written in (value, json.dumps(value))


@given(st.lists(st.one_of(RECORDS, WORDS, st.lists(WORDS, max_size=3)), max_size=6), GAPS)
def test_the_items_of_an_array_as_written(values: list[Any], gap: str) -> None:
    written = [json.dumps(value, ensure_ascii=False) for value in values]
    assert items(f" [ {gap.join(written)} ] ") == (written or [""])


def test_ten_thousand_records_are_ten_thousand_events() -> None:
    record = '{"ts":"2026-03-02T10:00:00Z","level":"error","msg":"bearing %d hot"}'
    written = [record % number for number in range(10_000)]
    decoded = decode(f"[{','.join(written)}]".encode())
    assert lines(decoded) == written
    assert len(set(ids(decoded))) == 10_000


@pytest.mark.parametrize("framing", ["payload", "lines"])
def test_more_than_the_limit_goes_to_people_whole(framing: Any) -> None:
    payload = b"[" + b",".join([b'{"msg":"hot"}'] * 11) + b"]"
    small = decoder(limits=Limits(events_per_message=10), framing=framing)
    decoded = small.decode(message(payload))
    assert (decoded.events, decoded.settled) == ([], [])
    assert decoded.undecodable == [Refused(EventId(7, 0), "too_many_events", payload[:4096], len(payload))]
    assert len(small.decode(message(payload.replace(b'{"msg":"hot"},', b"", 1))).events) == 10


def test_refused_parts_count_for_the_limit() -> None:
    small = decoder(limits=Limits(events_per_message=10, line_chars=256))
    payload = b"[" + b",".join([b'{"msg":"' + b"x" * 300 + b'"}'] * 11) + b"]"
    assert [each.reason for each in small.decode(message(payload)).undecodable] == ["too_many_events"]


def test_one_record_that_is_too_long_leaves_the_others_alone() -> None:
    decoded = decode(b'[{"msg":"' + b"x" * 20_000 + b'"},{"msg":"hot"},{}]')
    assert lines(decoded) == ["hot"]
    assert [each.reason for each in decoded.undecodable] == ["line_too_long"]
    assert [each.reason for each in decoded.settled] == ["empty_payload"]
    assert sorted(ids(decoded)) == [EventId(7, 0), EventId(7, 1), EventId(7, 2)]


@pytest.mark.parametrize(
    "text",
    [
        '[{"name":"temp","value":5},{"name":"mode","value":"AUTO"}]',
        '[{"msg":"hot"},7]',
        '["hot",{"msg":"x"}]',
        '[[{"msg":"hot"}]]',
    ],
)
def test_what_is_no_array_of_records_stays_one_document(text: str) -> None:
    assert lines(decode(text.encode())) == [text]


def test_an_envelope_in_an_array_is_the_text_that_it_holds() -> None:
    assert lines(decode(b'[{"log":"a\\n","stream":"stderr"},{"log":"b","stream":"stdout"}]')) == ["a", "b"]
