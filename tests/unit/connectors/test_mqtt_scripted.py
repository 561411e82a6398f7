"""MqttSource against a broker that follows a script: what is on the wire, and what no good broker sends."""

from __future__ import annotations

import asyncio
import struct

import pytest
from consumer import Consumer, Notices, consuming, until
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scripted_broker import DISCONNECT, PUBACK, SUBSCRIBE, UNSUBSCRIBE, Peer, ScriptedBroker
from scripted_source import served, source

from connectors.base import NoticeKind
from connectors.mqtt import MqttSource
from connectors.mqtt_session import Backoff, LinkOptions

# What we ask for.


async def test_connect_asks_for_a_lasting_session_on_mqtt_5() -> None:
    async with ScriptedBroker(served) as broker, consuming(source(broker, receive_maximum=77)):
        await until(lambda: broker.peers and broker.peers[0].connect)
        body = broker.peers[0].connect
        assert body[6] == 5
        assert not body[7] & 0x02, "no clean start, also not on the first connection"
        properties = body[11 : 11 + body[10]]
        assert b"\x11" + struct.pack("!I", 86_400) in properties, "session expiry interval"
        assert b"\x21" + struct.pack("!H", 77) in properties, "receive maximum"


async def test_connect_asks_for_a_lasting_session_on_mqtt_3() -> None:
    async with ScriptedBroker(served) as broker, consuming(source(broker, mqtt5=False)):
        await until(lambda: broker.peers and broker.peers[0].connect)
        assert broker.peers[0].connect[6] == 4
        assert not broker.peers[0].connect[7] & 0x02


async def test_subscribes_only_when_the_session_does_not_have_it() -> None:
    """Each subscribe brings the retained messages again."""
    seen: list[list[int]] = []

    async def script(peer: Peer) -> None:
        await peer.accept(present=len(seen) > 0)
        kinds: list[int] = []
        seen.append(kinds)
        peer.publish(b"plant/a/log", b"x")
        if len(seen) == 1:
            asked = await peer.grant()
            kinds.append(SUBSCRIBE)
            assert asked.body[-1] >> 4 & 3 == 1, "retained messages only for a new subscription"
            peer.hang_up()
        else:
            kinds.append((await peer.receive()).kind)

    async with ScriptedBroker(script) as broker, consuming(source(broker)) as consumer:
        await consumer.wait_for(2)
        assert consumer.source.subscribed == {"plant/+/log": 1}
    assert seen[0] == [SUBSCRIBE]
    assert seen[1] == [DISCONNECT], "nothing was asked on the second connection until the source was closed"


async def test_a_changed_topic_list_changes_the_session_and_no_more() -> None:
    asked: list[tuple[int, bytes]] = []

    async def script(peer: Peer) -> None:
        await peer.accept(present=True)
        while True:
            packet = await peer.receive()
            asked.append((packet.kind, packet.body))
            if packet.kind == SUBSCRIBE:
                peer.send(0x90, packet.body[:2] + b"\0\1")
            elif packet.kind == UNSUBSCRIBE:
                peer.send(0xB0, packet.body[:2] + b"\0\0")

    async with ScriptedBroker(script) as broker:
        before = {"session": f"127.0.0.1:{broker.port}/andon-line7", "subscribed": {"kept/#": 1, "gone/#": 1}}
        changed = source(broker, filters={"kept/#": 1, "new/#": 1}, position=before)
        async with consuming(changed):
            await until(lambda: changed.subscribed == {"kept/#": 1, "new/#": 1})
            assert changed.position["subscribed"] == {"kept/#": 1, "new/#": 1}
    kinds = [kind for kind, _ in asked]
    assert kinds.count(SUBSCRIBE) == 1
    assert kinds.count(UNSUBSCRIBE) == 1
    assert all(b"kept/#" not in body for _, body in asked)


# Acknowledgements.


async def test_acks_leave_in_arrival_order_whatever_order_they_are_given_in() -> None:
    acked: list[int] = []

    async def script(peer: Peer) -> None:
        await served(peer)
        for mid in range(1, 21):
            peer.publish(b"plant/a/log", b"%d" % mid, mid)
        while len(acked) < 20:
            acked.append((await peer.until(PUBACK)).mid)

    async with ScriptedBroker(script) as broker, consuming(source(broker), ack=False) as consumer:
        taken = await consumer.wait_for(20)
        for delivery in sorted(taken, key=lambda d: d.position % 7):
            await consumer.source.ack([delivery])
        await until(lambda: len(acked) == 20)
        assert acked == list(range(1, 21))
        assert consumer.source.stats().acked == 20


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(order=st.permutations(range(12)), cut=st.integers(0, 12))
def test_what_is_acked_is_always_a_settled_prefix(order: list[int], cut: int) -> None:
    """Whatever was settled in whatever order: the broker sees the longest prefix, once, and nothing else."""

    async def run() -> None:
        acked: list[int] = []

        async def script(peer: Peer) -> None:
            await served(peer)
            for mid in range(1, 13):
                peer.publish(b"plant/a/log", b"x", mid)
            while (packet := await peer.receive()).kind != DISCONNECT:
                if packet.kind == PUBACK:
                    acked.append(packet.mid)

        async with ScriptedBroker(script) as broker:
            async with consuming(source(broker), ack=False) as consumer:
                taken = await consumer.wait_for(12)
                for index in order[:cut]:
                    await consumer.source.ack([taken[index]])
            settled = set(order[:cut])
            prefix = next((i for i in range(12) if i not in settled), 12)
            await until(lambda: len(acked) >= prefix)
            assert acked == list(range(1, prefix + 1))

    asyncio.run(run())


