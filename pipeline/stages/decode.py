"""decode: bytes to events, by the source's framing. What arrives becomes an event, a settlement or a review.

What text a JSON document is read as: the whole document, with its `\\u` escapes decoded, so that its level,
time and device can be read and spans are spans of what was received. Only where the document is nothing but
the envelope of one text line (`{"log": "...", "stream": "stderr"}`) the line is that text. A document of
readings alone is no line, except in a log file, where every line is one. A document's line comes before its
readings; all share the message's sequence. An array of objects is as many documents (an array of points, each
a name and a value, is one).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo

from connectors.base import SourceOptions
from pipeline.stages import numbers
from pipeline.stages.encodings import TextDecoder, Undecodable
from pipeline.stages.multiline import Joiner, OpenRecord
from pipeline.stages.options import Limits
from pipeline.stages.payload import Node, NotJson, Obj, TooDeep, items, looks_broken, parse, readable
from pipeline.stages.telemetry import Found, Measured, dominant_text, is_point, search
from pipeline.stages.times import event_time
from pipeline.stages.topics import Levels, TopicTemplate
from schemas.events import Event, EventId, LogLine, Message, Reading
from schemas.extraction import Null
from schemas.ticket import Outcome, Settlement

# First bytes kept with a review item: enough to recognise the sender, small enough for a table.
HEAD_BYTES = 4096
# More repeats than this in one line is no count but an attack on the counters.
REPEATED_MAX = 1_000_000

_REPEATED = re.compile(
    r"(?P<before>.*?)\bmessage repeated (?P<n>\d{1,9}) times?: ?\[ ?(?P<text>.*?) ?\]\s*$", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Refused:
    """An event that goes to review without having been read: why, and the first bytes of `size`."""

    id: EventId
    reason: str
    head: bytes
    size: int


@dataclass(slots=True)
class Decoded:
    """What one message came to. Indexes are dense over events, settled and undecodable together."""

    events: list[Event] = field(default_factory=list)
    settled: list[Settlement] = field(default_factory=list)
    undecodable: list[Refused] = field(default_factory=list)


def unrepeat(text: str) -> tuple[str, int]:
    """syslog's `message repeated N times: [ text ]` as the text it stands for, and N. Others: as is, 1."""
    if "message repeated " not in text:
        return text, 1
    match = _REPEATED.fullmatch(text)
    if match is None:
        return text, 1
    return match["before"] + match["text"], max(1, min(int(match["n"]), REPEATED_MAX))


