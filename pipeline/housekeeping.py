"""What the service does beside its lanes: gauges, pattern counts, retention. Nothing here is urgent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import structlog

from connectors.base import Source
from pipeline.model.thread import ModelState, ModelThread
from pipeline.patterns import Book
from pipeline.stages.intake import Intake
from pipeline.stages.options import ReviewConfig
from pipeline.store import alarms, outbox, patterns, retention, reviews, unread
from pipeline.store.codec import now_us
from pipeline.store.engine import Store
from pipeline.store.options import RetentionConfig
from pipeline.store.totals import counts
from pipeline.telemetry import Metrics
from schemas.errors import StoreError, StoreUnavailable

log = structlog.get_logger(__name__)

# How often gauges and pattern counts are brought up to date. Prometheus asks every 15 s or less often.
GAUGES_S = 5.0

# How often retention looks for work. What has become too old is small then, and the disk is touched rarely.
RETENTION_S = 600.0

# Longest content window there is (connectors.base.Dedupe): older digests match nothing any more.
SEEN_US = 86_400_000_000

HOUR_US = 3_600_000_000


class Gauges:
    """Brings metrics up to date and writes the pattern counts down."""

    name = "gauges"

    def __init__(
        self, store: Store, book: Book, model: ModelThread, intakes: Sequence[Intake], metrics: Metrics
    ) -> None:
        self._store = store
        self._book = book
        self._model = model
        self._intakes = intakes
        self._metrics = metrics
        self._readings = 0
        self._seconds = 0.0

    async def run(self) -> None:
        try:
            while True:
                await self.step()
                await asyncio.sleep(GAUGES_S)
        finally:
            self._flush_sync()

    async def step(self) -> None:
        rows = self._book.drain_counts()
        try:
            await self._store.write(lambda connection: patterns.bump(connection, rows))
        except StoreUnavailable:
            self._book.restore_counts(rows)
        await asyncio.to_thread(self.update)

    def update(self) -> None:
        """Every gauge, from one look at the store."""
        metrics = self._metrics
        with self._store.read() as connection:
            known = counts(connection)
            metrics.alarms_open.set(alarms.open_count(connection))
            metrics.review_open.set(reviews.open_count(connection))
            metrics.set_outbox(outbox.counts(connection))
            oldest_us = unread.oldest_us(connection)
        metrics.pending.set(known.pending)
        metrics.unread.set(known.unread)
        metrics.unread_oldest.set(0 if oldest_us is None else max(0.0, (now_us() - oldest_us) / 1e6))
        metrics.patterns.set(len(self._book))
        metrics.wal_bytes.set(self._store.wal_bytes())
        metrics.free_bytes.set(self._store.free_bytes())
        metrics.accepting.set(not any(intake.holding for intake in self._intakes))
        self._sources([intake.source for intake in self._intakes])
        self._model_figures()

    def _sources(self, sources: Sequence[Source]) -> None:
        for source in sources:
            stats = source.stats()
            self._metrics.update_source(
                source.name,
                connected=stats.connected,
                queue_depth=stats.queue_depth,
                dropped=stats.dropped_qos0,
                session_lost=stats.session_lost,
            )

    def _model_figures(self) -> None:
        state = self._model.state
        self._metrics.set_model_state("off" if state is ModelState.STOPPED else str(state))
        readings, seconds = self._model.readings, self._model.seconds
        self._metrics.model_readings.inc(readings - self._readings)
        self._metrics.model_seconds.inc(seconds - self._seconds)
        self._readings, self._seconds = readings, seconds

    def _flush_sync(self) -> None:
        """The last counts, at the end of the service. A store that takes nothing any more loses them only."""
        rows = self._book.drain_counts()
        try:
            self._store.write_sync(lambda connection: patterns.bump(connection, rows))
        except StoreError as error:
            log.warning("counts.lost", patterns=len(rows), error=str(error))


class Retention:
    """Forgets what is too old or too much, a chunk at a time, so that nobody waits long behind it."""

    name = "retention"

    def __init__(
        self,
        store: Store,
        options: RetentionConfig,
        review: ReviewConfig,
        clock_us: Callable[[], int] = now_us,
    ) -> None:
        self._store = store
        self._options = options
        self._review = review
        self._clock_us = clock_us

    async def run(self) -> None:
        while True:
            try:
                await self.step()
            except StoreUnavailable as error:
                log.warning("retention.holding", error=str(error))
            await asyncio.sleep(RETENTION_S)

    async def step(self) -> int:
        """Everything that is due; how many rows went."""
        now, removed = self._clock_us(), 0
        before = now - int(self._options.hours * HOUR_US)
        reviews_before = now - int(self._review.keep_h * HOUR_US)
        while True:
            purged = await self._store.write(
                lambda connection: retention.purge(
                    connection,
                    before,
                    self._options.bytes,
                    now_us=now,
                    seen_before_us=now - SEEN_US,
                    reviews_before_us=reviews_before,
                )
            )
            removed += purged.total
            if not purged.total:
                return removed
            log.info("retention.purged", rows=purged.total)
