"""settle: a batch of the journal becomes settlements, in one transaction. It never waits for the model.

`prepare` runs in a worker thread and writes nothing: decode, dedupe, match, plan, decide, validate. `commit`
runs in the store's writer thread: events, unread lines, alarm changes, outbox rows, questions, open records
and the cursor, all or nothing. A crash before it repeats the batch; after it, nothing repeats. Lines that
were unread and have been read since come through `judge` and `settle_held`: the same way, from the plan on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection

from pipeline.fields import Context
from pipeline.patterns.book import Book, Match
from pipeline.patterns.lesson import Taught, Trust
from pipeline.stages import questions
from pipeline.stages.alarm import Alarms
from pipeline.stages.decide import ROUTINE
from pipeline.stages.decode import documents
from pipeline.stages.feed import Feed
from pipeline.stages.judge import Judged
from pipeline.stages.multiline import OpenRecord
from pipeline.stages.urgency import urgency
from pipeline.store import events, journal, records, reviews, seen, sites, unread
from pipeline.store.codec import from_us, to_us
from pipeline.store.events import EventRow, Kind
from pipeline.store.reviews import NewReview
from pipeline.store.seen import SeenRow
from pipeline.store.totals import UNREAD
from pipeline.store.unread import UnreadRow
from schemas.events import Event, EventId, LogLine, Message
from schemas.ticket import Outcome, Settlement

# The site file no longer knows the source: its last messages are kept for a person.
UNKNOWN_SOURCE = "unknown_source"


@dataclass(slots=True)
class Batch:
    """What a number of messages came to, not yet written. `first` and `through` are their first and last seq.

    `matches` are lines read by the book, to be counted after the commit; `checks` those of provisional
    plans that are to be read once more.
    """

    now_us: int
    first: int = 0
    through: int = 0
    rows: list[EventRow] = field(default_factory=list)
    judged: list[Judged] = field(default_factory=list)  # for the alarm stage
    questions: list[NewReview] = field(default_factory=list)
    unread: list[UnreadRow] = field(default_factory=list)
    seen: list[SeenRow] = field(default_factory=list)
    sources: set[str] = field(default_factory=set)
    matches: list[Match] = field(default_factory=list)
    checks: list[tuple[LogLine, Match]] = field(default_factory=list)
    ended: list[tuple[str, str]] = field(
        default_factory=list
    )  # source and topic of records nobody goes on with


class Settler:
    """Turns messages into settlements. `prepare` belongs to one thread, `commit` and `settle_held` to the
    writer's."""

    def __init__(self, feeds: Mapping[str, Feed], book: Book, alarms: Alarms, site_hash: str = "") -> None:
        self.feeds = feeds
        self.book = book
        self._alarms = alarms
        self._site_hash = site_hash

    def restore(self, connection: Connection) -> None:
        """Bring the decoders in step with the store: at the start, and after a batch that was not
        committed. The alarms hear of that from the store (Store.on_rollback)."""
        for name, feed in self.feeds.items():
            open_records = [_opened(connection, row) for row in records.load(connection, name)]
            feed.decoder.restore(journal.encoding(connection, name), open_records)
            if feed.redelivery is not None:
                feed.redelivery.reset()

    def prepare(self, connection: Connection, messages: Sequence[Message], now_us: int, room: int) -> Batch:
        """`room` is how many more lines may become unread; those beyond it are asked raw."""
        batch = Batch(now_us, messages[0].seq, messages[-1].seq)
        arrived: dict[str, list[tuple[Event, EventId]]] = {}
        for message in messages:
            arrived.setdefault(message.source, []).extend(self._message(connection, message, batch))
        folded = self._fold(connection, arrived, batch)
        for source, found in arrived.items():
            for event, document in found:
                self._event(event, document, self.feeds[source], folded, batch)
        for row in batch.unread[room:]:
            self._ask(questions.raw(row.line, questions.OVERFLOW, now_us), Kind.LINE, batch)
        del batch.unread[room:]
        return batch

    def flush(self, now_us: int, *, everything: bool = False) -> Batch:
        """Multi-line records that nothing was added to for a while; `everything`: all, at the end of a
        source."""
        batch = Batch(now_us)
        for feed in self.feeds.values():
            decoded = feed.decoder.finish() if everything else feed.decoder.flush(from_us(now_us))
            for event, document in documents(decoded.events):
                batch.sources.add(feed.source)
                self._event(event, document, feed, {}, batch)
        return batch

    def orphans(self, connection: Connection, now_us: int) -> Batch:
        """Open records of sources that have left the site file: nothing will ever be added to them, and what
        they have is asked of a person."""
        batch = Batch(now_us)
        for row in records.load(connection):
            if row.source not in self.feeds:
                line = _line_of(row.source, _opened(connection, row))
                self._ask(questions.raw(line, UNKNOWN_SOURCE, now_us), Kind.LINE, batch)
                batch.ended.append((row.source, row.topic))
        return batch

    def commit(self, connection: Connection, batch: Batch) -> list[Settlement]:
        """Write a prepared batch; the settlements of the alarm stage. Must run inside a transaction of the
        writer."""
        settlements = self._alarms.apply(connection, [judged.change for judged in batch.judged], batch.now_us)
        rows = [_row(j, s) for j, s in zip(batch.judged, settlements, strict=True)]
        waiting = [EventRow(each.line.id, each.line.source, Kind.LINE, UNREAD) for each in batch.unread]
        events.settle(connection, [*batch.rows, *rows, *waiting])
        unread.put(connection, batch.unread)
        reviews.put(connection, batch.questions)
        seen.add(connection, batch.seen)
        for name in batch.sources:
            self._remember(connection, name)
        for source, topic in batch.ended:
            records.close(connection, source, topic)
        if batch.through:
            journal.set_cursor(connection, batch.through)
            sites.decoded_with(connection, batch.first, self._site_hash)
        return settlements

    def judge(self, line: LogLine, match: Match, taught: Taught) -> Judged:
        """A line, read by its pattern's plan and judged."""
        feed = self.feeds[line.source]
        context = Context(feed.timezone, line.received_at)
        extraction = taught.plan.read(line.text, match.signature, feed.profile, context)
        verdict = taught.lesson.verdict(extraction)
        return feed.judge.judge(line, extraction, verdict, match.pattern_id)

    def settle_held(
        self, connection: Connection, judged: Iterable[Judged], from_state: str, now_us: int
    ) -> list[EventRow]:
        """Move held events (unread, or in review) to what they have become; the events that were moved.

        Compare and set: an event that somebody else has settled meanwhile is left alone. Events in review
        whose question stands stay there.
        """
        held = list(judged)
        standing = events.standing(connection, [each.change.id for each in held], from_state)
        batch = Batch(now_us)
        for each in held:
            if each.change.id in standing and not (from_state == Outcome.REVIEW and each.reasons):
                self._take(each, batch)
        settlements = self._alarms.apply(connection, [each.change for each in batch.judged], now_us)
        rows = batch.rows + [_row(j, s) for j, s in zip(batch.judged, settlements, strict=True)]
        events.move_all(connection, from_state, rows)
        reviews.put(connection, batch.questions)
        if from_state == UNREAD:
            unread.remove(connection, [row.id for row in rows])
        return rows

    def ask_raw(
        self,
        connection: Connection,
        lines: Sequence[LogLine],
        reason: str,
        now_us: int,
        pattern_id: int | None = None,
    ) -> list[EventRow]:
        """Unread lines that wait no longer: a person sees them as they are. The events that were moved."""
        standing = events.standing(connection, [line.id for line in lines], UNREAD)
        batch = Batch(now_us)
        for line in lines:
            if line.id in standing:
                self._ask(questions.raw(line, reason, now_us, pattern_id), Kind.LINE, batch)
        events.move_all(connection, UNREAD, batch.rows)
        reviews.put(connection, batch.questions)
        unread.remove(connection, [line.id for line in lines])
        return batch.rows

    def _message(self, connection: Connection, message: Message, batch: Batch) -> list[tuple[Event, EventId]]:
        """The message's events, each with its document; what ends here (repeats, refused payloads) is in
        the batch."""
        feed = self.feeds.get(message.source)
        if feed is None:
            self._ask(questions.orphan(message, UNKNOWN_SOURCE, batch.now_us), Kind.UNDECODABLE, batch)
            return []
        repeat = feed.repeat_of(connection, message)
        if repeat is not None:
            batch.rows.append(_settled(repeat, message.source, Kind.UNDECODABLE))
            return []
        batch.sources.add(message.source)
        decoded = feed.decoder.decode(message)
        for what in decoded.undecodable:
            self._ask(questions.refused(message, what, batch.now_us), Kind.UNDECODABLE, batch)
        for settlement in decoded.settled:
            batch.rows.append(_settled(settlement, message.source, Kind.LINE))
        return list(documents(decoded.events))

    def _fold(
        self, connection: Connection, arrived: Mapping[str, Sequence[tuple[Event, EventId]]], batch: Batch
    ) -> dict[EventId, Settlement]:
        repeats: dict[EventId, Settlement] = {}
        for source, found in arrived.items():
            lines = [event for event, _ in found if isinstance(event, LogLine)]
            if lines:
                folded = self.feeds[source].fold(connection, lines)
                repeats |= folded.repeats
                batch.seen += folded.fresh
        return repeats

    def _event(
        self,
        event: Event,
        document: EventId,
        feed: Feed,
        repeats: Mapping[EventId, Settlement],
        batch: Batch,
    ) -> None:
        if not isinstance(event, LogLine):
            self._take(feed.judge.judge(event, document=document), batch)
        elif event.id in repeats:
            batch.rows.append(_settled(repeats[event.id], event.source, Kind.LINE))
        else:
            early = feed.judge.early(event)
            if early is not None:
                self._take(early, batch)
            else:
                self._line(event, feed, batch)

    def _line(self, line: LogLine, feed: Feed, batch: Batch) -> None:
        match = self.book.match(feed.profile_name, line.text)
        taught = match.taught
        if taught is None or taught.plan.stale_fields(feed.profile):
            batch.unread.append(
                UnreadRow(
                    line,
                    feed.profile_name,
                    match.signature.text,
                    match.variant,
                    urgency(line.text),
                    batch.now_us,
                )
            )
            return
        batch.matches.append(match)
        if taught.trust is Trust.DISPUTED:
            self._ask(
                questions.raw(line, questions.DISPUTED, batch.now_us, match.pattern_id), Kind.LINE, batch
            )
            return
        if feed.judge.routine(line, taught.lesson):
            batch.rows.append(
                EventRow(
                    line.id, line.source, Kind.LINE, Outcome.DISCARD, ROUTINE, pattern_id=match.pattern_id
                )
            )
        else:
            self._take(self.judge(line, match, taught), batch)
        if self.book.claim_check(match, line.text):
            batch.checks.append((line, match))

    def _take(self, judged: Judged, batch: Batch) -> None:
        settlement = judged.settlement
        if settlement is not None:
            batch.rows.append(_row(judged, settlement))
        elif judged.reasons:
            self._ask(questions.about(judged, batch.now_us), _kind(judged.change.event), batch)
        else:
            batch.judged.append(judged)

    def _ask(self, question: NewReview, kind: Kind, batch: Batch) -> None:
        batch.questions.append(question)
        batch.rows.append(
            EventRow(
                question.id,
                question.source,
                kind,
                Outcome.REVIEW,
                question.reason,
                pattern_id=question.pattern_id,
            )
        )

    def _remember(self, connection: Connection, source: str) -> None:
        """The source's open records and encoding, as they are after the batch."""
        decoder = self.feeds[source].decoder
        open_records = {record.topic: record for record in decoder.open_records}
        for stored in records.load(connection, source):
            if stored.topic not in open_records:
                records.close(connection, source, stored.topic)
        records.put(connection, [_stored(source, record) for record in open_records.values()])
        if decoder.encoding != journal.encoding(connection, source):
            journal.set_encoding(connection, source, decoder.encoding)