async def test_no_ack_for_an_old_connection() -> None:
    """On the second connection the same packet id stands for another message."""
    acked: list[tuple[int, int]] = []

    async def script(peer: Peer) -> None:
        number = len(broker.peers)
        await peer.accept(present=number > 1)
        if number == 1:
            await peer.grant()
            peer.publish(b"plant/a/log", b"first", 1)
            await until(lambda: len(consumer.taken) == 1)
            peer.hang_up()
            return
        peer.publish(b"plant/a/log", b"second", 1)
        while True:
            acked.append((number, (await peer.until(PUBACK)).mid))

    async with ScriptedBroker(script) as broker, consuming(source(broker), ack=False) as consumer:
        first, second = await consumer.wait_for(2)
        assert (first.payload, second.payload) == (b"first", b"second")
        assert first.connection != second.connection
        await consumer.source.ack([first])
        await asyncio.sleep(0.1)
        assert acked == []
        await consumer.source.ack([second])
        await until(lambda: acked == [(2, 1)])


async def test_qos_0_is_never_acknowledged() -> None:
    kinds: list[int] = []

    async def script(peer: Peer) -> None:
        await served(peer)
        peer.publish(b"plant/a/log", b"x")
        while True:
            kinds.append((await peer.receive()).kind)

    async with ScriptedBroker(script) as broker, consuming(source(broker)) as consumer:
        await consumer.wait_for(1)
    await asyncio.sleep(0)
    assert PUBACK not in kinds


async def test_a_packet_sent_twice_on_one_connection_is_one_message() -> None:
    async def script(peer: Peer) -> None:
        await served(peer)
        peer.publish(b"plant/a/log", b"x", 5)
        peer.publish(b"plant/a/log", b"x", 5, duplicate=True)
        peer.publish(b"plant/a/log", b"y", 6)

    async with ScriptedBroker(script) as broker, consuming(source(broker), ack=False) as consumer:
        assert [d.payload for d in await consumer.wait_for(2)] == [b"x", b"y"]
        assert consumer.source.stats().resent == 1


async def test_connection_names_are_never_given_twice() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept(present=True)
        peer.publish(b"plant/a/log", b"x")
        await asyncio.sleep(0)
        if len(broker.peers) % 3:
            peer.hang_up()

    names: set[str] = set()
    async with ScriptedBroker(script) as broker:
        for _ in range(2):
            async with consuming(source(broker)) as consumer:
                await consumer.wait_for(3)
                names |= {delivery.connection for delivery in consumer.taken[:3]}
    assert len(names) == 6


# Odd messages.

ODD = [
    pytest.param(b"plant/\xff\xfe/log", b"", "plant/\\xff\\xfe/log", id="topic that is no UTF-8"),
    pytest.param(b"plant/\x00/log", b"", "plant/\x00/log", id="NUL in the topic"),
    pytest.param(b"plant/\xed\xa0\x80/log", b"", "plant/\\xed\\xa0\\x80/log", id="surrogate in the topic"),
    pytest.param(b"plant/a/log", b"\x26\x00\x01\x00\x00\x01\x00", "plant/a/log", id="NUL in a user property"),
    pytest.param(
        b"plant/a/log", b"\x26\x00\x03\xef\xbb\xbf\x00\x00", "plant/a/log", id="mark in a user property"
    ),
    pytest.param(
        b"plant/a/log", b"\x26\x00\x01\xff\x00\x00", "plant/a/log", id="user property that is no UTF-8"
    ),
    pytest.param(b"plant/a/log", b"\x7e\x01\x02", "plant/a/log", id="unknown property"),
]