class Decoder:
    """Decodes one source's messages, in order. Not thread-safe: the settle lane owns it.

    `restore` brings what is remembered (open records, encoding) back in step with the store after a rollback.
    """

    def __init__(
        self,
        source: str,
        options: SourceOptions,
        limits: Limits,
        timezone: tzinfo,
        encoding: str | None = None,
    ) -> None:
        self.source = source
        self._framing = options.framing
        self._limits = limits
        self._timezone = timezone
        self._text = TextDecoder(options.encoding, encoding)
        self._template = TopicTemplate(options.topic_template) if options.topic_template else None
        self._joiner = Joiner(options.multiline, limits.line_chars)
        self._levels: dict[str, Levels] = {}

    @property
    def encoding(self) -> str | None:
        """The encoding other than UTF-8 that several payloads showed: keep it for the next start."""
        return self._text.found

    @property
    def open_records(self) -> tuple[OpenRecord, ...]:
        """Multi-line records not yet complete: their first events are pending."""
        return self._joiner.records

    def restore(self, encoding: str | None, records: Iterable[OpenRecord]) -> None:
        """Go back to what `encoding` and `open_records` were (after a rollback, or at start)."""
        self._text.restore(encoding)
        self._joiner.restore(records)

    def decode(self, message: Message) -> Decoded:
        """Everything in one message, with framing multiline also the records it completes. Never raises."""
        frame = _Frame(message, self)
        if len(message.payload) > self._limits.payload_bytes:
            frame.refuse("payload_too_large")
        elif self._framing == "payload":
            self._payload(frame)
        else:
            self._lines(frame)
        if frame.count > self._limits.events_per_message:
            frame = _Frame(message, self)
            frame.refuse("too_many_events")
        return frame.out

    def flush(self, now: datetime) -> Decoded:
        """Records that nothing was added to for `flush_s`."""
        return self._records(self._joiner.expired(now))

    def finish(self) -> Decoded:
        """Every open record: the source has ended."""
        return self._records(self._joiner.close())

    def _records(self, records: Sequence[OpenRecord]) -> Decoded:
        out = Decoded()
        for record in records:
            out.events.append(self.record(record))
        return out

    def record(self, record: OpenRecord) -> LogLine:
        text, repeated = unrepeat(record.text)
        asset = self.levels(record.topic).asset
        return LogLine(
            record.id, self.source, record.topic, text, record.received_at, asset, record.retain, repeated
        )

    def levels(self, topic: str) -> Levels:
        if self._template is None:
            return Levels()
        known = self._levels.get(topic)
        if known is None:
            if len(self._levels) >= 10_000:  # topics are the sender's choice: bounded
                self._levels.clear()
            known = self._levels[topic] = self._template.levels(topic)
        return known

    def _payload(self, frame: _Frame) -> None:
        try:
            text = self._text.decode(frame.message.payload)
        except Undecodable:
            frame.refuse("undecodable")
            return
        text = text.rstrip("\n")
        if not text.strip():
            frame.settle("empty_payload")
        elif not self._bare(text, frame):
            self._document(text, frame, log=False)

    def _bare(self, text: str, frame: _Frame) -> bool:
        """A number alone, or what stands where one should: a reading of the topic's metric (CASES 2, 3)."""
        levels = self.levels(frame.message.topic)
        metric = levels.metric or frame.message.topic.rpartition("/")[2]
        if not metric or len(text) > 64:
            return False
        parsed = numbers.parse_with_unit(text) if levels.metric else numbers.parse(text)
        if parsed is None:
            return False
        frame.reading(Measured(metric, "", parsed, None, parsed.unit, None, None), None)
        return True

    def _lines(self, frame: _Frame) -> None:
        lines = self._text.lines(frame.message.payload)
        if lines[-1] == "":
            del lines[-1]  # what stands behind the last line break is no line
        if not any(lines) or all(isinstance(line, str) and not line.strip() for line in lines):
            frame.settle("empty_payload")
            return
        if self._framing == "multiline":
            frame.out.events.extend(map(self.record, self._joiner.expired(*frame.moment())))
        for line in lines:
            if isinstance(line, bytes):
                frame.refuse("undecodable", line)
            elif not line.strip():
                self._blank(line, frame)
            elif self._framing == "multiline":
                self._join(line, frame)
            else:
                self._document(line, frame, log=True)

    def _blank(self, line: str, frame: _Frame) -> None:
        record = self._joiner.records if self._framing == "multiline" else ()
        if any(open_record.topic == frame.message.topic for open_record in record):
            self._join(line or " ", frame)  # an empty line inside a trace belongs to it
        else:
            frame.settle("blank_line")

    def _join(self, line: str, frame: _Frame) -> None:
        if len(line) > self._limits.line_chars:
            frame.refuse("line_too_long", line.encode())
            return
        message = frame.message
        id_ = frame.next_id()
        begun = OpenRecord(
            message.topic, id_, line, 1, message.received_at, message.received_at, message.retain
        )
        closed, part_of = self._joiner.add(line, begun)
        if closed is not None:
            frame.out.events.append(self.record(closed))
        if part_of is not None:
            frame.out.settled.append(Settlement(id_, Outcome.PART_OF, "multiline", of=part_of))

    def _document(self, text: str, frame: _Frame, log: bool) -> None:
        if text.lstrip()[:1] not in ("{", "["):
            frame.line(text)
            return
        try:
            document = parse(text, self._limits.json_depth)
        except TooDeep:
            frame.refuse("json_too_deep", text.encode())
            return
        except NotJson:
            if looks_broken(text):
                frame.refuse("broken_json", text.encode())
            else:
                frame.line(text)
            return
        self._carried(text, document, frame, log)

    def _carried(self, text: str, document: Node, frame: _Frame, log: bool) -> None:
        metric = self.levels(frame.message.topic).metric
        parts = [
            (part, node, search(node, metric, place)) for part, node, place in _documents(text, document)
        ]
        # Where one record is worth reading as a line all of them are: the readings of the next one would else
        # belong to the line before.
        heard = [found for _, node, found in parts if not _is_empty(node) and not found.last_will]
        log = log or any(found.speaks or not found.readings for found in heard)
        for part, node, found in parts:
            self._part(part, node, found, frame, log)

    def _part(self, text: str, document: Node, found: Found, frame: _Frame, log: bool) -> None:
        if _is_empty(document) or found.last_will:
            frame.settle("last_will" if found.last_will else "empty_payload")
            return
        if log:
            frame.line(dominant_text(document) or readable(text), found.asset)
        time = found.times[0] if len(set(found.times)) == 1 else None
        for measured in found.readings:
            frame.reading(measured, time)

    def time(self, written: str | None, received_at: datetime) -> datetime | None:
        return None if written is None else event_time(written, self._timezone, received_at)

    def fits(self, text: str) -> bool:
        return len(text) <= self._limits.line_chars