def _kind(event: Event) -> Kind:
    return Kind.LINE if isinstance(event, LogLine) else Kind.READING


def _row(judged: Judged, settlement: Settlement) -> EventRow:
    change = judged.change
    return _settled(settlement, change.event.source, _kind(change.event), change.pattern_id)


def _settled(settlement: Settlement, source: str, kind: Kind, pattern_id: int | None = None) -> EventRow:
    return EventRow(
        settlement.id,
        source,
        kind,
        settlement.outcome,
        settlement.reason,
        settlement.alarm_id,
        pattern_id,
        settlement.of,
    )


def _stored(source: str, record: OpenRecord) -> records.OpenRecord:
    return records.OpenRecord(
        source, record.topic, record.id, record.text, record.lines, to_us(record.touched_at)
    )


def _line_of(source: str, record: OpenRecord) -> LogLine:
    return LogLine(record.id, source, record.topic, record.text, record.received_at, retain=record.retain)


def _opened(connection: Connection, row: records.OpenRecord) -> OpenRecord:
    """An open record as the decoder holds it; what the row does not say stands in the journal."""
    begun = journal.get(connection, row.id.seq)
    touched_at = from_us(row.touched_at_us)
    return OpenRecord(
        topic=row.topic,
        id=row.id,
        text=row.text,
        lines=row.lines,
        received_at=begun.received_at if begun else touched_at,
        touched_at=touched_at,
        retain=begun.retain if begun else False,
    )