@pytest.mark.parametrize(("topic", "properties", "text"), ODD)
async def test_an_odd_message_is_delivered_and_acknowledged(
    topic: bytes, properties: bytes, text: str
) -> None:
    """One message that the client library dislikes must not come again for ever, nor stop those behind it."""
    acked: list[int] = []

    async def script(peer: Peer) -> None:
        await served(peer)
        peer.publish(topic, b"odd", 1, properties=properties)
        peer.publish(b"plant/a/log", b"good", 2)
        while True:
            acked.append((await peer.until(PUBACK)).mid)

    async with ScriptedBroker(script) as broker, consuming(source(broker)) as consumer:
        odd, good = await consumer.wait_for(2)
        assert (odd.topic, odd.payload, good.payload) == (text, b"odd", b"good")
        await until(lambda: acked == [1, 2])
        assert consumer.source.stats().connects == 1
        assert consumer.source.stats().odd_topics == (1 if "\\x" in text else 0)


@pytest.mark.parametrize("payload", [b"", b"\x00\xff", b"x" * 300_000], ids=["empty", "binary", "large"])
@pytest.mark.parametrize("mqtt5", [True, False])
async def test_payloads_arrive_byte_by_byte(payload: bytes, mqtt5: bool) -> None:
    async def script(peer: Peer) -> None:
        await served(peer)
        peer.publish(b"plant/a/log", payload, 1, retain=True)

    async with ScriptedBroker(script) as broker, consuming(source(broker, mqtt5=mqtt5)) as consumer:
        (delivery,) = await consumer.wait_for(1)
        assert (delivery.payload, delivery.retain, delivery.qos) == (payload, True, 1)


# Sessions.


async def test_a_lost_session_is_noticed_and_subscribed_anew() -> None:
    async def script(peer: Peer) -> None:
        await served(peer)
        if len(broker.peers) == 1:
            await asyncio.sleep(0.02)
            peer.hang_up()
        else:
            peer.publish(b"plant/a/log", b"x")

    async with ScriptedBroker(script) as broker:
        notices = Notices()
        async with consuming(source(broker, notices=notices)) as consumer:
            await consumer.wait_for(1)
            assert consumer.source.stats().session_lost == 1
            assert len(notices.of(NoticeKind.SESSION_LOST)) == 1


@pytest.mark.parametrize(("known", "lost"), [(True, 1), (False, 0)], ids=["we had a session", "a new client"])
async def test_a_session_lost_over_a_restart_is_noticed(known: bool, lost: int) -> None:
    async with ScriptedBroker(served) as broker:
        session = f"127.0.0.1:{broker.port}/andon-line7"
        position = {"session": session, "subscribed": {"plant/+/log": 1}} if known else None
        line7 = source(broker, position=position)
        async with consuming(line7):
            await until(lambda: line7.subscribed and line7.stats().connects)
            assert line7.stats().session_lost == lost


async def test_the_position_of_another_broker_or_client_says_nothing() -> None:
    async with ScriptedBroker(served) as broker:
        line7 = source(
            broker, position={"session": "elsewhere:1883/andon-line7", "subscribed": {"plant/+/log": 1}}
        )
        async with consuming(line7):
            await until(lambda: line7.subscribed)
            assert line7.stats().session_lost == 0


# Liveness.


async def test_pings_and_the_servers_keep_alive() -> None:
    """The broker says 1 s where we asked for 30 (MQTT 5.0, 3.2.2.3.14): silence is found within that."""

    async def script(peer: Peer) -> None:
        await peer.accept(properties=b"\x13\x00\x01")
        await peer.grant()
        # Pings are not answered: the source must give this connection up.

    async with ScriptedBroker(script) as broker:
        notices = Notices()
        async with consuming(source(broker, notices=notices)):
            await until(lambda: len(broker.peers) > 1)
            assert "nothing heard" in notices.of(NoticeKind.DISCONNECTED)[0].detail


async def test_close_says_goodbye_after_the_acks() -> None:
    kinds: list[int] = []

    async def script(peer: Peer) -> None:
        await served(peer)
        for mid in range(1, 101):
            peer.publish(b"plant/a/log", b"x" * 1000, mid)
        while True:
            packet = await peer.receive()
            kinds.append(packet.kind)
            if packet.kind == DISCONNECT:
                return

    async with ScriptedBroker(script) as broker:
        line7 = source(broker)
        consumer = Consumer(line7, ack=False)
        taken = await consumer.wait_for(100)
        await line7.ack(taken)
        await line7.pause()
        await line7.close()
        await until(lambda: DISCONNECT in kinds)
    assert kinds == [PUBACK] * 100 + [DISCONNECT]
    assert line7.stats().acked == 100


async def test_close_ends_a_source_that_cannot_connect() -> None:
    async with ScriptedBroker(served) as broker:
        port = broker.port
    line7 = MqttSource(
        "line7",
        LinkOptions(host="127.0.0.1", port=port, client_id="c", filters={"a": 1}, backoff=Backoff(60, 60)),
        notices=(notices := Notices()),
    )
    consumer = Consumer(line7)
    await until(lambda: notices.of(NoticeKind.UNREACHABLE))
    assert not line7.stats().connected
    await consumer.stop()
    assert consumer.error is None
    assert consumer.taken == []
