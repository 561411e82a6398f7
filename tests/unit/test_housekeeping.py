"""Gauges say what the store says, pattern counts reach the disk, and a full disk stops neither."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from consumer import until
from rig import Rig, verdict
from scripted_deliveries import ScriptedDeliveries

from pipeline import housekeeping
from pipeline.housekeeping import HOUR_US, Gauges, Retention
from pipeline.stages.intake import Intake
from pipeline.stages.options import ReviewConfig
from pipeline.store import patterns
from pipeline.store.options import RetentionConfig
from schemas.errors import StoreUnavailable

OLD = time.time_ns() // 1000 - 100 * HOUR_US


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with Rig(tmp_path) as rig:
        yield rig
        rig.assert_sound()


def gauges(rig: Rig) -> Gauges:
    intake = Intake(ScriptedDeliveries([]), rig.store, rig.journaled, rig.metrics)
    return Gauges(rig.store, rig.core.book, rig.model, [intake], rig.metrics)


def value(rig: Rig, name: str, **labels: str) -> float | None:
    return rig.metrics.registry.get_sample_value(name, labels)


def counted(rig: Rig) -> int:
    with rig.store.read() as connection:
        return sum(row.n for row in patterns.load_all(connection))


async def test_the_gauges_say_what_the_store_says(rig: Rig) -> None:
    rig.reader.says = lambda line: verdict(line, None if "glows" in line else "error")
    await rig.tell("belt squeaks", "oven glows")
    await rig.accept("spindle torn off")
    await rig.settle()
    await gauges(rig).step()
    assert value(rig, "andon_unread_events") == 1
    assert value(rig, "andon_pending_events") == 1
    assert value(rig, "andon_review_open") == 1
    assert value(rig, "andon_alarms_open") == 1
    assert value(rig, "andon_patterns") == 2


async def test_pattern_counts_reach_the_disk_once(rig: Rig) -> None:
    await rig.tell("belt squeaks", "belt squeaks", "belt squeaks")
    keeper = gauges(rig)
    rig.failures = 1
    await keeper.step()
    assert counted(rig) == 0
    await keeper.step()
    await keeper.step()
    assert counted(rig) == 3


async def test_the_last_counts_are_written_at_the_end(rig: Rig) -> None:
    keeper = gauges(rig)
    task = asyncio.create_task(keeper.run())
    await until(lambda: rig.metrics.free_bytes._value.get(), "a look")
    await rig.tell("belt squeaks")
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert counted(rig) == 1


async def test_a_full_store_at_the_end_is_no_failure(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: object) -> None:
        raise StoreUnavailable("no space left")

    monkeypatch.setattr(rig.store, "write_sync", full)
    task = asyncio.create_task(gauges(rig).run())
    await until(lambda: rig.metrics.free_bytes._value.get(), "a look")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def retention(rig: Rig, **given: float) -> Retention:
    return Retention(rig.store, RetentionConfig(hours=given.get("hours", 24)), ReviewConfig(keep_h=1))


async def test_what_is_too_old_is_forgotten_and_the_sums_stay(rig: Rig) -> None:
    rig.reader.says = lambda line: verdict(line, "info")
    await rig.tell("belt turns", "belt turns", received_at_us=OLD)
    await rig.tell("belt turns")
    assert await retention(rig).step() == 2
    assert rig.number("SELECT count(*) FROM journal") == 1
    assert rig.counts().discarded == 3
    assert await retention(rig).step() == 0


async def test_what_is_not_finished_stays_however_old(rig: Rig) -> None:
    await rig.accept("belt squeaks", received_at_us=OLD)
    await rig.settle()
    assert await retention(rig).step() == 0
    assert rig.counts().unread == 1


async def test_an_answered_question_is_kept_for_a_while(rig: Rig) -> None:
    rig.reader.says = lambda line: verdict(line, None)
    await rig.tell("belt squeaks")
    (question,) = rig.questions()
    await rig.core.desk.reject(question.review_id, "ada", "noise")
    assert await retention(rig).step() == 0
    keeper = retention(rig)
    keeper._clock_us = lambda: time.time_ns() // 1000 + 2 * HOUR_US
    assert await keeper.step() == 1
    assert rig.questions() == []


async def test_a_full_disk_does_not_end_retention(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "RETENTION_S", 0.001)
    rig.reader.says = lambda line: verdict(line, "info")
    await rig.tell("belt turns", received_at_us=OLD)
    rig.failures = 2
    task = asyncio.create_task(retention(rig).run())
    await until(lambda: rig.number("SELECT count(*) FROM journal") == 0 or task.done(), "the purge")
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
