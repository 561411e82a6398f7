"""The real stages of a site on a real store, stepped by hand, with a reader that says what a test wants."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from sqlalchemy import Connection, text

from connectors.base import Delivery
from pipeline import config
from pipeline.fields.definition import Labels, Profile
from pipeline.model.options import ModelConfig
from pipeline.model.thread import ModelThread
from pipeline.stages.fast_lane import FastLane
from pipeline.stages.read import Read
from pipeline.store import admin, events, journal, outbox, reviews
from pipeline.store.engine import Store
from pipeline.store.events import EventRow
from pipeline.store.outbox import OutboxRow
from pipeline.store.reviews import Review
from pipeline.store.totals import Counts, counts
from pipeline.telemetry import Metrics
from pipeline.wiring import Core
from schemas.errors import StoreUnavailable
from schemas.extraction import Choice, Extraction, FieldValue, Span, Tier, Transition, Verdict

T = TypeVar("T")

PROFILE = """
profiles:
  line:
    fields:
      device: {type: asset, description: what it is about}
      temperature: {type: quantity, description: temperature, unit: °C, range: [-40, 200]}
"""
SITE = f"""
site: hall
model: {{enabled: false}}
metrics: {{port: null}}
store: {{path: andon.db, free_floor_mb: 0}}
sources:
  line7: {{type: mqtt, host: 127.0.0.1, topics: ["plant/+/log"], topic_template: "plant/{{asset}}/log",
          profile: line, mode: live}}
{PROFILE}"""


def verdict(line: str, severity: str | None = "error", confidence: float = 0.95, **values: str) -> Verdict:
    """What a reader says of a line; `values` are parts of it. Severities above info raise."""
    fields = {name: FieldValue() for name in ("device", "temperature")}
    for name, value in values.items():
        start = line.index(value)
        span = Span(start, start + len(value))
        fields[name] = FieldValue(span, None, confidence=confidence, tier=Tier.MODEL)
    return Verdict(
        Extraction(fields, "scripted", Tier.MODEL),
        Choice(severity, confidence if severity else 0.0, Tier.MODEL),
        transition=Transition.NONE if severity in (None, "info") else Transition.RAISE,
    )


class ScriptedReader:
    """Says of a line what `says` says; `texts` are the lines it was asked."""

    name = "scripted"

    def __init__(self, says: Callable[[str], Verdict] = verdict) -> None:
        self.says = says
        self.texts: list[str] = []

    def read(self, texts: Sequence[str], profile: Profile, labels: Labels) -> list[Verdict]:
        self.texts += texts
        return [self.says(each) for each in texts]


class Rig:
    """`async with Rig(folder) as rig:` a site's store, stages and both lanes. Nothing runs by itself.

    `failures` is how many of the next writes roll back at their very end, as a full disk makes them.
    """

    def __init__(self, folder: Path, site: str = SITE, reader: ScriptedReader | None = None) -> None:
        self.site = config.loads(site, str(folder / "site.yaml"))
        self.reader = reader or ScriptedReader()
        self.failures = 0

    async def __aenter__(self) -> Self:
        self.store = await asyncio.to_thread(Store.open, self.site.store_path, self.site.store)
        self._write = self.store.write
        self.store.write = self.write  # type: ignore[method-assign]
        self.core = Core(self.site, self.store)
        self.model = ModelThread(ModelConfig(enabled=False), self.reader, _no_model)
        self.model.start()
        self.metrics = Metrics()
        self.journaled, self.unread_put, self.tickets_put = asyncio.Event(), asyncio.Event(), asyncio.Event()
        limits = self.site.limits
        self.fast = FastLane(
            self.store,
            self.core.settler,
            self.journaled,
            self.unread_put,
            self.tickets_put,
            self.metrics,
            limits.batch_messages,
            limits.unread_max,
        )
        self.slow = Read(
            self.store,
            self.core.settler,
            self.core.book,
            self.model,
            self.core.feeds,
            self.fast.checks,
            self.unread_put,
            self.tickets_put,
            self.metrics,
            limits.unread_max_wait_s,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.model.stop()
        await asyncio.to_thread(self.store.close)

    async def write(self, fn: Callable[[Connection], T]) -> T:
        if not self.failures:
            return await self._write(fn)
        self.failures -= 1

        def full(connection: Connection) -> T:
            fn(connection)
            raise StoreUnavailable("no space left")

        return await self._write(full)

    async def accept(self, *lines: str | bytes, source: str = "line7", **given: Any) -> list[int]:
        """Journal a message a line; their seqs."""
        values: dict[str, Any] = {
            "topic": "plant/press/log",
            "received_at_us": time.time_ns() // 1000,
        } | given
        made = [
            Delivery(payload=each if isinstance(each, bytes) else each.encode(), **values) for each in lines
        ]
        return list(await self._write(lambda connection: journal.append(connection, source, made)))

    async def settle(self) -> None:
        """The fast lane, until the journal is empty."""
        while await self.fast.step():
            pass

    async def read(self) -> None:
        """The slow lane, until nothing is unread and nothing has to be checked."""
        while await self.slow.step() or await self.slow.check():
            pass

    async def tell(self, *lines: str | bytes, **given: Any) -> list[EventRow]:
        """Lines all the way; what became of each message's first event."""
        seqs = await self.accept(*lines, **given)
        await self.settle()
        await self.read()
        return [self.events(seq)[0] for seq in seqs]

    def events(self, seq: int) -> list[EventRow]:
        with self.store.read() as connection:
            return events.of_message(connection, seq)

    def states(self) -> list[tuple[str, str]]:
        """State and reason of every event, in order."""
        with self.store.read() as connection:
            query = text("SELECT state, reason FROM events ORDER BY seq, idx")
            return [(row.state, row.reason) for row in connection.execute(query)]

    def questions(self) -> list[Review]:
        """Every question there ever was, oldest first."""
        with self.store.read() as connection:
            ids = [row.id for row in connection.execute(text("SELECT id FROM reviews ORDER BY id"))]
            return [found for each in ids if (found := reviews.get(connection, each)) is not None]

    def tickets(self) -> list[OutboxRow]:
        with self.store.read() as connection:
            return outbox.recent(connection, 1000)

    def counts(self) -> Counts:
        with self.store.read() as connection:
            return counts(connection)

    def number(self, query: str) -> int:
        with self.store.read() as connection:
            return int(connection.execute(text(query)).scalar_one())

    def assert_sound(self) -> None:
        """What the store promises holds, and the sums add up."""
        assert admin.check(self.store.path) == []
        known = self.counts()
        outcomes = (known.tickets, known.occurrences, known.review, known.discarded, known.repeats)
        assert known.events == sum(outcomes) + known.part_of + known.pending


def _no_model(options: ModelConfig) -> Any:
    raise AssertionError("no test of the stages loads a model")
