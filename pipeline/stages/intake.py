"""intake: journal first, acknowledge after the commit.

One task a source. Whatever arrived during the last commit goes into the next one: no artificial wait, no
message waits for another stage. Only a store that cannot take writes stops it: then nothing is
acknowledged, the same deliveries are tried again until space returns, and the broker keeps everything that
comes after them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import structlog
from pydantic import JsonValue

from connectors.base import Delivery, Source
from pipeline.store import journal
from pipeline.store.engine import Store
from pipeline.telemetry import Metrics
from schemas.errors import SourceRefused, StoreUnavailable

log = structlog.get_logger(__name__)

# How often a full store is tried again. Short enough that a plant hardly notices the end of the trouble.
STORE_RETRY_S = 1.0

# How long a refused source rests before it is tried again: an operator has to change something first.
REFUSED_RETRY_S = 30.0


class Intake:
    """Moves deliveries of one source into the journal and acknowledges them. `done` tells that the source
    has ended."""

    def __init__(self, source: Source, store: Store, journaled: asyncio.Event, metrics: Metrics) -> None:
        self.name = f"intake.{source.name}"
        self.source = source
        self.done = False
        self.holding = False  # the store refuses: nothing is acknowledged
        self.refused: str | None = None  # why the source's other side will not have us
        self._store = store
        self._journaled = journaled
        self._metrics = metrics
        self._position: dict[str, JsonValue] = {}

    async def run(self) -> None:
        """Until the source ends. A source that is refused (credentials, client id) rests and is tried
        again."""
        while not self.done:
            try:
                async for batch in self.source.batches():
                    self.refused = None
                    await self._accept(batch)
                self.done = True
                self._journaled.set()
            except SourceRefused as error:
                self.refused = str(error)
                log.error(
                    "source.refused", source=self.source.name, error=str(error), retry_s=REFUSED_RETRY_S
                )
                await asyncio.sleep(REFUSED_RETRY_S)

    async def _accept(self, batch: Sequence[Delivery]) -> None:
        await self._append(batch)
        await self.source.ack(batch)
        self._metrics.acknowledged.labels(self.source.name).inc(len(batch))
        now_us = time.time_ns() // 1000
        self._metrics.received.labels(self.source.name).inc(len(batch))
        for delivery in batch:
            self._metrics.receive_to_ack.observe(max(0.0, (now_us - delivery.received_at_us) / 1e6))
        self._journaled.set()

    async def _append(self, batch: Sequence[Delivery]) -> None:
        position = self._moved()
        while True:
            began = time.monotonic()
            try:
                await self._store.write(
                    lambda connection: journal.append(connection, self.source.name, batch, position)
                )
            except StoreUnavailable as error:
                if not self.holding:
                    log.error("intake.holding", source=self.source.name, error=str(error))
                self.holding = True
                await asyncio.sleep(STORE_RETRY_S)
            else:
                if self.holding:
                    log.info("intake.resumed", source=self.source.name)
                self.holding = False
                self._metrics.commits.inc()
                self._metrics.commit_seconds.observe(time.monotonic() - began)
                self._position = position or self._position
                return

    def _moved(self) -> dict[str, JsonValue] | None:
        """Where the source goes on after a restart, if that has changed: it belongs to the batch in hand."""
        position = dict(self.source.position)
        return position if position != self._position else None
