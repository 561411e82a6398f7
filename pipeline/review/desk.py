"""The review desk: list, show, approve, correct, reject. What a person decides, the pattern keeps.

An answer about a line is a lesson: it is taught to the line's pattern as a person's, never overwritten by a
reader, and every open question about that pattern which it answers is answered with it. Teaching, moving
the events, closing the questions and the audit entries are one transaction.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import Connection

from pipeline.patterns import Book, Kept, Taught, Teaching, Trust, keep
from pipeline.review.correction import (
    Answer,
    Correction,
    ReviewRefused,
    lesson_of,
    refuse_what_stays_open,
)
from pipeline.stages.alarm_batch import AMBIGUOUS
from pipeline.stages.encodings import legible
from pipeline.stages.feed import Feed
from pipeline.stages.judge import Judged
from pipeline.stages.settle import Settler
from pipeline.stages.validate import Checked
from pipeline.store import events, journal, outbox, reviews
from pipeline.store.codec import load_event, now_us
from pipeline.store.engine import Store
from pipeline.store.reviews import Review, ReviewState
from schemas.events import LogLine
from schemas.ticket import Outcome, Settlement

__all__ = ["Correction", "Desk", "ReviewRefused"]

# Questions about tickets, not about readings: the event has its outcome already.
ABOUT_TICKETS = frozenset({"dead_letter", "ticket_unknown"})

# Why an event that a person has dismissed was discarded.
REJECTED = "rejected_by_person"

# Of a payload that was never read: what a terminal, and whoever looks at it, can stand.
SHOWN_BYTES = 1_048_576

# Held events answered by one lesson in one transaction; more of them follow in the next.
REPLAY_CHUNK = 500


class Desk:
    """Every method is safe to call from the event loop; `changed` is called after something was answered."""

    def __init__(
        self,
        store: Store,
        book: Book,
        settler: Settler,
        feeds: Mapping[str, Feed],
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._book = book
        self._settler = settler
        self._feeds = feeds
        self._changed = changed

    async def list(self, limit: int = 100) -> list[dict[str, Any]]:
        """Open questions by group: worst first, then largest, then oldest."""
        with self._store.read() as connection:
            groups = reviews.groups(connection, limit)
            samples = [reviews.get(connection, group.sample_id) for group in groups]
        return [
            {"id": group.sample_id, **asdict(group), **_line_of(sample)}
            for group, sample in zip(groups, samples, strict=True)
        ]

    async def show(self, review_id: int) -> dict[str, Any]:
        """One question with everything known about it; of bytes that were never read, all that the journal
        still has."""
        review = self._get(review_id)
        with self._store.read() as connection:
            whole = _whole(connection, review)
        return {
            "id": review.review_id,
            "state": str(review.state),
            **_asked(review),
            **_line_of(review, whole),
        }

    async def approve(self, review_id: int, who: str, group: bool = True) -> dict[str, Any]:
        """What `show` shows is right. With `group`, for every open question like this one.

        Only that is confirmed: what is empty there stays unsure, and goes without a person's name. A return
        to normal that several open alarms may be meant by ends them all; `reject` ends none of them.
        """
        review = self._open(review_id)
        if review.asked.reason in ABOUT_TICKETS:
            return await self._send_again(review, who, group)
        answer = Answer(who, Correction(), review.asked.reading)
        return await self._teach(review, answer, ReviewState.APPROVED, group)

    async def correct(self, review_id: int, who: str, correction: Correction) -> dict[str, Any]:
        """What was read is wrong, or not known; `correction` says what is right, for the whole pattern.

        What it does not mention stays as it was read, with the confidence it had. The held lines go all the
        same, and their pattern is not asked again for it.
        """
        return await self._teach(self._open(review_id), Answer(who, correction), ReviewState.CORRECTED, True)

    async def reject(self, review_id: int, who: str, why: str, group: bool = False) -> dict[str, Any]:
        """Nothing is to be done about it; nothing is taught. With `group`, for every open question like
        this one."""

        def dismiss(connection: Connection, each: Review) -> None:
            if each.asked.reason not in ABOUT_TICKETS:
                settlement = Settlement(each.asked.id, Outcome.DISCARD, REJECTED)
                events.move(connection, each.asked.id, Outcome.REVIEW, settlement)
            reviews.resolve(connection, each.review_id, ReviewState.REJECTED, who, now_us(), {"why": why})

        return await self._each(self._open(review_id), dismiss, group)

    async def _send_again(self, review: Review, who: str, group: bool) -> dict[str, Any]:
        def requeue(connection: Connection, each: Review) -> None:
            reading = each.asked.reading
            outbox.requeue(connection, str(reading["key"]), str(reading["sink"]), now_us())
            reviews.resolve(connection, each.review_id, ReviewState.APPROVED, who, now_us())

        return await self._each(review, requeue, group)

    async def _each(
        self, review: Review, answer: Callable[[Connection, Review], None], group: bool
    ) -> dict[str, Any]:
        """Answer one question, or with `group` every open one like it, a chunk a transaction."""

        def write(connection: Connection) -> int:
            asked = [review]
            if group:
                asked = reviews.of_group(connection, review.asked.group_key, REPLAY_CHUNK)
            for each in asked:
                answer(connection, each)
            return len(asked)

        answered = await self._store.write(write)
        while group and answered and answered % REPLAY_CHUNK == 0:
            more = await self._store.write(write)
            if not more:
                break
            answered += more
        self._changed()
        return {"answered": answered}

    async def _teach(self, review: Review, answer: Answer, state: ReviewState, group: bool) -> dict[str, Any]:
        line = _line(review)
        feed = self._feeds.get(line.source)
        if feed is None:
            raise ReviewRefused(f"the site file knows no source {line.source!r} any more; reject it instead")
        match = self._book.match(feed.profile_name, line.text)
        known = match.taught.lesson if match.taught is not None else None
        lesson = lesson_of(line, known, answer, feed.profile, feed.labels)
        judged = self._settler.judge(line, match, Taught(lesson, 0, now_us()))
        refuse_what_stays_open(lesson, judged, answer, feed.labels, feed.judge.confidence_min)
        teaching = self._book.propose(feed.profile_name, line.text, lesson, now_us())
        if teaching is None:
            raise ReviewRefused("somebody else is teaching this pattern; look again and repeat")
        return await self._write_lesson(review, teaching, state, answer, group)

    async def _write_lesson(
        self,
        review: Review,
        teaching: Teaching,
        state: ReviewState,
        answer: Answer,
        group: bool,
    ) -> dict[str, Any]:
        kept = None
        after: int | None = None

        def write(connection: Connection) -> int:
            nonlocal kept, after
            kept = keep(connection, self._book, teaching)
            if kept is None:
                raise ReviewRefused("the pattern was taught anew meanwhile; look again and repeat")
            asked = {review.review_id: review}
            if group:
                like, after = self._like(connection, review, teaching, 0)
                asked |= {each.review_id: each for each in like}
            return replay(connection, [*asked.values()], kept)

        def replay(connection: Connection, asked: Sequence[Review], kept: Kept) -> int:
            return self._replay(connection, review, asked, teaching, kept, state, answer)

        def write_more(connection: Connection) -> int:
            nonlocal after
            assert kept is not None and after is not None
            like, after = self._like(connection, review, teaching, after)
            return replay(connection, like, kept)

        try:
            answered = await self._store.write(write)
        except BaseException:
            self._book.abort(teaching)
            raise
        assert kept is not None, "the transaction went through"
        self._book.commit(teaching, kept)
        while after is not None and self._stands(teaching, kept):
            answered += await self._store.write(write_more)
        self._changed()
        return {"answered": answered, "pattern_id": kept.pattern_id}

    def _stands(self, teaching: Teaching, kept: Kept) -> bool:
        """Whether nobody has taught the pattern anything else meanwhile."""
        known = self._book.find(*teaching.key)
        return known is not None and known.version == kept.version

    def _like(
        self, connection: Connection, review: Review, teaching: Teaching, after: int
    ) -> tuple[Sequence[Review], int | None]:
        """A chunk of the open questions about lines of the taught pattern, whatever their codes, and after
        which question the next one begins; None: there is no more."""
        rows = reviews.of_pattern(
            connection, teaching.pattern_id, review.asked.group_key, REPLAY_CHUNK, after
        )
        found = [each for each in rows if self._same_pattern(each, teaching)]
        return found, rows[-1].review_id if len(rows) == REPLAY_CHUNK else None

    def _same_pattern(self, review: Review, teaching: Teaching) -> bool:
        feed = self._feeds.get(review.asked.source)
        if feed is None or review.asked.reason in ABOUT_TICKETS or "text" not in review.asked.event:
            return False
        match = self._book.match(feed.profile_name, str(review.asked.event["text"]))
        return (feed.profile_name, match.signature.text) == teaching.key[:2]

    def _replay(
        self,
        connection: Connection,
        review: Review,
        asked: Sequence[Review],
        teaching: Teaching,
        kept: Kept,
        state: ReviewState,
        answer: Answer,
    ) -> int:
        """Judge the held lines anew and move those that nothing holds back any more.

        The answer is about one code: lines with others go only when all that they lacked is shared by it.
        """
        answered, variants = 0, self._book.siblings(teaching, kept)
        for each in asked:
            line = _line(each)
            known = self._book.match(self._feeds[line.source].profile_name, line.text)
            taught = variants.get(known.variant)
            if taught is None or taught.trust is Trust.DISPUTED:
                continue
            judged = self._settler.judge(line, known._replace(pattern_id=kept.pattern_id), taught)
            same = known.variant == teaching.variant and each.asked.group_key == review.asked.group_key
            if same or each.review_id == review.review_id:
                judged = _as_a_person_says(judged, answer.who, each.asked.reason)
            if self._settler.settle_held(connection, [judged], Outcome.REVIEW, now_us()):
                said = {"correction": asdict(answer.correction), "taught_by": teaching.own.taught_by}
                reviews.resolve(connection, each.review_id, state, answer.who, now_us(), said)
                answered += 1
        return answered

    def _get(self, review_id: int) -> Review:
        with self._store.read() as connection:
            review = reviews.get(connection, review_id)
        if review is None:
            raise ReviewRefused(f"there is no question {review_id}; `andon review list` shows the open ones")
        return review

    def _open(self, review_id: int) -> Review:
        review = self._get(review_id)
        if review.state is not ReviewState.OPEN:
            raise ReviewRefused(f"question {review_id} is {review.state} by {review.resolved_by} already")
        return review


def _as_a_person_says(judged: Judged, who: str, reason: str) -> Judged:
    """A person has seen this question (`reason`) and let it pass: what held it back is a remark from now on.
    How severe a line is must be known all the same: without that it has no end to go to."""
    if judged.change.decision.severity.label is None:
        return judged
    checked = judged.change.checked
    passed = Checked(
        [], [], [*checked.passed, f"seen by {who}"], [*checked.remarks, *checked.details], checked.unsure
    )
    return Judged(replace(judged.change, checked=passed, confirmed=reason == AMBIGUOUS))


def _line(review: Review) -> LogLine:
    if "received_at" not in review.asked.event:
        raise ReviewRefused(f"{review.asked.reason}: this was never read as a line; reject it with a reason")
    event = load_event(review.asked.id, review.asked.event)
    if not isinstance(event, LogLine):
        raise ReviewRefused("this is a reading, not a line: change its rule in the site file, or reject it")
    return event


def _line_of(review: Review | None, whole: bytes = b"") -> dict[str, Any]:
    """What the question is about, as people can read it: bytes that are no text are shown as escapes.

    `size`, in bytes, and `cut` say what is not there, when something is not.
    """
    event = review.asked.event if review is not None else {}
    if "bytes" not in event:
        return {"line": str(event.get("text") or event.get("written") or "")}
    shown = whole or base64.b64decode(event["bytes"])
    size = max(len(shown), event.get("size", 0))
    cut = {"cut": f"the first {len(shown)} of {size} bytes", "size": size}
    return {"line": legible(shown), **(cut if len(shown) < size else {})}


def _whole(connection: Connection, review: Review) -> bytes:
    """What the question has only the first bytes of, as far as it is to be shown; none when it is gone."""
    event = review.asked.event
    head = base64.b64decode(event.get("bytes", ""))
    message = journal.get(connection, review.asked.id.seq) if len(head) < event.get("size", 0) else None
    at = message.payload.find(head) if message is not None else -1
    return message.payload[at : at + min(event["size"], SHOWN_BYTES)] if message and at >= 0 else b""


def _asked(review: Review) -> dict[str, Any]:
    asked = review.asked
    return {
        "event": str(asked.id),
        "source": asked.source,
        "topic": asked.topic,
        "reason": asked.reason,
        "group_key": asked.group_key,
        "pattern_id": asked.pattern_id,
        "severity": asked.severity,
        "reading": dict(asked.reading),
        "resolved_by": review.resolved_by,
        "resolution": review.resolution,
    }
