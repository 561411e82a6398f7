"""What every source with a memory promises, whatever its protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pytest
from consumer import Consumer, Notices, consuming, until
from mosquitto import Mosquitto
from pydantic import JsonValue

from connectors.base import Delivery, Source
from connectors.file import FileConfig
from connectors.mqtt import MqttConfig

pytestmark = pytest.mark.broker


class World(Protocol):
    """The outside of one kind of source: sends lines, and starts the source from what was persisted."""

    def start(self, position: Mapping[str, JsonValue] | None = None) -> Source: ...

    async def send(self, lines: Sequence[bytes]) -> None: ...

    def lines(self, deliveries: Sequence[Delivery]) -> list[bytes]: ...

    def vanish(self) -> None: ...

    def appear(self) -> None: ...


class MqttWorld:
    def __init__(self, broker: Mosquitto, protocol: str) -> None:
        self._broker = broker
        self._protocol = protocol

    def start(self, position: Mapping[str, JsonValue] | None = None) -> Source:
        given = {"type": "mqtt", "port": self._broker.port, "topics": ["plant/#"], "protocol": self._protocol}
        return MqttConfig.model_validate(given).build("line7", position=position, notices=Notices())

    async def send(self, lines: Sequence[bytes]) -> None:
        await asyncio.to_thread(self._broker.publish, [("plant/p1/log", line) for line in lines])

    def lines(self, deliveries: Sequence[Delivery]) -> list[bytes]:
        return [delivery.payload for delivery in deliveries]

    def vanish(self) -> None:
        self._broker.stop()

    def appear(self) -> None:
        self._broker.start()


class FileWorld:
    def __init__(self, path: Path) -> None:
        self._path = path
        path.touch()

    def start(self, position: Mapping[str, JsonValue] | None = None) -> Source:
        config = FileConfig(type="file", path=str(self._path))
        return config.build("log", position=position, notices=Notices())

    async def send(self, lines: Sequence[bytes]) -> None:
        with self._path.open("ab") as file:
            file.writelines(line + b"\n" for line in lines)

    def lines(self, deliveries: Sequence[Delivery]) -> list[bytes]:
        return b"".join(delivery.payload for delivery in deliveries).splitlines()

    def vanish(self) -> None:
        self._path.unlink()

    def appear(self) -> None:
        self._path.touch()


@pytest.fixture(params=["mqtt5", "mqtt3", "file"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    if request.param == "file":
        yield FileWorld(tmp_path / "machine.log")
        return
    with Mosquitto(tmp_path / "broker") as broker:
        yield MqttWorld(broker, "5" if request.param == "mqtt5" else "3.1.1")


def numbered(first: int, last: int) -> list[bytes]:
    return [b"line %d" % number for number in range(first, last + 1)]


async def begin(world: World, consumer: Consumer) -> None:
    """Wait until the source is at work, so that what is sent now reaches it."""
    source = consumer.source
    await until(lambda: source.stats().connected and source.position.get("subscribed", True))


async def test_order_is_kept_and_nothing_comes_twice(world: World) -> None:
    async with consuming(world.start()) as consumer:
        await begin(world, consumer)
        for start in range(1, 501, 100):
            await world.send(numbered(start, start + 99))
        await until(lambda: len(world.lines(consumer.taken)) >= 500)
        assert world.lines(consumer.taken) == numbered(1, 500)


async def test_what_was_not_acknowledged_returns_after_a_restart(world: World) -> None:
    """The first batches are stored (acknowledged, their position persisted), the others are not.

    Fewer than 20 lines at a time: Mosquitto sends no more to an MQTT 3.1.1 client that acknowledges nothing.
    """
    consumer = Consumer(world.start(), ack=False)
    await begin(world, consumer)
    await world.send(numbered(1, 10))
    await until(lambda: len(world.lines(consumer.taken)) >= 10)
    stored = list(consumer.taken)
    position = dict(consumer.source.position)
    await consumer.source.ack(stored)
    await world.send(numbered(11, 25))
    await until(lambda: len(world.lines(consumer.taken)) >= 25)
    await consumer.abandon()
    async with consuming(world.start(position)) as again:
        await world.send(numbered(26, 40))
        await until(lambda: b"line 40" in world.lines(again.taken))
        assert world.lines(stored) + world.lines(again.taken) == numbered(1, 40)


async def test_a_clean_stop_loses_and_repeats_nothing(world: World) -> None:
    """Pause, take what has arrived, acknowledge, close: the next start goes on exactly there."""
    seen: list[bytes] = []
    position: Mapping[str, JsonValue] | None = None
    for start in range(1, 301, 100):
        consumer = Consumer(world.start(position))
        await begin(world, consumer)
        await world.send(numbered(start, start + 49))
        sending = asyncio.create_task(world.send(numbered(start + 50, start + 99)))
        await until(lambda consumer=consumer: consumer.taken)  # type: ignore[misc]
        await consumer.stop()
        await sending
        seen += world.lines(consumer.taken)
        position = dict(consumer.source.position)
    async with consuming(world.start(position)) as last:
        await until(lambda: len(seen) + len(world.lines(last.taken)) >= 300)
        assert seen + world.lines(last.taken) == numbered(1, 300)


async def test_check_says_that_all_is_well(world: World) -> None:
    check = await world.start().check()
    assert check.ok, check.message
    assert "\n" not in check.message


async def test_pause_and_close_before_anything_was_read(world: World) -> None:
    source = world.start()
    await source.pause()
    await source.close()
    await source.close()
    assert source.stats().received == 0


async def test_an_error_that_is_over_is_not_shown_any_more(world: World) -> None:
    await asyncio.to_thread(world.vanish)
    source = world.start()
    async with consuming(source) as consumer:
        await until(lambda: source.stats().last_error is not None)
        assert not source.stats().connected
        await asyncio.to_thread(world.appear)
        await begin(world, consumer)
        assert source.stats().last_error is None
