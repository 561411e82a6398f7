"""Broker to outcome: the gateway and a bare subscriber take turns with the same number of lines.

The lines wait in the broker, in a persistent session, when a side connects: the publisher takes no time from
what is measured, and neither side has to wait for it. The embedded broker keeps none; there they come live.
"""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Self

from pipeline.bench import gateway, publisher
from pipeline.bench.bare import Subscriber, client, connect, subscribe
from pipeline.bench.broker import Broker, running
from pipeline.bench.figure import Figure, Size
from pipeline.bench.passage import BARE, GATEWAY, Go, Passage, Side
from pipeline.config import Site
from schemas.errors import AndonError

# The first lines teach the patterns: enough of each kind for the book to trust them.
TEACHING_LINES = 600

SUBSCRIBE_S = 10.0

_EMBEDDED = (
    "with the embedded broker, which is the limit: install mosquitto for a figure that means something"
)


@dataclass
class Passages:
    """The turns of both sides, made when first asked for: three benches draw their figures from them.

    `program` is Mosquitto's; None: the embedded broker.
    """

    size: Size
    program: str | None
    note: str = field(default="", init=False)

    @cached_property
    def turns(self) -> list[tuple[Passage, Passage]]:
        """(ours, bare) a round."""
        with ExitStack() as stack:
            broker = stack.enter_context(running(self.program))
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="andon-bench-")))
            self.note = _EMBEDDED if broker.embedded else ""
            site = gateway.site(broker, folder)
            _ours(Filling(broker, GATEWAY, TEACHING_LINES, 0), site)
            return [
                self._turn(broker, site, TEACHING_LINES + number * self.size.mqtt_lines)
                for number in range(self.size.mqtt_rounds)
            ]

    def of(self, what: Callable[[Passage], float]) -> tuple[float, float]:
        """The medians of ours and of the bare subscriber's."""
        return median(what(ours) for ours, _ in self.turns), median(what(bare) for _, bare in self.turns)

    def _turn(self, broker: Broker, site: Site, first: int) -> tuple[Passage, Passage]:
        count = self.size.mqtt_lines
        ours = _ours(Filling(broker, GATEWAY, count, first), site)
        subscriber = Subscriber(broker, site.folder)
        with Filling(broker, BARE, count, first) as filling:
            return ours, subscriber.run(count, filling.go)


def _ours(filling: Filling, site: Site) -> Passage:
    with filling:
        return asyncio.run(gateway.run(site, filling.count, filling.go))


class Filling:
    """Gives one side its lines: before it comes where the broker keeps them, else once it is there (`go`)."""

    def __init__(self, broker: Broker, side: Side, count: int, first: int) -> None:
        self.count = count
        self.go: Go | None = None if broker.keeps else self._start
        self._broker = broker
        self._side = side
        self._first = first
        self._publishing: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        if self.go is None:
            reserve(self._broker, self._side)
            self._start()
            self._finish()
        return self

    def __exit__(self, *_: object) -> None:
        self._finish()

    def _start(self) -> float:
        self._publishing = publisher.start(self._broker.port, self._side.topic, self.count, self._first)
        return time.perf_counter()

    def _finish(self) -> None:
        if self._publishing is not None:
            publishing, self._publishing = self._publishing, None
            publisher.finish(publishing)


def reserve(broker: Broker, side: Side) -> None:
    """Begin the persistent session, or find it again, subscribe, and leave it."""
    subscribed = threading.Event()
    visitor = client(broker, side.client_id)
    subscribe(visitor, side, subscribed)
    connect(visitor, broker)
    visitor.loop_start()
    try:
        if not subscribed.wait(SUBSCRIBE_S):
            raise AndonError("bench: the broker did not confirm the subscription")
    finally:
        visitor.disconnect()
        visitor.loop_stop()


def mqtt(passages: Passages) -> Iterator[Figure]:
    """Lines per second from the broker to their outcomes; baseline: the bare subscriber's messages."""
    ours, bare = passages.of(lambda passage: passage.lines_per_s)
    yield Figure("mqtt", ours, "lines/s", bare, passages.note)


def journal(passages: Passages) -> Iterator[Figure]:
    """Journal commits per second under that load, and what one holds; baseline: the bare subscriber's."""
    ours, bare = passages.of(lambda passage: passage.commits_per_s)
    yield Figure("journal.commits", ours, "commits/s", bare, passages.note)
    ours, bare = passages.of(lambda passage: passage.lines_per_commit)
    yield Figure("journal.batch", ours, "messages/commit", bare, passages.note)


def store(passages: Passages) -> Iterator[Figure]:
    """Bytes written to the disk for each settled line; baseline: the bare subscriber's journal."""
    ours, bare = passages.of(lambda passage: passage.bytes_per_line)
    yield Figure("store", ours, "bytes/line", bare, passages.note)
