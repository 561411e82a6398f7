"""A dry run: what lines would become, by the same stages on a throw-away store. Nothing is stored or sent.

The rehearsal knows the patterns that the site's store knows, and learns further ones for itself.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from connectors.base import Delivery
from pipeline.config import Site
from pipeline.model.thread import ModelThread
from pipeline.stages.change import text_of
from pipeline.stages.decode import documents
from pipeline.stages.fast_lane import FastLane
from pipeline.stages.judge import Judged
from pipeline.stages.read import Read
from pipeline.store import admin, events, journal, patterns
from pipeline.store.engine import Store
from pipeline.store.events import EventRow
from pipeline.telemetry import Metrics
from pipeline.wiring import Core, feed_of
from schemas.events import Event, EventId, LogLine, Message, Reading
from schemas.extraction import FieldValue, Null

# Messages journaled in one transaction.
CHUNK = 256


class Rehearsal:
    """`async with Rehearsal(site, source) as rehearsal: async for record in ...`. The source counts as
    live."""

    def __init__(self, site: Site, source: str) -> None:
        live = site.sources[source].model_copy(update={"mode": "live"})
        self._site = site.model_copy(update={"sources": {source: live}})
        self._known = site.store_path
        self._source = source
        self._stack = ExitStack()

    async def __aenter__(self) -> Self:
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="andon-try-"))
        self._store = await asyncio.to_thread(Store.open, Path(folder) / "try.db")
        self._stack.callback(self._store.close)
        if self._known.exists():
            with admin.reading(self._known) as connection:
                rows = list(patterns.load_all(connection))
            await self._store.write(lambda connection: patterns.put_all(connection, rows))
        self._core = Core(self._site, self._store)
        self._model: ModelThread = self._core.reader()
        self._model.start()
        self._lanes()
        return self

    def _lanes(self) -> None:
        unread_put, tickets_put, metrics = asyncio.Event(), asyncio.Event(), Metrics()
        limits = self._site.limits
        self._fast = FastLane(
            self._store,
            self._core.settler,
            asyncio.Event(),
            unread_put,
            tickets_put,
            metrics,
            limits.batch_messages,
            limits.unread_max,
        )
        self._slow = Read(
            self._store,
            self._core.settler,
            self._core.book,
            self._model,
            self._core.feeds,
            self._fast.checks,
            unread_put,
            tickets_put,
            metrics,
            limits.unread_max_wait_s,
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._model.stop()
        self._stack.close()

    async def play(self, payloads: Sequence[bytes], topic: str = "") -> list[dict[str, Any]]:
        """One record an event, in order of arrival: what it would become and why (DESIGN §7, `try`)."""
        await self._model.until_loaded()
        for start in range(0, len(payloads), CHUNK):
            now_us = time.time_ns() // 1000
            chunk = [Delivery(topic, payload, now_us) for payload in payloads[start : start + CHUNK]]
            await self._store.write(partial(journal.append, source=self._source, deliveries=chunk))
            while await self._fast.step():
                pass
        await self._fast.step_records(everything=True)
        while await self._slow.step():
            pass
        return list(self._records())

    def _records(self) -> Iterator[dict[str, Any]]:
        """The messages once more, with what has become of their events."""
        feed = feed_of(self._site, self._site.for_source(self._source))
        found: dict[EventId, Event] = {}
        with self._store.read() as connection:
            for message in _messages(connection):
                decoded = feed.decoder.decode(message)
                found |= {event.id: event for event, _ in documents(decoded.events)}
            # A record ends with a later message, or with the last one.
            found |= {event.id: event for event in feed.decoder.finish().events}
            for message in _messages(connection):
                for row in events.of_message(connection, message.seq):
                    yield self._record(row, found.get(row.id), message)

    def _record(self, row: EventRow, event: Event | None, message: Message) -> dict[str, Any]:
        judged = self._judged(event)
        record: dict[str, Any] = {
            "line": _said(event, message),
            "source": self._source,
            "pattern": row.pattern_id,
            "fields": _fields(event, judged),
            "severity": None,
            "category": None,
            "action": None,
            "outcome": str(row.state),
            "reasons": [row.reason],
        }
        if judged is not None:
            decision = judged.change.decision
            record["severity"] = decision.severity.label
            record["category"] = decision.category.label
            record["action"] = decision.action.label
            checked = judged.change.checked
            record["reasons"] = [row.reason, *checked.details, *checked.remarks]
        return record

    def _judged(self, event: Event | None) -> Judged | None:
        if event is None:
            return None
        feed = self._core.feeds[self._source]
        if isinstance(event, Reading):
            return feed.judge.judge(event)
        match = self._core.book.match(feed.profile_name, event.text)
        if match.taught is None:
            return feed.judge.early(event)
        return self._core.settler.judge(event, match, match.taught)


def _messages(connection: Any) -> Iterator[Message]:
    seq = 0
    while page := journal.after(connection, seq, CHUNK):
        yield from page
        seq = page[-1].seq


def _said(event: Event | None, message: Message) -> str:
    return text_of(event) if event is not None else message.payload[:4096].decode("utf-8", "backslashreplace")


def _fields(event: Event | None, judged: Judged | None) -> dict[str, Any]:
    if isinstance(event, Reading):
        return {
            event.metric: {
                "value": None if event.null is Null.ABSENT else event.written or None,
                "null": str(event.null) if event.null is not None else None,
                "normalised": event.value,
                "origin": f"pointer:{event.pointer}" if event.pointer else "payload",
                "confidence": 1.0,
                "tier": "rule",
            }
        }
    if judged is None or judged.change.extraction is None or not isinstance(event, LogLine):
        return {}
    return {name: _field(value, event.text) for name, value in judged.change.extraction.fields.items()}


def _field(value: FieldValue, text: str) -> dict[str, Any]:
    return {
        "value": value.span.of(text) if value.span is not None and value.null is not Null.UNSURE else None,
        "null": str(value.null) if value.null is not None else None,
        "normalised": value.normalised,
        "origin": value.origin,
        "confidence": round(value.confidence, 4),
        "tier": str(value.tier),
    }
