"""Our side of the MQTT bench: the real service on a store of its own, which has read the patterns before."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from textwrap import dedent

from pipeline import config
from pipeline.bench.broker import Broker
from pipeline.bench.lines import CODES
from pipeline.bench.passage import EXPIRY_S, GATEWAY, PATIENCE_S, RECEIVE_MAXIMUM, Go, Passage
from pipeline.config import Site
from pipeline.notify import Notifier
from pipeline.store.totals import Counts, counts
from pipeline.wiring import App
from schemas.errors import AndonError

# How often it is looked whether everything is settled: seldom enough not to slow down what is measured.
LOOK_S = 0.05

_SITE = """\
    site: bench
    sources:
      bench:
        type: mqtt
        host: 127.0.0.1
        port: {port}
        protocol: "{protocol}"
        client_id: {client_id}
        session_expiry_s: {expiry}
        receive_maximum: {receive_maximum}
        topics: ["{topic}"]
        topic_template: bench/{{asset}}/log
        profile: bench
        mode: live
    profiles:
      bench:  # the asset stands in the topic
        fields:
          timestamp: {{type: timestamp, description: when it happened}}
          error_code: {{type: code, description: code of the fault, known: [{codes}]}}
          temperature: {{type: quantity, unit: °C, description: temperature that was measured}}
          pressure: {{type: quantity, unit: bar, description: pressure that was measured}}
          current: {{type: quantity, unit: A, description: electric current that was measured}}
          speed: {{type: quantity, description: speed that was measured}}
    model: {{enabled: false}}
    metrics: {{port: null}}
    store: {{path: gateway.db, free_floor_mb: 0}}
    """


def site(broker: Broker, folder: Path) -> Site:
    """The bench's site file: one live source, a small profile, the rules alone read."""
    text = dedent(_SITE).format(
        port=broker.port,
        protocol="5" if broker.mqtt5 else "3.1.1",
        client_id=GATEWAY.client_id,
        expiry=EXPIRY_S,
        receive_maximum=RECEIVE_MAXIMUM,
        topic=GATEWAY.topic,
        codes=", ".join(CODES),
    )
    return config.loads(text, str(folder / "site.yaml"))


async def run(site: Site, count: int, go: Go | None = None) -> Passage:
    """Start the service, let it take `count` lines to their outcomes (with `go`, from then on), stop it."""
    async with App(site, Notifier()) as app:
        written = app.store.bytes_written() or 0
        before = _counts(app)
        began = time.perf_counter()
        serving = asyncio.create_task(app.service.run(), name="service")
        try:
            if go is not None:
                await _subscribed(app, serving)
                began = await asyncio.to_thread(go)
            await _settled(app, serving, before.events + count)
            seconds = time.perf_counter() - began
            commits = app.metrics.registry.get_sample_value("andon_journal_commits_total")
            await asyncio.to_thread(app.store.checkpoint)
            written = (app.store.bytes_written() or 0) - written
        finally:
            app.service.stop.set()
            await serving
        return Passage(count, seconds, int(commits or 0), written)


async def _subscribed(app: App, serving: asyncio.Task[None]) -> None:
    while not app.sources[0].position.get("subscribed") and not serving.done():  # noqa: ASYNC110  # no event
        await asyncio.sleep(LOOK_S)


async def _settled(app: App, serving: asyncio.Task[None], events: int) -> None:
    """Until `events` events have their outcome and their messages are acknowledged."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        known = _counts(app)
        stats = app.sources[0].stats()
        if known.events >= events and known.pending == 0 and stats.acked == stats.received:
            return
        if serving.done() or time.monotonic() > deadline:
            raise AndonError(f"bench: {known.events - known.pending} of {events} events reached an outcome")
        await asyncio.sleep(LOOK_S)


def _counts(app: App) -> Counts:
    with app.store.read() as connection:
        return counts(connection)
