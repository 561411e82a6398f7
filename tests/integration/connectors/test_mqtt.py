"""MqttSource against a real Mosquitto: round trips, redelivery, restarts, back-pressure."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from consumer import Consumer, Notices, consuming, until
from mosquitto import Mosquitto
from proxy import Proxy

from connectors.base import NoticeKind
from connectors.mqtt import MqttConfig, MqttSource
from connectors.mqtt_session import Backoff
from schemas.errors import SourceRefused

pytestmark = pytest.mark.broker

QUICK = Backoff(first_s=0.05, longest_s=0.2)

PROTOCOLS = pytest.mark.parametrize("protocol", ["5", "3.1.1"])


def make(port: int, *, name: str = "line7", **given: Any) -> MqttSource:
    """A source with a short back-off. What is no key of the site file goes to the source or its link."""
    own = {
        key: given.pop(key) for key in ("position", "notices", "queue_messages", "batch_max") if key in given
    }
    link = {key: given.pop(key) for key in ("keepalive_s",) if key in given}
    config = MqttConfig.model_validate({"type": "mqtt", "port": port, "topics": ["plant/+/log"], **given})
    options = replace(config.link_options(name), backoff=QUICK, **link)
    own.setdefault("notices", Notices())
    return MqttSource(name, options, probe_topic=config.probe_topic, **own)


async def publish(broker: Mosquitto, messages: Iterable[tuple[str, bytes]], **how: Any) -> None:
    await asyncio.to_thread(broker.publish, list(messages), **how)


def numbered(first: int, last: int, topic: str = "plant/p1/log") -> list[tuple[str, bytes]]:
    return [(topic, b"%d" % number) for number in range(first, last + 1)]


async def ready(source: MqttSource) -> None:
    await until(lambda: source.subscribed and source.stats().connected, "the subscription")


@PROTOCOLS
async def test_round_trip_with_wildcards_in_order(mosquitto: Mosquitto, protocol: str) -> None:
    source = make(mosquitto.port, protocol=protocol, topics=["plant/+/log", "cell/#"])
    async with consuming(source) as consumer:
        await ready(source)
        await publish(
            mosquitto, [("plant/press/log", b"a"), ("plant/press/other", b"no"), ("cell/1/2", b"b")]
        )
        await publish(mosquitto, numbered(1, 500))
        taken = await consumer.wait_for(502)
        assert [(d.topic, d.payload) for d in taken[:2]] == [("plant/press/log", b"a"), ("cell/1/2", b"b")]
        assert [d.payload for d in taken[2:]] == [b"%d" % n for n in range(1, 501)]
        assert {d.qos for d in taken} == {1}
        await until(lambda: source.stats().acked == 502)


async def test_qos_0_source(mosquitto: Mosquitto) -> None:
    source = make(mosquitto.port, qos=0)
    async with consuming(source) as consumer:
        await ready(source)
        await publish(mosquitto, numbered(1, 3))
        assert {d.qos for d in await consumer.wait_for(3)} == {0}
    assert source.stats().acked == 0


@PROTOCOLS
async def test_what_comes_while_we_are_down_is_delivered_later(mosquitto: Mosquitto, protocol: str) -> None:
    source = make(mosquitto.port, protocol=protocol)
    async with consuming(source):
        await ready(source)
    await publish(mosquitto, numbered(1, 300))
    again = make(mosquitto.port, protocol=protocol, position=source.position)
    async with consuming(again) as consumer:
        await consumer.wait_for(300)
        assert consumer.payloads == [b"%d" % n for n in range(1, 301)]
        assert again.stats().session_lost == 0


@PROTOCOLS
async def test_unacknowledged_messages_come_again_after_a_reconnect(
    mosquitto: Mosquitto, protocol: str
) -> None:
    async with Proxy(mosquitto.port) as proxy:
        source = make(proxy.port, protocol=protocol)
        async with consuming(source, ack=False) as consumer:
            await ready(source)
            await publish(mosquitto, numbered(1, 10))
            first = await consumer.wait_for(10)
            await source.ack(first[:4])
            await until(lambda: mosquitto.logged("Received PUBACK from andon-line7") == 4)
            proxy.reset()
            taken = await consumer.wait_for(16)
            assert consumer.payloads[10:16] == [b"5", b"6", b"7", b"8", b"9", b"10"]
            again = taken[10:]
            assert {d.connection for d in again} != {d.connection for d in first}
            await source.ack(first)
            await asyncio.sleep(0.2)
            assert source.stats().acked == 4, "acks for the old connection are not sent"
            await source.ack(again)
            await until(lambda: source.stats().acked == 10)
    async with consuming(make(mosquitto.port, protocol=protocol)) as consumer:
        await publish(mosquitto, [("plant/p1/log", b"last")])
        await consumer.wait_for(1)
        assert consumer.payloads == [b"last"], "what was acknowledged does not come again"


@PROTOCOLS
async def test_a_killed_broker_that_kept_its_sessions(mosquitto: Mosquitto, protocol: str) -> None:
    source = make(mosquitto.port, protocol=protocol)
    async with consuming(source, ack=False) as consumer:
        await ready(source)
        await publish(mosquitto, numbered(1, 20))
        await consumer.wait_for(20)
        await source.ack(consumer.taken[:5])
        await until(lambda: mosquitto.logged("Received PUBACK from andon-line7") == 5)
        await asyncio.sleep(1.5)  # autosave_interval: then the session is written
        mosquitto.kill()
        await until(lambda: not source.stats().connected)
        mosquitto.start()
        consumer.ack = True
        await until(lambda: source.stats().connects == 2)
        await publish(mosquitto, numbered(21, 25))
        await until(lambda: b"25" in consumer.payloads)
        after = [d.payload for d in consumer.taken[20:]]
        assert after[-20:] == [b"%d" % n for n in range(6, 26)], "the unacknowledged come again, in order"
        assert source.stats().session_lost == 0


@PROTOCOLS
async def test_a_broker_that_lost_its_sessions(tmp_path: Path, protocol: str) -> None:
    with Mosquitto(tmp_path / "broker", persist=False) as mosquitto:
        notices = Notices()
        source = make(mosquitto.port, protocol=protocol, notices=notices)
        async with consuming(source) as consumer:
            await ready(source)
            mosquitto.kill()
            await until(lambda: notices.of(NoticeKind.DISCONNECTED))
            mosquitto.start()
            await until(lambda: notices.of(NoticeKind.SESSION_LOST))
            await until(lambda: len(notices.of(NoticeKind.SUBSCRIBED)) == 2)
            await publish(mosquitto, numbered(1, 3))
            await consumer.wait_for(3)
        assert source.stats().session_lost == 1


async def test_a_session_deleted_while_we_were_down(mosquitto: Mosquitto) -> None:
    source = make(mosquitto.port)
    async with consuming(source):
        await ready(source)
    mosquitto.kill()
    (mosquitto.folder / "mosquitto.db").unlink()
    mosquitto.start()
    notices = Notices()
    again = make(mosquitto.port, position=source.position, notices=notices)
    async with consuming(again):
        await until(lambda: notices.of(NoticeKind.SESSION_LOST))


@PROTOCOLS
async def test_retained_messages_come_once_a_session(mosquitto: Mosquitto, protocol: str) -> None:
    await publish(mosquitto, [("plant/p1/log", b"alarm")], retain=True)
    async with Proxy(mosquitto.port) as proxy:
        source = make(proxy.port, protocol=protocol)
        async with consuming(source) as consumer:
            (retained,) = await consumer.wait_for(1)
            assert retained.retain
            proxy.reset()
            await until(lambda: source.stats().connects == 2)
            await publish(mosquitto, [("plant/p1/log", b"live")])
            assert [(d.payload, d.retain) for d in await consumer.wait_for(2)] == [
                (b"alarm", True),
                (b"live", False),
            ]
        again = make(proxy.port, protocol=protocol, position=source.position)
        async with consuming(again) as consumer:
            await ready(again)
            await publish(mosquitto, [("plant/p1/log", b"later")])
            await consumer.wait_for(1)
            assert consumer.payloads == [b"later"]


async def test_a_black_hole_is_noticed_and_got_over(mosquitto: Mosquitto) -> None:
    notices = Notices()
    async with Proxy(mosquitto.port) as proxy:
        source = make(proxy.port, keepalive_s=1, notices=notices)
        async with consuming(source) as consumer:
            await ready(source)
            proxy.hole = True
            await publish(mosquitto, numbered(1, 3))
            await until(lambda: any("nothing heard" in n.detail for n in notices.of(NoticeKind.DISCONNECTED)))
            assert not source.stats().connected
            proxy.reset()
            proxy.hole = False
            await consumer.wait_for(3)
            assert consumer.payloads == [b"1", b"2", b"3"]


async def test_a_closed_door_is_said_once_and_waited_for(mosquitto: Mosquitto) -> None:
    notices = Notices()
    async with Proxy(mosquitto.port) as proxy:
        source = make(proxy.port, notices=notices)
        async with consuming(source) as consumer:
            await ready(source)
            await proxy.shut()
            await until(lambda: notices.of(NoticeKind.UNREACHABLE))
            await asyncio.sleep(0.5)
            assert len(notices.of(NoticeKind.UNREACHABLE)) == 1
            await proxy.open()
            await publish(mosquitto, numbered(1, 1))
            await consumer.wait_for(1)


async def test_two_sources_with_one_client_id_on_mqtt_5(mosquitto: Mosquitto) -> None:
    first = Consumer(make(mosquitto.port))
    await ready(first.source)
    async with consuming(make(mosquitto.port)):
        error = await first.failure()
        assert isinstance(error, SourceRefused)
        assert "client id andon-line7" in str(error)


async def test_two_sources_with_one_client_id_on_mqtt_3(mosquitto: Mosquitto) -> None:
    """There is no reason code: they kick each other out until one of them has had enough."""
    both = [Consumer(make(mosquitto.port, protocol="3.1.1")) for _ in range(2)]
    await until(lambda: any(consumer.task.done() for consumer in both))
    errors = [consumer.error for consumer in both if consumer.task.done()]
    for consumer in both:
        await consumer.stop()
    assert all(isinstance(error, SourceRefused) for error in errors)
    assert "two clients use one id" in str(errors[0])


# Back-pressure.


@PROTOCOLS
async def test_a_stalled_journal_stops_the_inflow_and_keeps_the_connection(
    tmp_path: Path, protocol: str
) -> None:
    """The queue is bounded by us, whatever the broker would send, and pings go on while nothing is read."""
    with Mosquitto(tmp_path / "broker", persist=False, lines=["max_inflight_messages 0"]) as mosquitto:
        source = make(mosquitto.port, protocol=protocol, keepalive_s=1, queue_messages=50, batch_max=10)
        async with consuming(source) as consumer:
            await ready(source)
            consumer.running.clear()
            await publish(mosquitto, numbered(1, 2000))
            await asyncio.sleep(3)  # three keep-alives
            stats = source.stats()
            assert (stats.connects, stats.connected) == (1, True)
            assert 25 < stats.queue_depth <= 51, "full once, and not read again before half of it is taken"
            assert stats.received == stats.queue_depth + len(consumer.taken)
            consumer.running.set()
            await consumer.wait_for(2000)
            assert consumer.payloads == [b"%d" % n for n in range(1, 2001)], "in order, each once, none lost"
            await until(lambda: source.stats().acked == 2000)
            assert source.stats().connects == 1


async def test_qos_0_that_finds_the_queue_full_is_dropped_and_counted(mosquitto: Mosquitto) -> None:
    notices = Notices()
    source = make(mosquitto.port, topics=["plant/#"], queue_messages=50, batch_max=10, notices=notices)
    async with consuming(source) as consumer:
        await ready(source)
        consumer.running.clear()
        await publish(mosquitto, numbered(1, 500), qos=0)
        await until(lambda: source.stats().received == 500)
        stats = source.stats()
        assert stats.dropped_qos0 == 500 - stats.queue_depth - len(consumer.taken)
        assert stats.dropped_qos0 > 0
        consumer.running.set()
        await until(lambda: source.stats().queue_depth == 0)
        await publish(mosquitto, [("plant/p1/log", b"after")], qos=0)
        await until(lambda: b"after" in consumer.payloads)
        await until(lambda: sum(n.count for n in notices.of(NoticeKind.DROPPED)) == stats.dropped_qos0)
        assert len(notices.of(NoticeKind.DROPPED)) < 10, "when it begins and when it ends, not each time"


async def test_qos_0_never_pushes_out_qos_1(mosquitto: Mosquitto) -> None:
    source = make(mosquitto.port, topics=["plant/#"], queue_messages=20, batch_max=5)
    async with consuming(source) as consumer:
        await ready(source)
        consumer.running.clear()
        for number in range(1, 101):
            await publish(mosquitto, numbered(number, number, "plant/q1"))
            await publish(mosquitto, numbered(number, number, "plant/q0"), qos=0)
        consumer.running.set()
        await until(lambda: len([d for d in consumer.taken if d.qos == 1]) >= 100)
        assert [d.payload for d in consumer.taken if d.qos == 1] == [b"%d" % n for n in range(1, 101)]


# Pause and close.


@PROTOCOLS
async def test_pause_stops_the_inflow_and_acks_still_go_out(mosquitto: Mosquitto, protocol: str) -> None:
    source = make(mosquitto.port, protocol=protocol, keepalive_s=1)
    consumer = Consumer(source, ack=False)
    await ready(source)
    await publish(mosquitto, numbered(1, 10))
    taken = await consumer.wait_for(10)
    await source.pause()
    await until(consumer.task.done)
    await publish(mosquitto, numbered(11, 200))
    await asyncio.sleep(2.5)
    assert len(consumer.taken) == 10
    assert source.stats().connected
    await source.ack(taken)
    await source.close()
    assert source.stats().acked == 10
    async with consuming(make(mosquitto.port, protocol=protocol)) as again:
        await again.wait_for(190)
        assert again.payloads == [b"%d" % n for n in range(11, 201)]


@PROTOCOLS
async def test_acks_are_not_lost_in_a_close_with_unread_messages(mosquitto: Mosquitto, protocol: str) -> None:
    """A socket closed with unread bytes in it is reset, and a reset discards what was not read yet."""
    source = make(mosquitto.port, protocol=protocol)
    async with consuming(source):
        await ready(source)
    for round_ in range(5):
        source = make(mosquitto.port, protocol=protocol)
        consumer = Consumer(source, ack=False)
        await ready(source)
        await publish(mosquitto, [("plant/p1/log", b"x" * 20_000)] * 40)
        taken = await consumer.wait_for(15)
        await source.pause()
        await publish(mosquitto, [("plant/p1/log", b"y" * 20_000)] * 10)
        await until(consumer.task.done)
        await source.ack(consumer.taken)
        await source.close()
        assert source.stats().acked == len(consumer.taken) >= len(taken)
        async with consuming(make(mosquitto.port, protocol=protocol)) as rest:
            await rest.wait_for(50 - len(consumer.taken))
            await asyncio.sleep(0.05)
            assert len(rest.taken) == 50 - len(consumer.taken), f"round {round_}"


async def test_a_changed_topic_list_keeps_what_waits(mosquitto: Mosquitto) -> None:
    source = make(mosquitto.port, topics=["plant/+/log", "old/#"])
    async with consuming(source):
        await ready(source)
    await publish(mosquitto, [("plant/p1/log", b"waits")])
    changed = make(mosquitto.port, topics=["plant/+/log", "new/#"], position=source.position)
    async with consuming(changed) as consumer:
        await until(lambda: set(changed.subscribed) == {"plant/+/log", "new/#"})
        await publish(mosquitto, [("old/1", b"no"), ("new/1", b"yes")])
        await consumer.wait_for(2)
        assert consumer.payloads == [b"waits", b"yes"]
