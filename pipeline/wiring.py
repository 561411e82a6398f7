"""The only file that knows everyone: from a site file to the running whole. It reads like the diagram of a
message's life; what each part does stands in its own room."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from connectors import BoardConfig, MqttConfig
from connectors.base import Sink, Source
from pipeline.commands import handlers, standing
from pipeline.config import Site, SourceView
from pipeline.control import ControlServer
from pipeline.housekeeping import Gauges, Retention
from pipeline.model.memory import peak_rss_mb
from pipeline.model.reader import ModelReader
from pipeline.model.rules import RulesReader
from pipeline.model.thread import STOP_S, ModelState, ModelThread
from pipeline.notify import Notifier
from pipeline.patterns import Book
from pipeline.review import Desk
from pipeline.service import Service
from pipeline.stages.alarm import Alarms
from pipeline.stages.decide import Decider
from pipeline.stages.decode import Decoder
from pipeline.stages.dedupe import Redelivery
from pipeline.stages.deliver import Deliver
from pipeline.stages.fast_lane import FastLane
from pipeline.stages.feed import Feed
from pipeline.stages.intake import Intake
from pipeline.stages.judge import Judge
from pipeline.stages.read import Read
from pipeline.stages.route import Router
from pipeline.stages.settle import Settler
from pipeline.stages.validate import Validator
from pipeline.store import board, journal, patterns, sites
from pipeline.store.codec import now_us
from pipeline.store.engine import Store
from pipeline.store.totals import counts
from pipeline.store.view import StoreView
from pipeline.telemetry import Health, Metrics, TelemetryServer
from schemas.errors import AndonError
from schemas.extraction import Severity
from schemas.ticket import Ticket


def feed_of(site: Site, view: SourceView) -> Feed:
    """One source's way through the stages."""
    config = view.config
    decider = Decider(site.rules, view.labels, site.review.confidence_min, _code_severities(view))
    validator = Validator(view.profile, view.labels, view.timezone, site.review.confidence_min)
    mqtt = isinstance(config, MqttConfig)
    return Feed(
        source=view.name,
        profile_name=view.profile_name,
        profile=view.profile,
        labels=view.labels,
        timezone=view.timezone,
        decoder=Decoder(view.name, config, site.limits, view.timezone),
        judge=Judge(decider, validator, view.profile, site.review.confidence_min, view.live),
        redelivery=Redelivery(config.receive_maximum) if isinstance(config, MqttConfig) else None,
        content_window_us=int(config.dedupe.content_window_s * 1e6) if mqtt else 0,
    )


def _code_severities(view: SourceView) -> dict[str, Severity]:
    return {
        name: code.severity
        for codes in view.codes.values()
        for name, code in codes.items()
        if code.severity is not None
    }


class Core:
    """Store, book, stages and review desk: everything but the outside. `andon try` and the CLI use it
    alone."""

    def __init__(self, site: Site, store: Store) -> None:
        self.site = site
        self.store = store
        with store.read() as connection:
            self.book = Book.load(patterns.load_all(connection), site.limits.patterns_max)
        self.feeds: Mapping[str, Feed] = {name: feed_of(site, site.for_source(name)) for name in site.sources}
        self.alarms = Alarms(Router(site.routes), site.site)
        store.on_rollback(self.alarms.forget)
        self.settler = Settler(self.feeds, self.book, self.alarms, site.hash)
        self.tickets_put = asyncio.Event()
        self.desk = Desk(store, self.book, self.settler, self.feeds, self.tickets_put.set)

    def reader(self) -> ModelThread:
        """The model's thread, not yet loading."""
        return ModelThread(self.site.model, RulesReader(), ModelReader.open)


