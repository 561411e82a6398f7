"""Decoding, dedupe, setpoints and delivery, over whatever comes: nothing raises, is lost, or comes twice."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections import Counter
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from making import LABELS, NOW, change, decoder, ids, journaled, line, memory, message, reading
from scripted_sink import LOST_AFTER, LOST_BEFORE, OK, ScriptedSink
from sqlalchemy import Connection

from pipeline.stages.alarm import Alarms
from pipeline.stages.decide import Decider, RuleConfig
from pipeline.stages.dedupe import Redelivery, history
from pipeline.stages.deliver import Deliver
from pipeline.stages.facts import Facts
from pipeline.stages.options import Limits
from pipeline.stages.payload import clean
from pipeline.stages.route import RouteConfig, Router
from pipeline.store import codec, outbox
from pipeline.store.codec import to_us
from pipeline.store.engine import Store
from pipeline.store.outbox import OutboxState
from pipeline.telemetry import Metrics
from schemas.errors import SinkBusy, SinkMisconfigured, SinkRejected, SinkUnknown
from schemas.events import EventId, LogLine, Message, Reading
from schemas.extraction import Null, Transition

LIMITS = Limits(line_chars=256, payload_bytes=2048, events_per_message=40, json_depth=8)

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["nan", "71", "---", "1,234", "\ud800", "unavailable"])
)
names = st.sampled_from(
    [
        "message",
        "value",
        "name",
        "ts",
        "device",
        "unit",
        "quality",
        "alarm",
        "values",
        "temp",
        "_type",
        "描述",
        "",
    ]
) | st.text(max_size=6)
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=25,
)


def written(document: Any) -> bytes:
    return json.dumps(document).replace("NaN", "nan").encode("utf-8", "surrogatepass")


@st.composite
def pieces(draw: st.DrawFn) -> bytes:
    """Payloads near the ones that hurt: text in odd encodings, JSON whole, cut, or beside other things."""
    text = draw(st.text(max_size=60))
    encoding = draw(st.sampled_from(["utf-8", "utf-16", "utf-16-le", "gb18030", "utf-8-sig", "utf-32"]))
    whole = draw(documents.map(written) | st.just(text.encode(encoding, "replace")))
    cut = draw(st.integers(0, len(whole)))
    return draw(st.sampled_from([whole, whole[:cut], whole[cut:] + b"\n" + whole, whole + b"\r\n\x00"]))


payloads = st.binary(max_size=80) | pieces() | st.binary(min_size=2049, max_size=2060)
framings = st.sampled_from(["payload", "lines", "multiline"])
templates = st.sampled_from([None, "plant/{asset}/log", "plant/{asset}/{metric}"])


@settings(max_examples=400, deadline=None)
@given(st.lists(payloads, min_size=1, max_size=5), framings, templates)
def test_every_message_is_accounted_for_event_by_event(
    messages: list[bytes], framing: str, template: str | None
) -> None:
    """Indexes are dense and unique over events, settlements, refusals and open records. Nothing raises."""
    source = decoder(limits=LIMITS, framing=framing, topic_template=template)
    seen: Counter[EventId] = Counter()
    for seq, payload in enumerate(messages):
        seen.update(ids(source.decode(message(payload, seq))))
    pending = [record.id for record in source.open_records]
    finished = ids(source.finish())
    assert finished == sorted(pending)
    seen.update(finished)
    assert set(seen.values()) == {1}
    for seq in range(len(messages)):
        indexes = sorted(id_.index for id_ in seen if id_.seq == seq)
        assert indexes == list(range(len(indexes))) and indexes


@settings(max_examples=300, deadline=None)
@given(payloads, framings, templates)
def test_events_are_sound_and_can_be_stored(payload: bytes, framing: str, template: str | None) -> None:
    decoded = decoder(limits=LIMITS, framing=framing, topic_template=template).decode(message(payload))
    for event in decoded.events:
        assert codec.load_event(event.id, json.loads(json.dumps(codec.dump_event(event)))) == event
        if isinstance(event, Reading):
            assert (event.value is None) == (event.null is not None)
            assert event.value is None or abs(event.value) < float("inf")
            for text in (event.metric, event.pointer, event.written, event.unit, event.quality, event.asset):
                assert text is None or clean(text) == text
        else:
            assert event.text.strip() and len(event.text) <= LIMITS.line_chars
            assert clean(event.text) == event.text
    for refused in decoded.undecodable:
        assert refused.reason


@settings(max_examples=200, deadline=None)
@given(documents)
def test_a_number_in_a_document_is_a_reading_of_that_number(document: Any) -> None:
    payload = json.dumps(document)
    assume("\\u0000" not in payload and "\\ud" not in payload)  # names that differ in what no store takes
    decoded = decoder(limits=Limits(), framing="payload").decode(message(payload.encode()))
    for event in decoded.events:
        if isinstance(event, Reading) and event.pointer:
            value = document
            for step in event.pointer.split("/")[1:]:
                key = step.replace("~1", "/").replace("~0", "~")
                value = (
                    value[int(key)]
                    if isinstance(value, list)
                    else {clean(k): v for k, v in value.items()}[key]
                )
            assert event.value is None or float(str(value).replace(",", ".")) == event.value
            assert event.null is not Null.ABSENT or value is None


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=4))
def test_text_lines_are_the_same_however_they_are_cut_into_messages(text: bytes, cuts: list[int]) -> None:
    """Records joined over messages have the lines of the text, in order."""
    lines = [b"E" + part.replace(b"\n", b" ") for part in text.split(b"\x00")]
    source = decoder(limits=Limits(), framing="multiline")
    bounds = sorted({0, *(cut for cut in cuts if cut < len(lines)), len(lines)})
    events: list[Any] = []
    refused = 0
    for seq, (start, end) in enumerate(pairwise(bounds)):
        decoded = source.decode(message(b"\n".join(lines[start:end]), seq))
        events += decoded.events
        refused += len(decoded.undecodable)
    events += source.finish().events
    assert len(events) + refused == len(lines)
    assert events == sorted(events, key=lambda event: event.id)


# --- redelivery ---------------------------------------------------------------------------------------


@st.composite
def sessions(draw: st.DrawFn) -> tuple[list[Message], dict[int, int]]:
    """A broker with packet ids and a window, connections that die: the journal, and what repeats what."""
    window = 4
    outstanding: list[tuple[int, bytes, int]] = []  # packet id, payload, seq it was first journaled as
    journal: list[Message] = []
    truth: dict[int, int] = {}
    mid = 0
    for number in range(draw(st.integers(1, 4))):
        again = outstanding[: draw(st.integers(0, len(outstanding)))] if number else []
        for packet, payload, original in again:
            seq = len(journal) + 1
            journal.append(message(payload, seq, qos=1, mid=packet, connection=str(number)))
            truth[seq] = original
        if len(again) == len(outstanding):
            for _ in range(draw(st.integers(0, window - len(outstanding)))):
                mid += 1
                payload = draw(st.sampled_from([b"a", b"b"]))
                seq = len(journal) + 1
                journal.append(message(payload, seq, qos=1, mid=mid, connection=str(number)))
                outstanding.append((mid, payload, seq))
        # Confirmed in order: the broker forgets them.
        outstanding = outstanding[draw(st.integers(0, len(again) or len(outstanding))) :]
    return journal, truth


@settings(max_examples=200, deadline=None)
@given(sessions(), st.integers(1, 20))
def test_redelivered_messages_are_found_and_new_ones_are_kept(
    session: tuple[list[Message], dict[int, int]], restart: int
) -> None:
    journal, truth = session
    found: dict[int, int] = {}
    redelivery = Redelivery(4)
    with memory().begin() as connection:
        journaled(connection, journal)
        for each in journal:
            if each.seq == restart:
                redelivery.reset()
            if not redelivery.knows(each):
                redelivery.begin(each.connection, history(connection, each, 4))
            settled = redelivery.repeat_of(each)
            if settled is not None and settled.of is not None:
                found[each.seq] = settled.of.seq
    roots = {seq: _root(of, found) for seq, of in found.items()}
    assert roots == truth


def _root(seq: int, repeats: dict[int, int]) -> int:
    while seq in repeats:
        seq = repeats[seq]
    return seq


# --- setpoints ----------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(-50, 150) | st.none(), max_size=30), st.floats(0, 100), st.floats(0, 20))
def test_an_alarm_follows_its_setpoint_and_deadband(
    values: list[float | None], setpoint: float, deadband: float
) -> None:
    when = {"metric": "load", "above": setpoint, "deadband": deadband}
    decider = Decider(
        [RuleConfig.model_validate({"id": "r", "when": when, "severity": "error"})], LABELS, 0.8
    )
    is_open = expected = False
    for value in values:
        event = reading("load", value, null=Null.BAD if value is None else None)
        decision = decider.decide(event, Facts("p", True))
        if decision.rule == "r" and decision.transition is Transition.RAISE:
            is_open = True
        elif "r" in decider.returns(event, Facts("p", True)):
            is_open = False
        if value is not None and value > setpoint:
            expected = True
        elif value is not None and value <= setpoint - deadband:
            expected = False
        assert is_open == expected


# --- delivery -----------------------------------------------------------------------------------------

answers = st.sampled_from([OK, LOST_AFTER, LOST_BEFORE]) | st.one_of(
    st.builds(SinkBusy, st.just("busy"), st.none() | st.floats(0, 400)),
    st.builds(SinkRejected, st.just("no"), st.just("body")),
    st.builds(SinkMisconfigured, st.just("no right")),
    st.builds(SinkUnknown, st.just("a page"), answered=st.just(True)),
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(answers, max_size=12), st.integers(1, 5), st.booleans(), st.booleans(), st.integers(0, 8))
def test_tickets_arrive_once_or_a_person_is_told(
    script: list[Any], alarms: int, idempotent: bool, searchable: bool, restart: int
) -> None:
    """The sink itself fails the test when two requests of one key overlap, or a key's content changes."""
    sink = ScriptedSink(script, idempotent=idempotent, searchable=searchable)
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(Path(folder) / "andon.db")
        try:
            rows = asyncio.run(_deliver(store, sink, alarms, restart))
        finally:
            store.close()
    for state, key in rows:
        assert state in (OutboxState.SENT, OutboxState.DEAD, OutboxState.UNKNOWN)
        assert sink.tickets[key] <= 1
        assert state is not OutboxState.SENT or sink.tickets[key] == 1
        assert state is not OutboxState.UNKNOWN or not idempotent
        if searchable and not any(isinstance(said, SinkUnknown) for said in script):
            assert state is not OutboxState.UNKNOWN, "it was looked up"


