"""Reads a source in a task of its own, as intake does, and lets a test wait for what it has brought."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from connectors.base import Delivery, Notice, NoticeKind, Source

# Long enough for a busy machine; no test waits that long when all is well.
PATIENCE_S = 20.0


async def until(condition: Callable[[], Any], what: str = "the condition") -> None:
    """Return once `condition()` holds; fail when it does not within PATIENCE_S."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():  # noqa: ASYNC110 - the condition is anything, also in another thread
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"{what} did not come true") from None


class Consumer:
    """What a source has yielded so far. Acknowledges at once unless `ack` is off.

    Clear `running` to stall it.
    """

    def __init__(self, source: Source, *, ack: bool = True) -> None:
        self.source = source
        self.ack = ack
        self.taken: list[Delivery] = []
        self.batches: list[list[Delivery]] = []
        self.error: BaseException | None = None
        self.running = asyncio.Event()
        self.running.set()
        self.task = asyncio.create_task(self._run())

    @property
    def payloads(self) -> list[bytes]:
        return [delivery.payload for delivery in self.taken]

    async def wait_for(self, count: int) -> list[Delivery]:
        """The first `count` deliveries. Raises what the source raised."""
        await until(lambda: len(self.taken) >= count or self.task.done(), f"{count} deliveries")
        if self.error is not None:
            raise self.error
        assert len(self.taken) >= count, f"{len(self.taken)} of {count} came before the end"
        return self.taken[:count]

    async def failure(self) -> BaseException:
        """What the source raised in the end."""
        await until(self.task.done, "the end of the source")
        assert self.error is not None, "the source ended without an error"
        return self.error

    async def stop(self) -> None:
        """As the service stops: pause, take what has arrived, close."""
        await self.source.pause()
        self.running.set()
        await asyncio.wait([self.task], timeout=PATIENCE_S)
        await self.source.close()

    async def abandon(self) -> None:
        """As a killed process leaves it, but for the connection: nothing more is acknowledged."""
        self.ack = False
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.source.close()

    async def _run(self) -> None:
        try:
            async for batch in self.source.batches():
                self.batches.append(list(batch))
                self.taken += batch
                if self.ack:
                    await self.source.ack(batch)
                await self.running.wait()
        except Exception as error:
            self.error = error


@contextlib.asynccontextmanager
async def consuming(source: Source, *, ack: bool = True) -> AsyncIterator[Consumer]:
    """A consumer that is stopped in the end."""
    consumer = Consumer(source, ack=ack)
    try:
        yield consumer
    finally:
        await consumer.stop()


class Notices:
    """Collects what sources say."""

    def __init__(self) -> None:
        self.heard: list[Notice] = []

    def __call__(self, notice: Notice) -> None:
        self.heard.append(notice)

    def of(self, kind: NoticeKind) -> list[Notice]:
        return [notice for notice in self.heard if notice.kind is kind]
