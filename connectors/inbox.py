"""The bounded hand-over from a source's own thread to the event loop.

One thread puts, one event loop takes. The loop is woken once for whatever has come together, not once a
delivery.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable

from connectors.base import Delivery

# Deliveries waiting for the journal. It fills only while the store cannot take writes; a few seconds of a
# busy plant.
QUEUE_MESSAGES = 4096

# And their payloads: together with the journal's batch this bounds what a stalled store costs in memory.
QUEUE_BYTES = 32 * 1024 * 1024


class Inbox:
    """Deliveries on their way from one producing thread to `batches()`.

    The producer looks at `full` before it puts and decides for itself what to do: the inbox never drops and
    never blocks. Once it has told the inbox that it waits (`wait_for_room`), `on_room` is called when half of
    it is taken.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        on_room: Callable[[], None] = lambda: None,
        messages_max: int = QUEUE_MESSAGES,
        bytes_max: int = QUEUE_BYTES,
    ) -> None:
        self._loop = loop
        self._on_room = on_room
        self._messages_max = messages_max
        self._bytes_max = bytes_max
        self._queue: deque[Delivery] = deque()
        # Two counters with one writer each: += is not atomic between threads.
        self._bytes_in = 0
        self._bytes_out = 0
        self._arrived = asyncio.Event()
        self._told = False
        self._awaited = False
        self._ended = False
        self._error: BaseException | None = None

    # The producer's side.

    def put(self, delivery: Delivery) -> None:
        """Add one delivery. It is seen by the loop after `flush`."""
        self._queue.append(delivery)
        self._bytes_in += len(delivery.payload)

    def flush(self) -> None:
        """Wake the loop if there is anything that it has not been told about."""
        if self._queue and not self._told:
            self._told = True
            self._tell()

    def end(self, error: BaseException | None = None) -> None:
        """Nothing more will come.

        What is queued is still taken; then `take` raises `error`, if there is one.
        """
        self._error = error
        self._ended = True
        self._tell()

    @property
    def full(self) -> bool:
        """Whether what waits has reached the bound, in messages or in bytes."""
        return len(self._queue) >= self._messages_max or self._waiting_bytes() >= self._bytes_max

    def wait_for_room(self) -> bool:
        """True when at least half is free; else False, and `on_room` will be called once it is."""
        self._awaited = True
        if self._has_room():
            self._awaited = False
            return True
        return False

    # The loop's side.

    async def take(self, limit: int) -> list[Delivery]:
        """One to `limit` deliveries, in order; an empty list when the producer has ended."""
        while not await self._anything():
            pass
        if not self._queue:
            if self._error is not None:
                raise self._error
            return []
        batch = self._pop(limit)
        if self._awaited and self._has_room():
            self._awaited = False
            self._on_room()
        return batch

    def __len__(self) -> int:
        return len(self._queue)

    async def _anything(self) -> bool:
        """Wait until told; True when there is a delivery or there will never be one again."""
        ended = (
            self._ended
        )  # before the look at the queue: the last delivery is put before the end is declared
        if self._queue or ended:
            return True
        await self._arrived.wait()
        self._arrived.clear()
        self._told = False
        return bool(self._queue)

    def _pop(self, limit: int) -> list[Delivery]:
        # Only this side removes, so that what is counted here is still there.
        batch = [self._queue.popleft() for _ in range(min(limit, len(self._queue)))]
        self._bytes_out += sum(len(delivery.payload) for delivery in batch)
        return batch

    def _waiting_bytes(self) -> int:
        return self._bytes_in - self._bytes_out

    def _has_room(self) -> bool:
        return len(self._queue) * 2 <= self._messages_max and self._waiting_bytes() * 2 <= self._bytes_max

    def _tell(self) -> None:
        # The loop is closed when the process ends without closing its sources: nobody is left to be told.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._arrived.set)
