"""Tickets reach the sink once, late rather than twice, or a person is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from making import NOW, change, line
from scripted_sink import LOST_AFTER, LOST_BEFORE, ScriptedSink
from sqlalchemy import Connection

from pipeline.stages import deliver
from pipeline.stages.alarm import Alarms
from pipeline.stages.deliver import BREAKER_AFTER, MISCONFIGURED_REST_S, Deliver
from pipeline.stages.facts import Facts
from pipeline.stages.route import RouteConfig, Router
from pipeline.store import outbox, reviews
from pipeline.store.codec import to_us
from pipeline.store.engine import Store
from pipeline.store.outbox import OutboxRow, OutboxState
from pipeline.telemetry import Metrics
from schemas.errors import SinkBusy, SinkMisconfigured, SinkRejected, SinkUnknown, StoreUnavailable

S = 1_000_000


class Desk:
    """A store with alarms, a sink, and a clock that stands until it is moved."""

    def __init__(self, store: Store, sink: ScriptedSink) -> None:
        self.store = store
        self.sink = sink
        self.now_us = to_us(NOW)
        self._alarms = Alarms(Router([RouteConfig(id="all", sink=sink.name)]))
        self._seq = 0
        self.start()

    def start(self) -> None:
        """A new process on the same store."""
        self.metrics = Metrics()
        self.deliver = Deliver(self.sink, self.store, asyncio.Event(), self.metrics, lambda: self.now_us)

    def shows(self) -> tuple[str, str | None, float | None]:
        """The sink's state and last error in `andon status`, and its metric."""
        metric = self.metrics.registry.get_sample_value("andon_sink_misconfigured", {"sink": self.sink.name})
        return self.deliver.standing["state"], self.deliver.standing["last_error"], metric

    async def raise_alarm(self, asset: str = "press", kind: str = "raise") -> None:
        self._seq += 1
        event = change(line(at=self._seq), kind, facts=Facts(asset, True))
        await self.store.write(lambda connection: self._alarms.apply(connection, [event], self.now_us))

    async def pass_time(self, seconds: float) -> int:
        self.now_us += int(seconds * S)
        return await self.deliver.step()

    async def settle(self, seconds: float = 3600, rounds: int = 40) -> None:
        for _ in range(rounds):
            await self.pass_time(seconds)

    def rows(self) -> list[OutboxRow]:
        with self.store.read() as connection:
            return outbox.recent(connection, 100)[::-1]

    def asked(self) -> list[tuple[str, str]]:
        with self.store.read() as connection:
            groups = reviews.groups(connection, 10)
            found = [reviews.get(connection, group.sample_id) for group in groups]
        return [(each.asked.reason, str(each.asked.reading["answer"])) for each in found if each is not None]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store.open(tmp_path / "andon.db")
    yield store
    store.close()


@pytest.fixture
async def desk(store: Store) -> AsyncIterator[Callable[..., Desk]]:
    def make(*script: Any, **sink: Any) -> Desk:
        return Desk(store, ScriptedSink(script, **sink))

    yield make


async def test_a_ticket_is_sent_once(desk: Callable[..., Desk]) -> None:
    it = desk()
    await it.raise_alarm()
    assert await it.deliver.step() == 1
    await it.settle()
    (row,) = it.rows()
    assert (row.state, row.attempts, row.reference) == (OutboxState.SENT, 1, f"T-{row.intent.ticket.key}")
    assert len(it.sink.calls) == 1


async def test_it_goes_out_as_the_alarm_stands_then(desk: Callable[..., Desk]) -> None:
    it = desk()
    await it.raise_alarm()
    await it.raise_alarm()
    await it.raise_alarm(kind="clear")
    await it.deliver.step()
    (ticket,) = it.sink.calls
    assert (ticket.occurrences, ticket.state) == (2, "cleared")
    assert "State: cleared" in ticket.body
    assert it.rows()[0].intent.ticket == ticket, "what went out is what is kept"


async def test_after_the_first_attempt_its_content_is_fixed(desk: Callable[..., Desk]) -> None:
    it = desk(SinkBusy("503"), LOST_AFTER, idempotent=True)
    await it.raise_alarm()
    await it.deliver.step()
    await it.raise_alarm()
    await it.settle()
    assert [ticket.occurrences for ticket in it.sink.calls] == [1, 1, 1]
    assert sum(it.sink.tickets.values()) == 1


@pytest.mark.parametrize("asked_s", [37, 3000])
async def test_retry_after_is_honoured(desk: Callable[..., Desk], asked_s: int) -> None:
    it = desk(SinkBusy("429", retry_after_s=asked_s))
    await it.raise_alarm()
    await it.deliver.step()
    await it.raise_alarm("press 2")
    for _ in range(6):
        assert await it.pass_time((asked_s - 1) / 6) == 0, "it was asked to wait, for all tickets"
    assert await it.pass_time(2) > 0
    await it.settle()
    assert [row.state for row in it.rows()] == [OutboxState.SENT] * 2


