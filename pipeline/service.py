"""The life of the service: start, watch, drain.

Everything runs in one TaskGroup: a lane that dies ends the service with its traceback, since a live process
with a dead stage is worse than a restart (whatever was not settled is in the journal). SIGTERM drains from
the head: sources pause, the settle lane empties, deliveries in flight finish, sources disconnect last. What
waits to be read waits on disk: the model is let go at once, and takes no time from the rest.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from connectors.base import Source
from pipeline.notify import Notifier
from pipeline.stages.intake import Intake

log = structlog.get_logger(__name__)

# Under systemd's TimeoutStopSec of 40 s, over one model reading plus one ticket request with its deadline.
DRAIN_S = 25.0

# A lane with work it could do and no progress for this long is stuck: longer than any one model call or
# transaction.
STALLED_S = 60.0

# How often it is looked whether everything is settled: that is spread over the store and three lanes,
# nobody could tell it.
SETTLED_S = 0.05

# How often the loop proves that it lives. systemd's WatchdogSec is several times this.
HEARTBEAT_S = 2.0


class Lane(Protocol):
    """One task of the service. `backlog` is the work it could do now; `progressed_at` when it last did some
    (monotonic). `drains` says whether its work is done to the end before the service goes."""

    name: str
    drains: bool
    progressed_at: float

    def backlog(self) -> int: ...

    async def run(self) -> None: ...


class Task(Protocol):
    """A task without a backlog (servers, housekeeping)."""

    name: str

    async def run(self) -> None: ...


@dataclass(slots=True)
class Service:
    """The running whole. `run` returns when `stop` is set (or every source has ended) and the drain is
    over."""

    sources: Sequence[Source]
    intakes: Sequence[Intake]
    lanes: Sequence[Lane]
    tasks: Sequence[Task]
    settled: Callable[[], Awaitable[bool]]  # nothing journaled is left to settle, no ticket left to send now
    release: Callable[[], Awaitable[object]]  # lets go of what only the lanes need that do not drain
    notifier: Notifier
    pinged: Callable[[bool], None]  # hears of every watchdog ping, sent or withheld
    drain_s: float = DRAIN_S
    clock_s: Callable[[], float] = time.monotonic
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    _working_since: dict[str, float] = field(default_factory=dict)  # by lane

    async def run(self) -> None:
        """Run to the end. Raises the ExceptionGroup of whatever died."""
        async with asyncio.TaskGroup() as group:
            intakes = [group.create_task(i.run(), name=i.name) for i in self.intakes]
            readers = [
                group.create_task(lane.run(), name=lane.name) for lane in self.lanes if not lane.drains
            ]
            others = [
                group.create_task(task.run(), name=task.name)
                for task in (*(lane for lane in self.lanes if lane.drains), *self.tasks)
            ]
            heart = group.create_task(self._heartbeat(), name="heartbeat")
            self.notifier.ready("running")
            self.ready.set()
            log.info("service.ready", sources=[s.name for s in self.sources])
            await self._until_stopped(intakes)
            self.notifier.stopping()
            await _end(readers)
            group.create_task(_finish(self.release), name="release")
            await self._drain(intakes)
            for task in (*others, heart):
                task.cancel()
        log.info("service.stopped")

    async def _until_stopped(self, intakes: Sequence[asyncio.Task[None]]) -> None:
        """Until told to stop, or until no source can bring anything more (stdin at its end, files not
        followed) and everything that they brought is settled."""
        stop = asyncio.ensure_future(self.stop.wait())
        ended = asyncio.ensure_future(self._exhausted(intakes)) if intakes else None
        try:
            await asyncio.wait([stop, *([ended] if ended else [])], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()
            if ended:
                ended.cancel()

    async def _exhausted(self, intakes: Sequence[asyncio.Task[None]]) -> None:
        await asyncio.wait(intakes)
        while not await self.settled() or any(lane.backlog() for lane in self.lanes):  # noqa: ASYNC110
            await asyncio.sleep(SETTLED_S)

    async def _drain(self, intakes: Sequence[asyncio.Task[None]]) -> None:
        log.info("service.draining", limit_s=self.drain_s)
        deadline = time.monotonic() + self.drain_s
        for source in self.sources:
            await source.pause()
        while not (settled := await self.settled()) and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(SETTLED_S)
        if not settled:  # it is on disk, and done after the next start
            log.warning("service.drain_cut", limit_s=self.drain_s)
        await _end(intakes)
        for source in self.sources:
            await source.close()

    async def _heartbeat(self) -> None:
        """Pings the watchdog while the loop lives and no lane is stuck. An idle plant is healthy."""
        while True:
            stuck = self.stalled()
            if stuck:
                log.error("service.stalled", lanes=stuck, after_s=STALLED_S)
                self.notifier.status(f"stalled: {', '.join(stuck)}")
            self.pinged(not stuck and self.notifier.watchdog())
            await asyncio.sleep(HEARTBEAT_S)

    def stalled(self) -> list[str]:
        """Names of the lanes that have had work for STALLED_S and have not moved in that time.

        The time of a lane without work does not count. That work came is noticed when somebody asks: the
        heartbeat does.
        """
        now, stuck = self.clock_s(), []
        for lane in self.lanes:
            if not lane.backlog():
                self._working_since.pop(lane.name, None)
                continue
            since = self._working_since.setdefault(lane.name, now)
            if now - max(since, lane.progressed_at) >= STALLED_S:
                stuck.append(lane.name)
        return stuck


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _finish(work: Callable[[], Awaitable[object]]) -> None:
    await work()