class _Frame:
    """One message being decoded: hands out indexes and collects what comes of it."""

    def __init__(self, message: Message, decoder: Decoder) -> None:
        self.message = message
        self.out = Decoded()
        self._decoder = decoder
        self._levels = decoder.levels(message.topic)
        self._next = 0

    @property
    def count(self) -> int:
        """The events that came of it so far."""
        return len(self.out.events) + len(self.out.settled) + len(self.out.undecodable)

    def next_id(self) -> EventId:
        self._next += 1
        return EventId(self.message.seq, self._next - 1)

    def moment(self) -> tuple[datetime, str]:
        return self.message.received_at, self.message.topic

    def refuse(self, reason: str, data: bytes | None = None) -> None:
        whole = self.message.payload if data is None else data
        self.out.undecodable.append(Refused(self.next_id(), reason, whole[:HEAD_BYTES], len(whole)))

    def settle(self, reason: str) -> None:
        self.out.settled.append(Settlement(self.next_id(), Outcome.DISCARD, reason))

    def line(self, text: str, asset: str | None = None) -> None:
        if not self._decoder.fits(text):
            self.refuse("line_too_long", text.encode("utf-8", "replace"))
            return
        text, repeated = unrepeat(text)
        message, asset = self.message, self._levels.asset or asset
        self.out.events.append(
            LogLine(
                self.next_id(),
                message.source,
                message.topic,
                text,
                message.received_at,
                asset,
                message.retain,
                repeated,
            )
        )

    def reading(self, found: Measured, document_time: str | None) -> None:
        message, number = self.message, found.number
        bad = number.value is not None and (
            numbers.bad_quality(found.quality) or numbers.is_sentinel(number.value, found.metric)
        )
        self.out.events.append(
            Reading(
                id=self.next_id(),
                source=message.source,
                topic=message.topic,
                metric=found.metric,
                value=None if bad else number.value,
                received_at=message.received_at,
                null=Null.BAD if bad else number.null,
                asset=self._levels.asset or found.asset,
                unit=found.unit,
                quality=found.quality,
                time=self._decoder.time(found.time or document_time, message.received_at),
                pointer=found.pointer,
                written=number.written,
                retain=message.retain,
            )
        )


def _is_empty(document: Node) -> bool:
    return document == [] or (isinstance(document, Obj) and not document.members)


def _documents(text: str, document: Node) -> list[tuple[str, Node, str]]:
    """The documents of a JSON payload: what each reads, what it is, and its pointer in the payload."""
    if not isinstance(document, list) or not document:
        return [(text, document, "")]
    records = [node for node in document if isinstance(node, Obj)]
    if len(records) < len(document) or all(map(is_point, records)):
        return [(text, document, "")]
    return [(part, node, f"/{n}") for n, (part, node) in enumerate(zip(items(text), records, strict=True))]


def documents(events: Sequence[Event]) -> Iterator[tuple[Event, EventId]]:
    """Each event with the id of its document: that of the line before it in the message, if there is one."""
    document: EventId | None = None
    for event in events:
        if isinstance(event, LogLine) or document is None or document.seq != event.id.seq:
            document = event.id
        yield event, document