async def test_busy_is_tried_again_with_growing_waits(desk: Callable[..., Desk]) -> None:
    it = desk(*(SinkBusy("503") for _ in range(4)))
    await it.raise_alarm()
    waits = []
    for _ in range(4):
        await it.deliver.step()
        (row,) = it.rows()
        waits.append((row.next_try_at_us - it.now_us) / S)
        it.now_us = max(row.next_try_at_us, it.deliver.resting_until_us)
    assert all(0 <= wait <= 2**n for n, wait in enumerate(waits))
    await it.deliver.step()
    assert it.rows()[0].state is OutboxState.SENT


async def test_a_sink_that_fails_and_fails_is_left_alone_then_tried_with_one(
    desk: Callable[..., Desk],
) -> None:
    it = desk(*(SinkBusy("no connection") for _ in range(50)))
    for n in range(12):
        await it.raise_alarm(f"press {n}")
    while len(it.sink.calls) < BREAKER_AFTER:
        await it.pass_time(1)
    before = len(it.sink.calls)
    assert await it.pass_time(1) == 0, "resting"
    await it.pass_time(30)
    assert len(it.sink.calls) == before + 1, "one request tries whether it is back"
    it.sink.script.clear()
    await it.settle()
    assert all(row.state is OutboxState.SENT for row in it.rows())
    assert set(it.sink.tickets.values()) == {1}


async def test_refused_for_good_is_asked_once_with_the_answer(desk: Callable[..., Desk]) -> None:
    it = desk(SinkRejected("400 bad request", body='{"error": "no project"}'))
    await it.raise_alarm()
    await it.raise_alarm("press 2")
    await it.settle()
    assert [row.state for row in it.rows()] == [OutboxState.DEAD, OutboxState.SENT]
    assert len(it.sink.calls) == 2
    assert it.asked() == [("dead_letter", '400 bad request {"error": "no project"}')]


DENIED = SinkMisconfigured("401: token expired")
YES = SinkUnknown("200 without a reference", answered=True)
KINDS: list[dict[str, bool]] = [{}, {"idempotent": True}, {"searchable": True}]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_sink_that_refuses_us_holds_every_ticket_until_it_does_not(
    desk: Callable[..., Desk], kind: dict[str, bool]
) -> None:
    it = desk(*[DENIED] * 30, **kind)
    for n in range(6):
        await it.raise_alarm(f"press {n}")
    assert it.shows() == ("ok", None, 0)
    await it.pass_time(0)
    first = len(it.sink.calls)
    assert it.shows() == ("misconfigured", "401: token expired", 1)
    for _ in range(10):
        await it.pass_time(MISCONFIGURED_REST_S / 2 + 1)
    assert len(it.sink.calls) == first + 5, "one request a rest, not one a ticket"
    assert {row.state for row in it.rows()} == {OutboxState.QUEUED} and it.asked() == []
    it.start()
    await it.pass_time(0)
    assert it.shows()[0] == "misconfigured", "after a restart, too"
    it.sink.script.clear()
    await it.settle(MISCONFIGURED_REST_S, 5)
    assert {row.state for row in it.rows()} == {OutboxState.SENT}
    assert it.shows() == ("ok", None, 0)
    assert set(it.sink.tickets.values()) == {1}


async def test_a_ticket_that_is_refused_shows_that_we_are_not(desk: Callable[..., Desk]) -> None:
    it = desk(DENIED, SinkRejected("422: no title"))
    await it.raise_alarm()
    await it.pass_time(0)
    await it.pass_time(MISCONFIGURED_REST_S)
    assert it.shows() == ("ok", "422: no title", 0)


@pytest.mark.parametrize(
    ("kind", "made", "state", "calls"),
    [
        ({}, True, OutboxState.UNKNOWN, 1),
        ({}, False, OutboxState.UNKNOWN, 1),
        ({"searchable": True}, True, OutboxState.SENT, 1),
        ({"searchable": True}, False, OutboxState.UNKNOWN, 1),
        ({"idempotent": True}, True, OutboxState.SENT, 2),
        ({"idempotent": True}, False, OutboxState.SENT, 2),
    ],
)
async def test_a_yes_that_names_no_ticket_is_never_taken_for_one(
    desk: Callable[..., Desk], kind: dict[str, bool], made: bool, state: OutboxState, calls: int
) -> None:
    """Looked up, sent again where keys count, or asked of a person; a second ticket never comes of it."""
    it = desk(YES, **kind)
    await it.raise_alarm()
    await it.pass_time(0)
    if made:
        it.sink.keep(it.sink.calls[0])
    assert it.shows() == ("misconfigured", "200 without a reference", 1)
    await it.settle(MISCONFIGURED_REST_S, 5)
    assert (it.rows()[0].state, len(it.sink.calls)) == (state, calls)
    assert len(it.asked()) == (state is OutboxState.UNKNOWN)
    assert it.sink.tickets.total() == (made or bool(kind.get("idempotent")))


