"""How a broker can refuse us, once or again and again, and what the source says of it."""

from __future__ import annotations

import pytest
from consumer import Consumer, Notices, consuming, until
from scripted_broker import Peer, ScriptedBroker
from scripted_source import served, source

from connectors.base import NoticeKind
from schemas.errors import SourceError, SourceRefused

REFUSALS = [
    (0x84, "protocol"),
    (0x85, "client_id"),
    (0x86, "password"),
    (0x87, "ACL"),
    (0x8A, "banned"),
    (0x9D, "host"),
]


@pytest.mark.parametrize(("code", "hint"), REFUSALS)
async def test_a_refusal_says_what_to_do(code: int, hint: str) -> None:
    async with ScriptedBroker(lambda peer: peer.accept(code=code)) as broker:
        error = await Consumer(source(broker, username="u", password="s3cret-word")).failure()
    assert isinstance(error, SourceRefused)
    assert hint in str(error)
    assert "s3cret-word" not in str(error)


@pytest.mark.parametrize(("code", "hint"), [(1, "protocol"), (2, "client_id"), (4, "password"), (5, "ACL")])
async def test_a_refusal_says_what_to_do_on_mqtt_3(code: int, hint: str) -> None:
    async with ScriptedBroker(lambda peer: peer.accept(code=code)) as broker:
        error = await Consumer(source(broker, mqtt5=False)).failure()
    assert isinstance(error, SourceRefused)
    assert hint in str(error)


@pytest.mark.parametrize("code", [0x80, 0x88, 0x89, 0x97, 0x9F])
async def test_a_passing_refusal_is_tried_again(code: int) -> None:
    async def script(peer: Peer) -> None:
        await peer.accept(code=code if len(broker.peers) == 1 else 0)
        await peer.grant()
        peer.publish(b"plant/a/log", b"x")

    async with ScriptedBroker(script) as broker, consuming(source(broker)) as consumer:
        await consumer.wait_for(1)


async def test_a_refused_source_can_be_read_again() -> None:
    """The service rests and tries again: an operator has changed something meanwhile."""

    async def script(peer: Peer) -> None:
        await peer.accept(code=0x86 if len(broker.peers) == 1 else 0)
        await peer.grant()
        peer.publish(b"plant/a/log", b"x")

    async with ScriptedBroker(script) as broker:
        line7 = source(broker)
        assert isinstance(await Consumer(line7).failure(), SourceRefused)
        assert line7.stats().last_error is not None
        async with consuming(line7) as consumer:
            await consumer.wait_for(1)
            assert line7.stats().last_error is None


async def test_a_taken_over_session_is_fatal_and_names_the_cause() -> None:
    async def script(peer: Peer) -> None:
        await served(peer)
        peer.send(0xE0, b"\x8e\x00")

    async with ScriptedBroker(script) as broker:
        error = await Consumer(source(broker)).failure()
    assert isinstance(error, SourceRefused)
    assert "andon-line7" in str(error)
    assert "two clients use one id" in str(error)


async def test_on_mqtt_3_being_cut_off_again_and_again_is_fatal_too() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept(present=True)
        peer.hang_up()

    async with ScriptedBroker(script) as broker:
        error = await Consumer(source(broker, mqtt5=False)).failure()
        assert len(broker.peers) == 5
    assert isinstance(error, SourceRefused)
    assert "two clients use one id" in str(error)


async def test_a_broker_that_sends_nonsense_is_fatal_and_says_so() -> None:
    async def script(peer: Peer) -> None:
        await served(peer)
        peer.send(0x32, b"\xff\xff")

    async with ScriptedBroker(script) as broker:
        error = await Consumer(source(broker)).failure()
    assert isinstance(error, SourceError)
    assert "cannot read" in str(error)


async def test_a_dead_network_thread_is_fatal_and_says_so() -> None:
    async with ScriptedBroker(served) as broker:
        line7 = source(broker)
        line7._names = iter(())  # type: ignore[assignment]
        error = await Consumer(line7).failure()
    assert type(error) is SourceError
    assert "network thread of source line7 died" in str(error)
    assert isinstance(error.__cause__, StopIteration)


async def test_a_refused_filter_is_reported_and_the_others_are_read() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        await peer.grant(1, 0x87)
        peer.publish(b"a/x", b"x", 1)

    async with ScriptedBroker(script) as broker:
        notices = Notices()
        two = source(broker, filters={"a/#": 1, "b/#": 1}, notices=notices)
        async with consuming(two) as consumer:
            await consumer.wait_for(1)
            (refused,) = notices.of(NoticeKind.SUBSCRIPTION_REFUSED)
            assert "b/#" in refused.detail
            assert two.subscribed == {"a/#": 1}
            assert "b/#" in str(two.stats().last_error)


async def test_when_every_filter_is_refused_the_source_is() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        await peer.grant(0x87)

    async with ScriptedBroker(script) as broker:
        error = await Consumer(source(broker)).failure()
    assert isinstance(error, SourceRefused)
    assert "plant/+/log" in str(error)


async def test_a_lowered_qos_is_said() -> None:
    async def script(peer: Peer) -> None:
        await peer.accept()
        await peer.grant(0)

    async with ScriptedBroker(script) as broker:
        notices = Notices()
        async with consuming(source(broker, notices=notices)):
            await until(lambda: notices.of(NoticeKind.QOS_LOWERED))
