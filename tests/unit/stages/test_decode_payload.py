"""What single payloads become: JSON shapes, bare values, and what cannot be read (CASES A to C)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from making import NOW, decode, decoder, ids, lines, message, readings

from pipeline.stages.decode import Refused
from pipeline.stages.options import Limits
from schemas.events import EventId, LogLine, Reading
from schemas.extraction import Null
from schemas.ticket import Outcome

BAD, ABSENT = Null.BAD, Null.ABSENT


@pytest.mark.parametrize("bare", ["nan", "NaN", "NAN", "Infinity", "-inf", "-Infinity"])
def test_nan_is_a_bad_value_and_its_siblings_are_kept(bare: str) -> None:
    payload = f'{{"Time":"2026-03-02T10:00:00","DHT11":{{"T":{bare},"say":"nan,"}},"DS18B20":{{"T":21.5}}}}'
    decoded = decode(payload.encode())
    assert readings(decoded) == {"DHT11.T": None, "DS18B20.T": 21.5}
    dead, good = (event for event in decoded.events if isinstance(event, Reading))
    assert (dead.null, dead.written, dead.pointer) == (BAD, bare, "/DHT11/T")
    assert good.time == datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize("payload", ["???", "---", "nan", "unavailable", "-", "N/A"])
def test_a_sentinel_on_a_metrics_topic_is_a_reading_without_value(payload: str) -> None:
    decoded = decode(payload.encode(), "cv/boiler/modulation", topic_template="cv/{asset}/{metric}")
    (event,) = decoded.events
    assert isinstance(event, Reading)
    assert (event.metric, event.asset, event.value, event.null) == ("modulation", "boiler", None, BAD)
    assert event.written == payload


@pytest.mark.parametrize(
    ("payload", "value", "null", "unit"),
    [
        ("21.5", 21.5, None, None),
        (" -4 ", -4.0, None, None),
        ("1e3", 1000.0, None, None),
        ("21,5", 21.5, None, None),
        ("1,234", None, Null.UNSURE, None),
        ("1e400", None, BAD, None),
        ("21.5 °C", 21.5, None, "°C"),
        ("3bar", 3.0, None, "bar"),
        ("-127", None, BAD, None),
        ("65535", None, BAD, None),
    ],
)
def test_a_number_alone_is_a_reading_of_the_topics_metric(
    payload: str, value: float | None, null: Null | None, unit: str | None
) -> None:
    (event,) = decode(payload.encode(), "p/m/temp", topic_template="p/{asset}/{metric}").events
    assert isinstance(event, Reading)
    assert (event.value, event.null, event.unit) == (value, null, unit)


def test_without_template_the_last_level_names_a_bare_number() -> None:
    assert readings(decode(b"21.5", "hall/probe7/temp")) == {"temp": 21.5}


def test_text_is_text_beside_json() -> None:
    assert lines(decode(b"online")) == ["online"]
    assert lines(decode(b'{"state":"ON"}')) == ['{"state":"ON"}']


def test_pretty_json_is_one_payload() -> None:
    decoded = decode(b'{\n "boilertemp": {"value": 57},\n "outside": {"value": -4}}')
    assert readings(decoded) == {"boilertemp": 57, "outside": -4}
    assert not lines(decoded)


@pytest.mark.parametrize("payload", [b"", b" \r\n ", b"\x00\x00", b"\n", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("framing", ["payload", "lines", "multiline"])
def test_nothing_is_counted_as_nothing(payload: bytes, framing: str) -> None:
    decoded = decode(payload, framing=framing)
    assert not decoded.events and not decoded.undecodable
    (settlement,) = decoded.settled
    assert (settlement.outcome, settlement.reason) == (Outcome.DISCARD, "empty_payload")


@pytest.mark.parametrize("payload", [b"{}", b" [] "])
def test_an_empty_document_is_nothing_too(payload: bytes) -> None:
    assert [settled.reason for settled in decode(payload).settled] == ["empty_payload"]


def test_a_last_will_blanks_no_reading() -> None:
    decoded = decode(b'{"_type":"lwt","tst":1700000000}')
    assert [settlement.reason for settlement in decoded.settled] == ["last_will"]
    assert not decoded.events


@pytest.mark.parametrize(
    ("written", "time"),
    [
        ('"2021-09-14T06:32:07.507569+00:00"', datetime(2021, 9, 14, 6, 32, 7, 507569, tzinfo=UTC)),
        ('"2021-09-14 06:32:07"', datetime(2021, 9, 14, 4, 32, 7, tzinfo=UTC)),
        ("1631601127", datetime(2021, 9, 14, 6, 32, 7, tzinfo=UTC)),
        ("1631601127000", datetime(2021, 9, 14, 6, 32, 7, tzinfo=UTC)),
        ('"1631601127000000"', datetime(2021, 9, 14, 6, 32, 7, tzinfo=UTC)),
        ("1631601127000000000", datetime(2021, 9, 14, 6, 32, 7, tzinfo=UTC)),
        ("228182400", None),  # seconds since 2015: 1977 if believed
        ("4102444800", None),  # 2100
        ('"yesterday"', None),
        ("1e400", None),
        ("true", None),
    ],
)
def test_event_times(written: str, time: datetime | None) -> None:
    (event,) = decode(f'{{"ts":{written},"temp":1}}'.encode()).events
    assert isinstance(event, Reading)
    assert event.time == time
    assert event.received_at == NOW


def test_null_is_no_reading_and_never_zero() -> None:
    decoded = decode(b'{"timestamp":"2021-09-14T06:32:07+00:00","value":null,"device_name":"bms1"}')
    (event,) = decoded.events
    assert isinstance(event, Reading)
    assert (event.metric, event.value, event.null, event.asset) == ("value", None, ABSENT, "bms1")


def test_points_arrays_and_timed_values() -> None:
    points = b'{"IEDParam":[{"VariableName":"A","Value":"71"},{"VariableName":"B","Value":"x"}]}'
    assert readings(decode(points)) == {"A": 71.0}
    timed = b'[{"ts":1700000000000,"values":{"t":5,"p":"NaN"}},{"ts":1700000001000,"values":{"t":6}}]'
    decoded = decode(timed)
    assert [(e.metric, e.value) for e in decoded.events if isinstance(e, Reading)] == [
        ("t", 5.0),
        ("p", None),
        ("t", 6.0),
    ]
    assert len({e.time for e in decoded.events if isinstance(e, Reading)}) == 2
    assert readings(decode(b'{"FAC":{"Unit":"Hz","Value":49.98}}')) == {"FAC": 49.98}
    assert readings(decode(b'{"vib":[1.5,2.5]}')) == {"vib.0": 1.5, "vib.1": 2.5}


def test_a_unit_belongs_to_its_point_only() -> None:
    decoded = decode(b'{"points":[{"name":"temp","value":5,"unit":"C","load":7}]}')
    units = {event.metric: event.unit for event in decoded.events if isinstance(event, Reading)}
    assert units == {"temp": "C", "temp.load": None}


@pytest.mark.parametrize(
    "payload",
    [
        '{"message":"bearing hot","temp":93}',
        '{"ErrorCode":102,"temp":93}',
        '{"alarm":true,"temp":93}',
        '{"Param":[{"VariableName":"WindingTrip","Value":"1"}],"temp":93}',
        '{"alert":"trip","temp":93}',
        '{"Param":[{"VariableName":"QuickBreak","Value":1}],"temp":93}',
        '{"status":"stale","temp":93}',
        '{"描述":"轴承过热","temp":93}',
    ],
)
def test_a_document_that_says_something_is_a_line_and_readings(payload: str) -> None:
    decoded = decode(payload.encode())
    assert lines(decoded) == [payload]
    assert readings(decoded)["temp"] == 93
    assert decoded.events[0].id == EventId(7, 0), "the line comes first"


@pytest.mark.parametrize(
    "payload", ['{"ErrorCode":0,"temp":1}', '{"alarm":false,"temp":1}', '{"temp":1,"device":"p 7"}']
)
def test_telemetry_without_trouble_is_readings_alone(payload: str) -> None:
    assert not lines(decode(payload.encode()))


def test_in_a_log_file_every_document_is_a_line() -> None:
    decoded = decode(b'{"temp":1}\n{"temp":2}\n', framing="lines")
    assert lines(decoded) == ['{"temp":1}', '{"temp":2}']
    assert len(readings(decoded)) == 1 and len(decoded.events) == 4


def test_an_envelope_is_taken_off_when_nothing_is_lost_with_it() -> None:
    enveloped = b'{"log":"2026-01-05 08:00:01 ERROR x\\n","stream":"stderr","time":"2026-01-05T08:00:01Z"}'
    assert lines(decode(enveloped)) == ["2026-01-05 08:00:01 ERROR x"]
    timed = '{"log":"ERROR x","stream":"stderr","time":"2026-01-05T08:00:01Z"}'
    assert lines(decode(timed.encode())) == [timed], "its time stands only in the envelope"
    levelled = '{"level":"error","message":"x failed"}'
    assert lines(decode(levelled.encode())) == [levelled]


def test_escaped_letters_are_read_as_letters() -> None:
    payload = rb'{"msg":"\u8f74\u627f \ud83d\ude00 \u003c5 \\u8f74 \u0000 \ud800 \u0022","level":"error"}'
    (text,) = lines(decode(payload))
    assert text == r'{"msg":"轴承 😀 <5 \\u8f74 \u0000 \ud800 \u0022","level":"error"}'


def test_numbers_of_any_size() -> None:
    decoded = decode(b'{"a":1e400,"b":99999999999999999999,"c":' + b"9" * 5000 + b',"d":9223372036854775808}')
    assert readings(decoded) == {"a": None, "b": 1e20, "c": None, "d": 9223372036854775808.0}


def test_members_of_one_name_are_all_kept() -> None:
    decoded = decode(b'{"temp":1,"temp":90}')
    assert [event.value for event in decoded.events if isinstance(event, Reading)] == [1.0, 90.0]


@pytest.mark.parametrize(("quality", "null"), [('"bad"', BAD), ("0", BAD), ("192", None), ('"good"', None)])
def test_quality(quality: str, null: Null | None) -> None:
    (event,) = decode(f'{{"temp":5,"quality":{quality}}}'.encode()).events
    assert isinstance(event, Reading)
    assert event.null == null and (event.value is None) == (null is not None)
    assert event.written == "5"


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"\x81", "undecodable"),
        (b"[" * 2000 + b"]" * 2000, "json_too_deep"),
        (b"[" * 200_000, "json_too_deep"),
        (b'{"temp": 21.5, "vib', "broken_json"),
        (b'[{"temp": 21.5, "vib"', "broken_json"),
        (b"x" * 20_000, "line_too_long"),
        (b"x" * 1_100_000, "payload_too_large"),
        (b"[" + b"1," * 20_000 + b"1]", "too_many_events"),
    ],
)
def test_what_cannot_be_read_goes_to_review_with_its_bytes(payload: bytes, reason: str) -> None:
    decoded = decode(payload)
    assert not decoded.events and not decoded.settled
    assert decoded.undecodable == [Refused(EventId(7, 0), reason, payload[:4096], len(payload))]


@pytest.mark.parametrize("text", ["[ WARN] [17]: x", "{0} failed", "{'a': 1}", "<Idle|MPos:0>", "[MSG:'$H']"])
def test_brackets_do_not_make_json(text: str) -> None:
    assert lines(decode(text.encode())) == [text]


def test_repeats_of_syslog_count_and_read_as_the_line_they_stand_for() -> None:
    (event,) = decode(b"Jun 14 15:16:01 ups x: message repeated 9 times: [ UPS lost]").events
    assert isinstance(event, LogLine)
    assert (event.text, event.repeated) == ("Jun 14 15:16:01 ups x: UPS lost", 9)
    (silly,) = decode(b"message repeated 999999999 times: [ x ]").events
    assert isinstance(silly, LogLine) and silly.repeated == 1_000_000


@pytest.mark.parametrize("payload", [b'{"a":[]}', b'{"a":"x"}', b"[[]]", b'{"serial":"x1"}', b'{"ok":true}'])
def test_a_document_of_neither_is_still_a_line(payload: bytes) -> None:
    assert lines(decode(payload)) == [payload.decode()]


def test_topic_levels_name_the_asset_of_lines_and_readings() -> None:
    decoded = decode(b'{"msg":"hot","temp":1,"device":"x"}', topic_template="plant/{asset}/log")
    assert {event.asset for event in decoded.events} == {"p7"}


def test_limits_are_the_sites() -> None:
    small = decoder(limits=Limits(line_chars=256, payload_bytes=1024, events_per_message=2))
    assert small.decode(message(b"x" * 257)).undecodable[0].reason == "line_too_long"
    assert small.decode(message(b"x" * 1025)).undecodable[0].reason == "payload_too_large"
    assert small.decode(message(b'{"a":1,"b":2,"c":3}')).undecodable[0].reason == "too_many_events"
    assert ids(small.decode(message(b'{"a":1,"b":2}'))) == [EventId(7, 0), EventId(7, 1)]


@pytest.mark.parametrize("name", ["batch_id", "UniqueID", "id", "port", "firmwareVersion", "node-ip"])
def test_numbers_that_name_something_are_no_readings(name: str) -> None:
    assert readings(decode(f'{{"{name}":7,"temp":1}}'.encode())) == {"temp": 1.0}


@pytest.mark.parametrize("name", ["grid", "trip", "fluid", "humid", "transport", "ID_count"])
def test_names_that_only_end_like_one_are(name: str) -> None:
    assert readings(decode(f'{{"{name}":7,"temp":1}}'.encode()))[name] == 7.0
