"""A source that yields what a test says, and remembers what was acknowledged."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from connectors.base import Check, Delivery, SourceStats

Step = Sequence[str | Delivery] | Exception


def delivery(text: str, **given: Any) -> Delivery:
    values = {"topic": "plant/p7/log", "received_at_us": 1_700_000_000_000_000} | given
    return Delivery(payload=text.encode("utf-8", "surrogateescape"), **values)


class ScriptedDeliveries:
    """Yields the batches of `script`; an exception in it is raised, and the rest comes the next time.

    `positions` are the source's positions as of each batch.
    """

    name = "line7"

    def __init__(self, script: Sequence[Step], positions: Sequence[Mapping[str, JsonValue]] = ()) -> None:
        self._script = list(script)
        self._positions = list(positions)
        self.position: Mapping[str, JsonValue] = {}
        self.yielded: list[Delivery] = []
        self.acked: list[Delivery] = []
        self.seen: list[Any] = []
        self.on_ack: Callable[[Sequence[Delivery]], None] = lambda acked: None
        self.on_batches: Callable[[], None] = lambda: None

    async def batches(self) -> AsyncIterator[Sequence[Delivery]]:
        self.on_batches()
        while self._script:
            step = self._script.pop(0)
            if isinstance(step, Exception):
                raise step
            if self._positions:
                self.position = self._positions.pop(0)
            batch = [each if isinstance(each, Delivery) else delivery(each) for each in step]
            self.yielded += batch
            yield batch

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        self.acked += deliveries
        self.on_ack(deliveries)

    def stats(self) -> SourceStats:
        return SourceStats(connected=True)

    async def check(self) -> Check:
        return Check(True, "scripted")

    async def pause(self) -> None:
        self._script.clear()

    async def close(self) -> None:
        """Nothing to do."""
