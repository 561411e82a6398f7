"""The hand-over between a thread and the event loop: nothing lost or reordered, bounded, and it ends."""

from __future__ import annotations

import asyncio
import random
import threading
import time

import pytest
from consumer import until

from connectors.base import Delivery
from connectors.inbox import Inbox


def delivery(number: int, size: int = 0) -> Delivery:
    return Delivery("t", b"x" * size, 0, position=number)


async def test_everything_comes_out_in_order_from_another_thread() -> None:
    inbox = Inbox(asyncio.get_running_loop())

    def produce() -> None:
        for number in range(5000):
            inbox.put(delivery(number))
            if random.random() < 0.1:
                inbox.flush()
            if random.random() < 0.01:
                time.sleep(0.0005)
        inbox.flush()
        inbox.end()

    threading.Thread(target=produce).start()
    taken: list[int] = []
    while batch := await inbox.take(100):
        assert len(batch) <= 100
        taken += [item.position for item in batch]
    assert taken == list(range(5000))


async def test_the_last_delivery_is_not_lost_at_the_end() -> None:
    for _ in range(200):
        inbox = Inbox(asyncio.get_running_loop())

        def produce(inbox: Inbox = inbox) -> None:
            inbox.put(delivery(1))
            inbox.end()

        thread = threading.Thread(target=produce)
        thread.start()
        assert len(await inbox.take(10)) == 1
        assert await inbox.take(10) == []
        thread.join()


async def test_an_error_comes_after_what_was_queued() -> None:
    inbox = Inbox(asyncio.get_running_loop())
    inbox.put(delivery(1))
    inbox.end(RuntimeError("dead"))
    assert len(await inbox.take(10)) == 1
    for _ in range(2):
        with pytest.raises(RuntimeError, match="dead"):
            await inbox.take(10)


@pytest.mark.parametrize(("messages_max", "bytes_max", "size"), [(10, 10**9, 1), (10**9, 1000, 100)])
async def test_full_by_messages_or_by_bytes(messages_max: int, bytes_max: int, size: int) -> None:
    woken = asyncio.Event()
    inbox = Inbox(
        asyncio.get_running_loop(), on_room=woken.set, messages_max=messages_max, bytes_max=bytes_max
    )
    for number in range(10):
        assert not inbox.full
        inbox.put(delivery(number, size))
    assert inbox.full
    assert not inbox.wait_for_room()
    await inbox.take(4)
    assert not woken.is_set(), "not before half of it is free"
    await inbox.take(1)
    assert woken.is_set()
    assert inbox.wait_for_room()


async def test_the_loop_is_woken_once_for_many() -> None:
    loop = asyncio.get_running_loop()
    inbox = Inbox(loop)
    calls = 0
    call_soon = loop.call_soon_threadsafe

    def counted(*args: object) -> asyncio.Handle:
        nonlocal calls
        calls += 1
        return call_soon(*args)  # type: ignore[arg-type]

    loop.call_soon_threadsafe = counted  # type: ignore[method-assign, assignment]
    try:
        waiting = asyncio.create_task(inbox.take(1000))
        await asyncio.sleep(0)
        for number in range(100):
            inbox.put(delivery(number))
            inbox.flush()
        assert len(await waiting) == 100
        assert calls == 1
    finally:
        loop.call_soon_threadsafe = call_soon  # type: ignore[method-assign]


def test_a_closed_loop_bothers_nobody() -> None:
    loop = asyncio.new_event_loop()
    inbox = Inbox(loop)
    loop.close()
    inbox.put(delivery(1))
    inbox.flush()
    inbox.end()


async def test_a_waiting_take_is_woken_by_the_end() -> None:
    inbox = Inbox(asyncio.get_running_loop())
    waiting = asyncio.create_task(inbox.take(1))
    await asyncio.sleep(0)
    inbox.end()
    await until(waiting.done)
    assert waiting.result() == []
