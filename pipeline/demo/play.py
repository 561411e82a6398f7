"""The demo: the whole job on this machine, with nothing else installed.

An embedded broker, the bundled plant published over MQTT, the real service with the real model, the local
ticket board. The site file and the store lie in a folder that stays, so that the queue and the book can be
looked at afterwards.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion

from pipeline import config
from pipeline.demo.broker import EmbeddedBroker, free_port
from pipeline.demo.generator import SAMPLE_LINES, SEED, Item, generate, sample
from pipeline.demo.site import write_site
from pipeline.model.thread import ModelState
from pipeline.notify import Notifier
from pipeline.store import board, reviews
from pipeline.wiring import App
from schemas.errors import AndonError

# Messages a second: as much as a small hall says, slow enough to watch.
RATE = 40.0

# The last part of a timed run, in which nothing new is published and what waits is read.
QUIET_SHARE = 0.25

# How often the picture is drawn anew.
REFRESH_S = 0.25


@dataclass(frozen=True, slots=True)
class Picture:
    """What the demo shows at one moment."""

    summary: dict[str, Any]
    model: str
    unread: int
    tickets: list[dict[str, Any]] = field(default_factory=list)
    review_open: int = 0

    @property
    def readings_per_1000(self) -> float:
        lines = self.summary["lines"]
        return round(1000 * self.summary["model_reads"] / lines, 1) if lines else 0.0


async def play(
    folder: Path, seconds: float | None, show: Callable[[Picture], None], stop: asyncio.Event
) -> dict[str, Any]:
    """Run the demo in `folder` for `seconds` (None: until `stop`), showing a picture now and then; the
    summary.

    A timed run ends by itself: publishing stops after three quarters, and the rest is for what waits to be
    read.
    """
    port = free_port()
    site = config.load(write_site(folder, port))
    with ExitStack() as stack:
        stack.enter_context(EmbeddedBroker(port))
        async with App(site, Notifier()) as app:
            serving = asyncio.create_task(app.service.run(), name="service")
            publishing = asyncio.create_task(_publish(port, app, seconds), name="plant")
            try:
                await _watch(app, serving, seconds, show, stop)
            finally:
                publishing.cancel()
                app.service.stop.set()
                await asyncio.gather(publishing, return_exceptions=True)
                await serving
            await app.gauges.step()
            return app.summary()


async def _watch(
    app: App,
    serving: asyncio.Task[None],
    seconds: float | None,
    show: Callable[[Picture], None],
    stop: asyncio.Event,
) -> None:
    began = time.monotonic()
    while not stop.is_set() and (seconds is None or time.monotonic() - began < seconds):
        if serving.done():
            return
        show(await asyncio.to_thread(picture, app))
        try:
            async with asyncio.timeout(REFRESH_S):
                await stop.wait()
        except TimeoutError:
            continue


def picture(app: App) -> Picture:
    """How things stand now."""
    with app.store.read() as connection:
        tickets = board.recent(connection, 8)
        review_open = reviews.open_count(connection)
    summary = app.summary()
    state = "reading" if app.model.state is ModelState.READY and app.slow.backlog() else str(app.model.state)
    return Picture(summary, state, app.slow.backlog(), tickets, review_open)


async def _publish(port: int, app: App, seconds: float | None) -> None:
    """The bundled plant, then further days of it, at RATE; every message is confirmed by the broker."""
    await app.service.ready.wait()
    client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id="demo-plant", protocol=mqtt.MQTTv311)
    await asyncio.to_thread(client.connect, "127.0.0.1", port)
    client.loop_start()
    began = time.monotonic()
    until = None if seconds is None else began + seconds * (1 - QUIET_SHARE)
    try:
        await _connected(app)
        for number, item in enumerate(_plant()):
            if until is not None and time.monotonic() >= until:
                return
            client.publish(item.topic, item.payload, qos=1)
            await asyncio.sleep(max(0.0, began + number / RATE - time.monotonic()))
    finally:
        client.disconnect()
        client.loop_stop()


async def _connected(app: App) -> None:
    """Wait until the gateway is subscribed: what is published before it is nobody's."""
    for _ in range(100):
        if all(source.stats().connected for source in app.sources):
            return
        await asyncio.sleep(0.1)
    raise AndonError("the gateway did not connect to the demo's own broker within 10 s")


def _plant() -> Iterator[Item]:
    return chain(sample(), chain.from_iterable(generate(SEED + day, SAMPLE_LINES) for day in count(1)))


def where_next(folder: Path, command: str) -> list[str]:
    """What to look at after the demo, with `andon` called as `command`."""
    return [f"{command} {what} {folder / 'site.yaml'}" for what in ("review list", "patterns list", "status")]