async def _deliver(
    store: Store, sink: ScriptedSink, alarms: int, restart: int
) -> list[tuple[OutboxState, str]]:
    clock = [to_us(NOW)]
    stage = Alarms(Router([RouteConfig(id="all", sink=sink.name)]))
    changes = [change(line(at=n + 1), facts=Facts(f"press {n}", True)) for n in range(alarms)]

    def apply(connection: Connection) -> None:
        stage.apply(connection, changes, clock[0])

    await store.write(apply)
    for round_ in range(60):
        if round_ in (0, restart):
            deliver = Deliver(sink, store, asyncio.Event(), Metrics(), lambda: clock[0])
            await deliver.recover()
        resting = deliver.resting_until_us > clock[0]
        calls = len(sink.calls)
        await deliver.step()
        assert not resting or len(sink.calls) == calls, "a sink that asked for rest has it"
        clock[0] += 60_000_000
    with store.read() as connection:
        return [(row.state, row.intent.ticket.key) for row in outbox.recent(connection, 100)]


def test_silence_of_any_length_completes_records_in_order() -> None:
    source = decoder(framing="multiline")
    for seq in range(5):
        source.decode(message(b"E", seq, topic=f"t{seq}", received_at=NOW + timedelta(seconds=seq)))
    closed = [event.id.seq for event in source.flush(NOW + timedelta(seconds=4)).events]
    assert closed == [0, 1, 2]
    assert all(isinstance(event, LogLine) for event in source.finish().events)
