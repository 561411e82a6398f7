"""read: the slow lane. Lines of unknown patterns are read once a pattern, and the rest follows by the plan.

The most urgent and largest group comes first. What its readings teach is written in the same transaction
that settles the first of its lines; the others follow in chunks. Provisional plans are tried on further
lines when nothing is unread.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Mapping, Sequence

import structlog
from sqlalchemy import Connection

from pipeline.model.thread import ModelState, ModelThread
from pipeline.patterns.book import Book, Kept, Match, Teaching
from pipeline.patterns.keep import keep
from pipeline.patterns.learn import study
from pipeline.patterns.lesson import Lesson, Taught, Trust
from pipeline.stages import questions
from pipeline.stages.feed import Feed
from pipeline.stages.settle import UNKNOWN_SOURCE, Settler
from pipeline.store import unread
from pipeline.store.codec import now_us
from pipeline.store.engine import Store
from pipeline.store.events import EventRow
from pipeline.store.totals import UNREAD
from pipeline.store.unread import Group
from pipeline.telemetry import Metrics
from schemas.errors import StoreUnavailable
from schemas.events import LogLine

log = structlog.get_logger(__name__)

# Lines settled in one transaction: small enough that journal commits wait little behind it.
CHUNK = 256

# How often unread lines that have become overdue are looked for.
IDLE_S = 1.0

STORE_RETRY_S = 1.0


class Read:
    """Reads unread groups with the model (or the rules), teaches the book, and settles the group's lines."""

    name = "read"
    drains = False

    def __init__(
        self,
        store: Store,
        settler: Settler,
        book: Book,
        model: ModelThread,
        feeds: Mapping[str, Feed],
        checks: deque[tuple[LogLine, Match]],
        unread_put: asyncio.Event,
        tickets_put: asyncio.Event,
        metrics: Metrics,
        max_wait_s: float,
    ) -> None:
        self.progressed_at = time.monotonic()
        self._store = store
        self._settler = settler
        self._book = book
        self._model = model
        self._profiles = {feed.profile_name: feed for feed in feeds.values()}
        self._checks = checks
        self._unread_put = unread_put
        self._tickets_put = tickets_put
        self._metrics = metrics
        self._max_wait_s = max_wait_s

    def backlog(self) -> int:
        """Unread lines, also while the model that reads them is loading."""
        with self._store.read() as connection:
            return unread.size(connection)

    async def run(self) -> None:
        while True:
            self._unread_put.clear()
            try:
                await self.overdue()
                if self._model.state is ModelState.LOADING:
                    self.progressed_at = time.monotonic()  # waiting for the model is not being stuck
                    worked = False
                else:
                    worked = await self.step() or await self.check()
            except StoreUnavailable as error:
                log.error("read.holding", error=str(error))
                self.progressed_at = time.monotonic()  # nor is waiting for the disk
                await asyncio.sleep(STORE_RETRY_S)
                continue
            if worked:
                self.progressed_at = time.monotonic()
            else:
                await self._idle()

    async def step(self) -> bool:
        """One group: read it if need be, settle a chunk of it. False when nothing is unread."""
        with self._store.read() as connection:
            groups = unread.groups(connection, 2)
            lines = [line for _, line in unread.take(connection, groups[0], CHUNK)] if groups else []
        if not lines:
            return False
        gone = [line for line in lines if line.source not in self._settler.feeds]
        if gone:  # their source has left the site file while they waited
            await self._ask_raw(gone, UNKNOWN_SOURCE)
            return True
        group = groups[0]
        feed = self._profiles.get(group.profile)
        if feed is None:  # the profile has left the site file while its lines waited
            await self._ask_raw(lines, questions.UNKNOWN_PROFILE)
            return True
        taught = self._book.find(group.profile, group.signature, group.variant)
        if taught is None or taught.plan.stale_fields(feed.profile):
            await self._teach(group, feed, lines, taught, alone=len(groups) == 1)
        else:
            await self._settle(lines, taught, None)
        return True

    async def check(self) -> bool:
        """Try a provisional plan on one more line. False when there is none to try."""
        if not self._checks:
            return False
        line, match = self._checks.popleft()
        feed = self._settler.feeds[line.source]
        try:
            # As it is known by now: it may have been read or taught since the line came.
            known = self._book.match(feed.profile_name, line.text).taught
            lesson = await self._study([line], feed, known) if known is not None else None
        finally:
            if match.pattern_id is not None:
                self._book.release_check(match.pattern_id, match.variant)
        teaching = self._propose(line, feed, lesson)
        if teaching is not None:
            await self._settle([], None, teaching)
        return True

    async def overdue(self) -> None:
        """What looks urgent and has waited too long goes to people as it is."""
        before_us = now_us() - int(self._max_wait_s * 1e6)
        with self._store.read() as connection:
            rows = unread.overdue(connection, before_us, 1, CHUNK)
        if rows:
            lines = [row.line for row in rows]
            await self._ask_raw(lines, questions.OVERDUE)
            log.warning("unread.overdue", lines=len(lines), max_wait_s=self._max_wait_s)

    async def _teach(
        self, group: Group, feed: Feed, lines: Sequence[LogLine], taught: Taught | None, alone: bool
    ) -> None:
        # While other patterns wait, each gets one reading; its plan is tried on more lines when there is
        # time.
        lesson = await self._study(lines if alone else lines[:1], feed, taught)
        teaching = self._propose(lines[0], feed, lesson)
        if teaching is None:
            known = self._book.find(group.profile, group.signature, group.variant)
            if known is not None:  # a person taught it while it was being read
                await self._settle(lines, known, None)
            return
        await self._settle(lines, None, teaching)
        log.info(
            "pattern.taught",
            signature=group.signature,
            by=teaching.lesson.taught_by,
            trust=str(teaching.lesson.trust),
            unsure=list(teaching.lesson.unsure),
        )

    async def _study(self, lines: Sequence[LogLine], feed: Feed, taught: Taught | None) -> Lesson | None:
        texts = [line.text for line in lines]
        return await self._model.call(lambda reader: study(texts, feed.profile, feed.labels, reader, taught))

    def _propose(self, line: LogLine, feed: Feed, lesson: Lesson | None) -> Teaching | None:
        if lesson is None:
            return None
        return self._book.propose(feed.profile_name, line.text, lesson, now_us())

    async def _settle(
        self, lines: Sequence[LogLine], taught: Taught | None, teaching: Teaching | None
    ) -> None:
        """One transaction: what was taught, and the lines that it (or what was known) settles."""

        def write(connection: Connection) -> tuple[Kept | None, list[EventRow]]:
            kept = keep(connection, self._book, teaching) if teaching is not None else None
            lesson = Taught(teaching.lesson, kept.version, now_us()) if teaching and kept else taught
            if lesson is None or not lines:
                return kept, []
            return kept, self._settle_lines(connection, lines, lesson, kept)

        try:
            kept, moved = await self._store.write(write)
        except BaseException:
            if teaching is not None:
                self._book.abort(teaching)
            raise
        if teaching is not None:
            if kept is None:
                self._book.abort(teaching)
            else:
                self._book.commit(teaching, kept)
        self._count(moved)
        if moved:
            feeds = self._settler.feeds
            known = [self._book.match(feeds[line.source].profile_name, line.text) for line in lines]
            self._book.count(known, now_us())
            self._tickets_put.set()

    def _settle_lines(
        self, connection: Connection, lines: Sequence[LogLine], taught: Taught, kept: Kept | None
    ) -> list[EventRow]:
        matches = [self._match(line, taught, kept) for line in lines]
        if taught.trust is Trust.DISPUTED:
            pattern_id = matches[0].pattern_id
            return self._settler.ask_raw(connection, lines, questions.DISPUTED, now_us(), pattern_id)
        judged = [
            self._settler.judge(line, match, taught) for line, match in zip(lines, matches, strict=True)
        ]
        return self._settler.settle_held(connection, judged, UNREAD, now_us())

    def _match(self, line: LogLine, taught: Taught, kept: Kept | None) -> Match:
        match = self._book.match(self._settler.feeds[line.source].profile_name, line.text)
        pattern_id = kept.pattern_id if kept is not None else match.pattern_id
        return Match(match.signature, match.variant, pattern_id, taught)

    async def _ask_raw(self, lines: Sequence[LogLine], reason: str) -> None:
        self._count(
            await self._store.write(
                lambda connection: self._settler.ask_raw(connection, lines, reason, now_us())
            )
        )

    def _count(self, moved: Sequence[EventRow]) -> None:
        for row in moved:
            self._metrics.events.labels(row.source, row.state).inc()

    async def _idle(self) -> None:
        try:
            async with asyncio.timeout(IDLE_S):
                await self._unread_put.wait()
        except TimeoutError:
            return