class App:
    """The running service: `async with App(site, notifier) as app: await app.service.run()`."""

    def __init__(self, site: Site, notifier: Notifier) -> None:
        self.site = site
        self.notifier = notifier
        self.metrics = Metrics()
        self.began = time.monotonic()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        try:
            await self._assemble()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def _assemble(self) -> None:
        site, metrics = self.site, self.metrics
        store = await asyncio.to_thread(Store.open, site.store_path, site.store)
        self.store = store
        self._stack.callback(store.close)
        await store.write(lambda connection: sites.put(connection, site.hash, site.text, now_us()))
        core = self.core = Core(site, store)
        journaled, unread_put, tickets_put = asyncio.Event(), asyncio.Event(), core.tickets_put

        self.sources = [self._source(name) for name in site.sources]
        self.sinks = [build_sink(site, name, store) for name in site.sinks]
        for sink in self.sinks:
            self._stack.push_async_callback(sink.close)
        self.model = core.reader()
        self._stack.push_async_callback(self.model.stop)

        intakes = [Intake(source, store, journaled, metrics) for source in self.sources]
        self.fast = FastLane(
            store,
            core.settler,
            journaled,
            unread_put,
            tickets_put,
            metrics,
            site.limits.batch_messages,
            site.limits.unread_max,
        )
        self.slow = Read(
            store,
            core.settler,
            core.book,
            self.model,
            core.feeds,
            self.fast.checks,
            unread_put,
            tickets_put,
            metrics,
            site.limits.unread_max_wait_s,
        )
        self.delivers = [Deliver(sink, store, tickets_put, metrics) for sink in self.sinks]
        self.gauges = Gauges(store, core.book, self.model, intakes, metrics)
        self.service = Service(
            sources=self.sources,
            intakes=intakes,
            lanes=[self.fast, self.slow, *self.delivers],
            tasks=[
                self.gauges,
                Retention(store, site.retention, site.review),
                ControlServer(site.socket_path, {**handlers(core.desk), "status": self.status}),
            ],
            settled=self.settled,
            release=self._release,
            notifier=self.notifier,
            pinged=self._pinged,
        )
        await self._serve_metrics()
        self.model.start()

    def _source(self, name: str) -> Source:
        with self.store.read() as connection:
            position = journal.position(connection, name)
        self.metrics.declare_source(name)
        return self.site.sources[name].build(name, position=position or None, base=self.site.path("."))

    async def _serve_metrics(self) -> None:
        options = self.site.metrics
        if options.port is None:
            return
        server = TelemetryServer(self.metrics, self.health, options.host, options.port)
        try:
            await server.start()
        except OSError as error:
            raise AndonError(
                f"metrics: {options.host}:{options.port} cannot be used ({error.strerror or error}); "
                "in the site file choose another port, or turn metrics off: `metrics: {port: null}`"
            ) from error
        self._stack.push_async_callback(server.close)

    def health(self) -> Health:
        stalled = self.service.stalled()
        holding = [intake.source.name for intake in self.service.intakes if intake.holding]
        detail = {"model": str(self.model.state), "stalled": stalled, "holding": holding}
        return Health(live=not stalled, ready=self.service.ready.is_set() and not holding, detail=detail)

    async def status(self) -> dict[str, Any]:
        """What is going on, for `andon status`."""
        return {
            "site": self.site.site,
            "running_s": round(time.monotonic() - self.began, 1),
            "sources": {source.name: asdict(source.stats()) for source in self.sources},
            "refused": {
                intake.source.name: intake.refused
                for intake in self.service.intakes
                if intake.refused and not intake.source.stats().connected
            },
            "holding": [i.source.name for i in self.service.intakes if i.holding],
            "stalled": self.service.stalled(),
            "sinks": {sink.name: lane.standing for sink, lane in zip(self.sinks, self.delivers, strict=True)},
            "model": {
                "state": str(self.model.state),
                "reason": self.model.reason,
                "readings": self.model.readings,
            },
            "patterns": len(self.core.book),
            **standing(self.store),
        }

    def _pinged(self, sent: bool) -> None:
        (self.metrics.watchdog_pings if sent else self.metrics.watchdog_withheld).inc()

    async def _release(self) -> None:
        """Let the model go. A reading in hand ends soon; a load takes its time, for nobody."""
        await self.model.stop(0.0 if self.model.state is ModelState.LOADING else STOP_S)

    async def settled(self) -> bool:
        """Nothing journaled is left to settle, and no ticket that could be sent now. The unread may wait on
        disk."""
        if self.fast.backlog():
            return False
        await self.fast.step_records(everything=all(intake.done for intake in self.service.intakes))
        return all(lane.idle() for lane in self.delivers)

    def summary(self) -> dict[str, Any]:
        """The JSON summary of the whole store, with what this process measured."""
        seconds = time.monotonic() - self.began
        with self.store.read() as connection:
            known = asdict(counts(connection))
        return {
            **{name: known[name] for name in SUMMARY},
            "patterns": len(self.core.book),
            "model_reads": self.model.readings,
            "lines_per_s": round(known["lines"] / seconds, 1) if seconds else 0.0,
            "peak_rss_mb": round(peak_rss_mb(), 1),
            "seconds": round(seconds, 2),
        }


SUMMARY = (
    "messages",
    "events",
    "lines",
    "readings",
    "tickets",
    "occurrences",
    "review",
    "discarded",
    "repeats",
    "part_of",
    "pending",
)


def build_sink(site: Site, name: str, store: Store) -> Sink:
    """A sink; the board writes to andon's own store."""

    async def record(ticket: Ticket) -> str:
        return await store.write(lambda connection: board.post(connection, ticket, now_us()))

    config = site.sinks[name]
    if isinstance(config, BoardConfig):
        return config.build(name, record=record)
    return config.build(name, base=site.path("."))


def locked_store(site: Site) -> Store:
    """The store for a command that changes it, when no service runs. Raises StoreLocked when one does."""
    return Store.open(_store_there(site), site.store)


def viewed_store(site: Site) -> Store:
    """The store for a command that only looks at it."""
    return StoreView(_store_there(site))


def _store_there(site: Site) -> Path:
    path = Path(site.store_path)
    if not path.exists():
        raise AndonError(f"{path}: no store there yet; `andon run` creates it")
    return path
