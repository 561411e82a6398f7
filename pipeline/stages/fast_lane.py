"""The fast lane: the journal, batch by batch, through `settle`. Waits for nothing but the disk."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import structlog

from pipeline.patterns.book import Match
from pipeline.stages.settle import Batch, Settler
from pipeline.store import journal, unread
from pipeline.store.engine import Store
from pipeline.telemetry import Metrics
from schemas.errors import StoreUnavailable
from schemas.events import LogLine
from schemas.ticket import Settlement

T = TypeVar("T")

log = structlog.get_logger(__name__)

# How often open multi-line records are looked at while nothing arrives.
FLUSH_S = 0.5

# How often a full store is tried again.
STORE_RETRY_S = 1.0


class FastLane:
    """Settles what is journaled, in order. Sets `unread_put` and `tickets_put` when there is work for
    others."""

    name = "settle"
    drains = True

    def __init__(
        self,
        store: Store,
        settler: Settler,
        journaled: asyncio.Event,
        unread_put: asyncio.Event,
        tickets_put: asyncio.Event,
        metrics: Metrics,
        batch_messages: int,
        unread_max: int,
    ) -> None:
        self.progressed_at = time.monotonic()
        # Lines of provisional plans to be read once more: one a plan at a time.
        self.checks: deque[tuple[LogLine, Match]] = deque()
        self._store = store
        self._settler = settler
        self._journaled = journaled
        self._unread_put = unread_put
        self._tickets_put = tickets_put
        self._metrics = metrics
        self._batch_messages = batch_messages
        self._unread_max = unread_max
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="settle")

    def backlog(self) -> int:
        """Messages accepted and not settled."""
        with self._store.read() as connection:
            return journal.last_seq(connection) - journal.cursor(connection)

    async def run(self) -> None:
        await self._in_thread(self._restore)
        swept = False
        while True:
            self._journaled.clear()
            try:
                if not swept:
                    await self.sweep()
                    swept = True
                while await self.step():
                    pass
                await self.step_records()
            except StoreUnavailable as error:
                log.error("settle.holding", error=str(error))
                self.progressed_at = time.monotonic()  # waiting for the disk is not being stuck
                await self._in_thread(self._restore)
                await asyncio.sleep(STORE_RETRY_S)
                continue
            await self._idle()

    async def step(self) -> bool:
        """Settle one batch; False when there was nothing to settle."""
        batch = await self._in_thread(self._prepare)
        if batch is None:
            return False
        await self._commit(batch)
        return True

    async def step_records(self, *, everything: bool = False) -> None:
        """Settle the multi-line records that are complete (`everything`: all of them)."""
        now_us = time.time_ns() // 1000
        batch = await self._in_thread(lambda: self._settler.flush(now_us, everything=everything))
        if batch.sources:
            await self._commit(batch)

    async def sweep(self) -> None:
        """Settle the multi-line records of sources that the site file has no more."""
        batch = await self._in_thread(self._orphans)
        if batch.ended:
            await self._commit(batch)
            log.warning("records.orphaned", sources=sorted({source for source, _ in batch.ended}))

    async def _commit(self, batch: Batch) -> None:
        try:
            settlements = await self._store.write(lambda connection: self._settler.commit(connection, batch))
        except BaseException:
            for _, match in batch.checks:  # the batch is repeated, and claims them again
                self._settler.book.release_check(match.pattern_id or 0, match.variant)
            raise
        self.progressed_at = time.monotonic()
        self._count(batch, settlements)
        self._settler.book.count(batch.matches, batch.now_us)
        self.checks.extend(batch.checks)
        if batch.unread or batch.checks:
            self._unread_put.set()
        if batch.judged:
            self._tickets_put.set()

    def _count(self, batch: Batch, settlements: Sequence[Settlement]) -> None:
        """Into the metrics. The unread are counted when they are read: they have no outcome yet."""
        outcomes = Counter((row.source, row.state) for row in batch.rows)
        outcomes.update(
            (judged.change.event.source, settlement.outcome)
            for judged, settlement in zip(batch.judged, settlements, strict=True)
        )
        for (source, outcome), n in outcomes.items():
            self._metrics.events.labels(source, outcome).inc(n)

    def _prepare(self) -> Batch | None:
        with self._store.read() as connection:
            messages = journal.after(connection, journal.cursor(connection), self._batch_messages)
            if not messages:
                return None
            room = max(0, self._unread_max - unread.size(connection))
            return self._settler.prepare(connection, messages, time.time_ns() // 1000, room)

    def _orphans(self) -> Batch:
        with self._store.read() as connection:
            return self._settler.orphans(connection, time.time_ns() // 1000)

    def _restore(self) -> None:
        with self._store.read() as connection:
            self._settler.restore(connection)

    async def _idle(self) -> None:
        try:
            async with asyncio.timeout(FLUSH_S):
                await self._journaled.wait()
        except TimeoutError:
            return

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)
