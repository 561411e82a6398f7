"""A pattern is read once, and its lines follow by the plan; what waits too long goes to people."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from consumer import until
from making import line
from rig import SITE, Rig, ScriptedReader, verdict

from pipeline.model.thread import ModelState
from pipeline.patterns import READINGS, Trust
from pipeline.stages import read
from schemas.errors import StoreUnavailable
from schemas.ticket import Outcome

URGENT = "CRITICAL spindle torn off"


def device_of(line: str) -> str:
    return line.split()[0]


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    reader = ScriptedReader(lambda line: verdict(line, "error", device=device_of(line)))
    async with Rig(tmp_path, reader=reader) as rig:
        yield rig
        rig.assert_sound()


def burst(n: int) -> list[str]:
    return [f"press{number % 3} belt squeaks at {number} rpm" for number in range(n)]


async def test_a_burst_of_one_new_pattern_costs_a_few_readings(rig: Rig) -> None:
    await rig.accept(*burst(1000))
    await rig.settle()
    assert rig.counts().unread == 1000
    await rig.read()
    assert len(rig.reader.texts) <= READINGS
    known = rig.counts()
    assert (known.tickets, known.occurrences, known.pending) == (3, 997, 0)


async def test_a_burst_that_comes_while_others_wait_costs_no_more(rig: Rig) -> None:
    """One reading a pattern first; the plan is tried on further lines when there is time."""
    await rig.accept(*burst(500), "oven1 glows", *burst(500))
    await rig.settle()
    await rig.read()
    await rig.tell(*burst(100))
    of_burst = [text for text in rig.reader.texts if "belt" in text]
    assert len(of_burst) == len(set(of_burst)) <= READINGS


async def test_the_rest_of_a_group_is_read_by_the_plan(rig: Rig) -> None:
    await rig.tell(*burst(6))
    assets = {row.intent.ticket.asset for row in rig.tickets()}
    assert assets == {"press/press0", "press/press1", "press/press2"}
    (entry,) = rig.core.book.entries()
    (taught,) = entry.variants.values()
    assert (taught.trust, taught.lesson.agreed) == (Trust.TRUSTED, READINGS)
    assert entry.n == 6


async def test_a_check_that_others_have_answered_meanwhile_is_not_read(rig: Rig) -> None:
    await rig.tell(burst(1)[0])
    stale = rig.core.book.match("line", burst(2)[1])
    for each in burst(4)[1:]:
        await rig.tell(each)
    assert len(rig.reader.texts) == READINGS
    rig.fast.checks.append((line(burst(9)[8], at=1), stale))
    await rig.read()
    assert len(rig.reader.texts) == READINGS


async def test_the_most_urgent_group_is_read_first(rig: Rig) -> None:
    await rig.accept("belt squeaks", "belt squeaks", "belt squeaks", URGENT)
    await rig.settle()
    await rig.slow.step()
    assert rig.reader.texts == [URGENT]


async def test_readings_that_disagree_are_asked(rig: Rig) -> None:
    severities = iter(["info", "critical", "info"])
    rig.reader.says = lambda line: verdict(line, next(severities))
    rows = await rig.tell(*burst(3))
    assert {(row.state, row.reason, row.pattern_id) for row in rows} == {(Outcome.REVIEW, "disputed", 1)}
    assert len({question.asked.group_key for question in rig.questions()}) == 1


async def test_what_looks_urgent_waits_no_longer_than_it_may(rig: Rig) -> None:
    await rig.accept("belt squeaks", URGENT)
    await rig.settle()
    rig.slow._max_wait_s = -1.0
    await rig.slow.overdue()
    assert rig.states() == [("unread", ""), ("review", "unread_too_long")]
    (question,) = rig.questions()
    assert (question.asked.event["text"], question.asked.pattern_id) == (URGENT, None)


async def test_a_read_that_was_not_committed_is_repeated_without_double_effects(rig: Rig) -> None:
    await rig.accept(*burst(5))
    await rig.settle()
    rig.failures = 1
    with pytest.raises(StoreUnavailable):
        await rig.slow.step()
    assert (len(rig.core.book), rig.tickets(), rig.counts().unread) == (0, [], 5)
    await rig.read()
    known = rig.counts()
    assert (known.tickets, known.occurrences, known.pending) == (3, 2, 0)
    assert len(rig.core.book) == 1


async def test_lines_of_a_profile_that_has_left_are_asked(tmp_path: Path) -> None:
    async with Rig(tmp_path) as rig:
        await rig.accept("belt squeaks")
        await rig.settle()
    async with Rig(tmp_path, SITE.replace("profile: line", "profile: machine-log")) as rig:
        await rig.read()
        assert rig.states() == [("review", "unknown_profile")]
        rig.assert_sound()


async def test_lines_of_a_source_that_has_left_are_asked(tmp_path: Path) -> None:
    """Renaming a source must not keep the service from running."""
    async with Rig(tmp_path) as rig:
        await rig.accept("belt squeaks", "oven1 glows")
        await rig.settle()
    async with Rig(tmp_path, SITE.replace("line7:", "line8:")) as rig:
        await rig.accept("belt squeaks", source="line8")
        await rig.settle()
        await rig.read()
        assert rig.states() == [("review", "unknown_source")] * 2 + [("ticket", "opened")]
        rig.assert_sound()


async def test_a_loading_model_is_waited_for_and_is_no_stall(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "IDLE_S", 0.01)
    rig.model.state = ModelState.LOADING
    await rig.accept("belt squeaks")
    await rig.settle()
    assert rig.slow.backlog() == 1
    rig.slow.progressed_at = 0.0
    lane = asyncio.create_task(rig.slow.run())
    try:
        await until(lambda: rig.slow.progressed_at > 0, "a sign of life")
        assert rig.reader.texts == []
        rig.model.state = ModelState.OFF
        await until(lambda: not rig.slow.backlog(), "the reading")
    finally:
        lane.cancel()
        await asyncio.gather(lane, return_exceptions=True)


async def test_a_full_disk_is_waited_for_and_is_no_stall(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "STORE_RETRY_S", 0.0)
    await rig.accept("belt squeaks")
    await rig.settle()
    rig.failures, rig.slow.progressed_at = 1_000_000, 0.0
    lane = asyncio.create_task(rig.slow.run())
    try:
        await until(lambda: rig.slow.progressed_at > 0, "a sign of life")
        assert rig.slow.backlog() == 1
        rig.failures = 0
        await until(lambda: not rig.slow.backlog(), "the reading")
    finally:
        lane.cancel()
        await asyncio.gather(lane, return_exceptions=True)


async def test_the_lane_goes_on_when_the_store_takes_writes_again(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "STORE_RETRY_S", 0.0)
    await rig.accept(*burst(3))
    await rig.settle()
    rig.failures = 2
    lane = asyncio.create_task(rig.slow.run())
    try:
        await until(lambda: not rig.slow.backlog(), "the reading")
    finally:
        lane.cancel()
        await asyncio.gather(lane, return_exceptions=True)
    assert rig.failures == 0
    assert rig.counts().tickets == 3