async def test_nothing_is_waited_for_that_cannot_go_out_now(desk: Callable[..., Desk]) -> None:
    """What a drain waits for: neither a sink that rests, nor tickets of one that the site file dropped."""
    it = desk(DENIED)
    assert it.deliver.idle()
    await it.raise_alarm()
    assert not it.deliver.idle()
    await it.pass_time(0)
    assert it.deliver.idle()
    it.now_us += int(MISCONFIGURED_REST_S * S)
    assert not it.deliver.idle()
    it.sink.name = "another"
    assert it.deliver.idle()


@pytest.mark.parametrize("answer", [LOST_AFTER, LOST_BEFORE])
async def test_a_lost_answer_where_keys_count(desk: Callable[..., Desk], answer: str) -> None:
    it = desk(answer, idempotent=True)
    await it.raise_alarm()
    await it.settle()
    assert it.rows()[0].state is OutboxState.SENT
    assert list(it.sink.tickets.values()) == [1] and len(it.sink.calls) == 2


@pytest.mark.parametrize(("answer", "requests"), [(LOST_AFTER, 1), (LOST_BEFORE, 2)])
async def test_a_lost_answer_is_looked_up_first(
    desk: Callable[..., Desk], answer: str, requests: int
) -> None:
    it = desk(answer, searchable=True)
    await it.raise_alarm()
    await it.deliver.step()
    assert await it.pass_time(1) == 0, "the search index lags"
    await it.settle()
    assert it.rows()[0].state is OutboxState.SENT
    assert (list(it.sink.tickets.values()), len(it.sink.calls)) == ([1], requests)
    assert len(it.sink.searches) == 1


@pytest.mark.parametrize(("may_exist", "searches"), [(True, 1), (False, 0)])
async def test_a_server_that_failed_halfway_is_asked_before_it_is_sent_again(
    desk: Callable[..., Desk], may_exist: bool, searches: int
) -> None:
    it = desk(SinkBusy("502", may_exist=may_exist), searchable=True)
    await it.raise_alarm()
    await it.settle()
    assert it.rows()[0].state is OutboxState.SENT
    assert len(it.sink.searches) == searches


async def test_a_lost_answer_that_cannot_be_looked_up_needs_a_look(desk: Callable[..., Desk]) -> None:
    it = desk(LOST_AFTER)
    await it.raise_alarm()
    await it.settle()
    assert it.rows()[0].state is OutboxState.UNKNOWN
    assert len(it.sink.calls) == 1
    assert [reason for reason, _ in it.asked()] == ["ticket_unknown"]


@pytest.mark.parametrize(
    ("sink", "state", "requests"),
    [
        ({"idempotent": True}, OutboxState.SENT, 1),
        ({"searchable": True}, OutboxState.SENT, 1),
        ({}, OutboxState.UNKNOWN, 0),
    ],
)
async def test_a_process_that_died_in_a_request_lost_its_answer(
    desk: Callable[..., Desk], sink: dict[str, bool], state: OutboxState, requests: int
) -> None:
    it = desk(**sink)
    await it.raise_alarm()
    (row,) = it.rows()
    await it.store.write(lambda connection: outbox.begin(connection, [row.id]))
    it.start()
    await it.deliver.recover()
    await it.settle()
    assert it.rows()[0].state is state
    assert len(it.sink.calls) == requests
    assert (len(it.sink.searches) > 0) == sink.get("searchable", False)


async def test_a_cancelled_ticket_does_not_go_out(desk: Callable[..., Desk]) -> None:
    it = desk()
    await it.raise_alarm()
    key = it.rows()[0].intent.ticket.key
    await it.store.write(lambda connection: outbox.cancel(connection, key))
    await it.settle()
    assert it.rows()[0].state is OutboxState.CANCELLED and not it.sink.calls


async def test_a_clock_that_went_back_does_not_hold_tickets(desk: Callable[..., Desk]) -> None:
    it = desk(SinkBusy("503", retry_after_s=60))
    await it.raise_alarm()
    await it.deliver.step()
    it.now_us -= 10 * 365 * 86_400 * S
    assert await it.pass_time(0) == 1
    assert it.rows()[0].state is OutboxState.SENT


async def test_an_answer_is_not_lost_while_the_store_is_full(
    desk: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliver, "STORE_RETRY_S", 0.0)
    it = desk()
    await it.raise_alarm()
    write, full, lives = it.store.write, iter([False, True, True, False]), []

    async def scarce(fn: Callable[[Connection], Any]) -> Any:
        if next(full):
            raise StoreUnavailable("disk full")
        lives.append(it.deliver.progressed_at > 0)
        return await write(fn)

    monkeypatch.setattr(it.store, "write", scarce)
    it.deliver.progressed_at = 0.0
    await it.deliver.step()
    assert it.rows()[0].state is OutboxState.SENT
    assert len(it.sink.calls) == 1
    assert lives == [False, True], "waiting for the disk is no stall"
