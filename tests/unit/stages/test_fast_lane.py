"""The fast lane settles what is journaled, waits for nothing but the disk, and goes on after it was full."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from consumer import until
from rig import SITE, Rig

from pipeline.stages import fast_lane
from pipeline.store import journal

RULES = """
limits: {batch_messages: 4}
rules:
  - {id: alive, when: {text: heartbeat}, discard: true}
"""


@pytest.fixture
async def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    monkeypatch.setattr(fast_lane, "STORE_RETRY_S", 0.0)
    monkeypatch.setattr(fast_lane, "FLUSH_S", 0.01)
    async with Rig(tmp_path, SITE + RULES) as rig:
        yield rig
        rig.assert_sound()


@asynccontextmanager
async def running(rig: Rig) -> AsyncIterator[None]:
    lane = asyncio.create_task(rig.fast.run())
    try:
        yield
    finally:
        lane.cancel()
        await asyncio.gather(lane, return_exceptions=True)


def count(rig: Rig, outcome: str) -> float:
    return (
        rig.metrics.registry.get_sample_value("andon_events_total", {"source": "line7", "outcome": outcome})
        or 0.0
    )


async def test_one_batch_a_step(rig: Rig) -> None:
    assert not await rig.fast.step()
    await rig.accept(*["heartbeat"] * 6)
    assert rig.fast.backlog() == 6
    assert await rig.fast.step()
    assert rig.fast.backlog() == 2
    assert await rig.fast.step()
    assert not await rig.fast.step()
    assert rig.counts().discarded == 6


async def test_others_are_called_when_there_is_work_for_them(rig: Rig) -> None:
    await rig.accept("heartbeat")
    await rig.settle()
    assert not rig.unread_put.is_set() and not rig.tickets_put.is_set()
    await rig.accept("belt squeaks at 1 rpm")
    await rig.settle()
    assert rig.unread_put.is_set() and not rig.tickets_put.is_set()
    await rig.read()
    rig.unread_put.clear()
    rig.tickets_put.clear()
    await rig.accept("belt squeaks at 2 rpm")
    await rig.settle()
    assert rig.unread_put.is_set(), "a provisional plan is to be tried"
    assert rig.tickets_put.is_set()


async def test_a_full_store_is_tried_again_and_nothing_is_counted_twice(rig: Rig) -> None:
    await rig.accept(*["heartbeat"] * 3, b"\x81", "belt squeaks")
    rig.failures = 3
    async with running(rig):
        await until(lambda: not rig.fast.backlog(), "the end of the backlog")
    assert rig.failures == 0
    assert [state for state, _ in rig.states()] == ["discard"] * 3 + ["review", "unread"]
    assert (count(rig, "discard"), count(rig, "review")) == (3, 1)


async def test_what_arrives_while_it_sleeps_is_settled(rig: Rig) -> None:
    async with running(rig):
        await rig.accept("heartbeat")
        rig.journaled.set()
        await until(lambda: rig.counts().discarded == 1, "the first")
        await rig.accept("heartbeat")
        rig.journaled.set()
        await until(lambda: rig.counts().discarded == 2, "the second")


async def test_a_restart_goes_on_behind_the_last_batch(tmp_path: Path) -> None:
    async with Rig(tmp_path, SITE + RULES) as rig:
        await rig.accept(*["heartbeat"] * 6)
        await rig.fast.step()
    async with Rig(tmp_path, SITE + RULES) as rig:
        with rig.store.read() as connection:
            assert journal.cursor(connection) == 4
        await rig.settle()
        assert rig.counts().discarded == 6
        rig.assert_sound()


async def test_a_full_disk_is_waited_for_and_is_no_stall(rig: Rig) -> None:
    await rig.accept("heartbeat")
    rig.failures, rig.fast.progressed_at = 1_000_000, 0.0
    async with running(rig):
        await until(lambda: rig.fast.progressed_at > 0, "a sign of life")
        assert rig.fast.backlog() == 1
        rig.failures = 0
        await until(lambda: not rig.fast.backlog(), "the settling")


MULTILINE = SITE.replace(
    "mode: live", "mode: live, framing: multiline, multiline: {start: '^[A-Z]', flush_s: 300}"
)
RENAMED = MULTILINE.replace("line7:", "line8:")
OTHERWISE = SITE.replace("mode: live", "mode: live, framing: lines")


@pytest.mark.parametrize(
    ("after", "ends"),
    [
        (RENAMED, [("review", "unknown_source"), ("part_of", "multiline")]),
        (OTHERWISE, [("unread", ""), ("part_of", "multiline")]),
        (MULTILINE, None),
    ],
    ids=["the source is gone", "its framing is another", "it is as it was"],
)
async def test_an_open_record_ends_when_nobody_can_go_on_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: str, ends: list[tuple[str, str]] | None
) -> None:
    monkeypatch.setattr(fast_lane, "STORE_RETRY_S", 0.0)
    monkeypatch.setattr(fast_lane, "FLUSH_S", 0.01)
    long_ago = 1_700_000_000_000_000
    async with Rig(tmp_path, MULTILINE) as rig:
        await rig.accept(
            "Traceback", "  at line 1", received_at_us=time.time_ns() // 1000 if ends is None else long_ago
        )
        await rig.settle()
        assert rig.counts().open_records == 1
    async with Rig(tmp_path, after) as rig:
        rig.failures = 2
        async with running(rig):
            if ends is None:
                await rig.accept("  at line 2")
                await until(lambda: not rig.fast.backlog(), "its next line")
                assert rig.counts().open_records == 1
            else:
                await until(lambda: rig.counts().open_records == 0, "its end")
                assert rig.states() == ends
        for question in rig.questions():
            assert question.asked.event["text"] == "Traceback\n  at line 1"
        rig.assert_sound()
