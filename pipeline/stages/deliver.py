"""deliver: tickets from the outbox to one sink. The only place that retries.

One task a sink, so that a slow ticket system holds up nobody else. Every attempt is written down before the
request goes out; after a crash in between, its answer counts as lost. A lost answer is never simply sent
again unless the sink itself deduplicates by key: it is looked up first, and where that is impossible a
person is asked. A sink that refuses us, whatever the ticket, keeps every ticket waiting and shows why: it is
tried with one request now and then, until somebody has changed what is wrong.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import structlog
from sqlalchemy import Connection

from connectors.base import Sink
from pipeline.stages import ticket as tickets
from pipeline.store import alarms, outbox, reviews
from pipeline.store.alarms import Opening
from pipeline.store.codec import now_us
from pipeline.store.engine import Store
from pipeline.store.outbox import OutboxRow, OutboxState
from pipeline.store.reviews import NewReview
from pipeline.telemetry import Metrics
from schemas.errors import (
    SinkBusy,
    SinkError,
    SinkMisconfigured,
    SinkRejected,
    SinkUnknown,
    StoreUnavailable,
)
from schemas.events import EventId

log = structlog.get_logger(__name__)

T = TypeVar("T")

# Requests to one sink at a time: ticket systems are small too, and a flood must not become theirs.
CONCURRENCY = 4

# Back-off: full jitter over a window that doubles from 1 s (AWS Architecture Blog, "Exponential Backoff and
# Jitter").
RETRY_BASE_S = 1.0

# Before a lost answer is looked up: search indexes lag behind what was created.
LOOKUP_DELAY_S = 2.0

# How long a sink that refuses us rests before one request tries again: somebody has to change something
# first.
MISCONFIGURED_REST_S = 60.0

# After this many failures in a row the sink is left alone, and then tried with one request.
BREAKER_AFTER = 5
BREAKER_REST_S = 15.0

# How often a full store is tried again.
STORE_RETRY_S = 1.0

# How long an idle task sleeps at most before it looks for retries that have become due.
IDLE_S = 0.5


class _NotFound(SinkError):
    """A ticket that was to be looked up is not there, though the sink said yes to it."""


class Deliver:
    """Sends the tickets of one sink. `wake` is set when new intents have been written."""

    drains = True

    def __init__(
        self,
        sink: Sink,
        store: Store,
        wake: asyncio.Event,
        metrics: Metrics,
        clock_us: Callable[[], int] = now_us,
    ) -> None:
        self.name = f"deliver.{sink.name}"
        self.progressed_at = time.monotonic()
        self.resting_until_us = 0  # the circuit breaker, and what the server asked for by Retry-After
        self.last_error: str | None = None  # of the last answer; None when it was a good one
        self._misconfigured = False
        self._failures = 0
        self._waiting = 0
        self._sink = sink
        self._store = store
        self._wake = wake
        self._metrics = metrics
        self._clock_us = clock_us
        metrics.sink_misconfigured.labels(sink.name).set(0)

    @property
    def standing(self) -> dict[str, Any]:
        """How the sink is, for people."""
        resting = "resting" if self._is_resting() else "ok"
        return {
            "state": "misconfigured" if self._misconfigured else resting,
            "last_error": self.last_error,
        }

    def idle(self) -> bool:
        """No ticket is on its way, and none could be sent now."""
        if self._waiting or self._is_resting():
            return not self._waiting
        with self._store.read() as connection:
            return not outbox.due(connection, self._sink.name, self._clock_us(), 1)

    def backlog(self) -> int:
        """Rows being worked on. Rows that wait for their next try are no backlog: nothing could be done
        about them."""
        return self._waiting

    async def run(self) -> None:
        await self.recover()
        while True:
            self._wake.clear()
            if not await self.step():
                await self._idle()

    async def step(self) -> int:
        """One round over what is due; how many rows were worked on."""
        if self._is_resting():
            return 0
        limit = 1 if self._misconfigured or self._failures >= BREAKER_AFTER else CONCURRENCY
        with self._store.read() as connection:
            due = outbox.due(connection, self._sink.name, self._clock_us(), limit)
        if not due:
            return 0
        self._waiting = len(due)
        rows = await self._write(lambda connection: self._take(connection, limit))
        self._waiting = len(rows)
        async with asyncio.TaskGroup() as group:
            for row in rows:
                group.create_task(self._work(row), name=f"{self.name}.{row.id}")
        self._waiting = 0
        self.progressed_at = time.monotonic()
        return len(rows)

    def _take(self, connection: Connection, limit: int) -> list[OutboxRow]:
        """Mark what is due as being sent; the rows, those that go out for the first time with their alarm
        as it stands now. One that was cancelled meanwhile is not among them.
        """
        rows = outbox.due(connection, self._sink.name, self._clock_us(), limit)
        ids = {row.intent.opening_id or 0 for row in rows if _is_first(row)}
        openings = alarms.by_ids(connection, ids) if ids else {}
        current = [_current(row, openings) for row in rows]
        outbox.rewrite(connection, [(row.id, row.intent.ticket) for row in current if _is_first(row)])
        outbox.begin(connection, [row.id for row in rows if row.state is OutboxState.QUEUED])
        return current

    def _is_resting(self) -> bool:
        """Not when the rest seems longer than any can be: then the clock went back."""
        rest_us = self.resting_until_us - self._clock_us()
        return 0 < rest_us <= int(outbox.RETRY_AFTER_MAX_S * 1e6)

    async def _write(self, fn: Callable[[Connection], T]) -> T:
        """Write, however long the store is full: what the sink answered must not be lost for want of disk."""
        while True:
            try:
                return await self._store.write(fn)
            except StoreUnavailable as error:
                log.warning("store.full", sink=self._sink.name, error=str(error))
                self.progressed_at = time.monotonic()  # waiting for the disk is not being stuck
                await asyncio.sleep(STORE_RETRY_S)

    async def _idle(self) -> None:
        try:
            async with asyncio.timeout(IDLE_S):
                await self._wake.wait()
        except TimeoutError:
            return

    async def recover(self) -> None:
        """Attempts that a dead process left behind: their answers are lost."""
        with self._store.read() as connection:
            rows = outbox.interrupted(connection, self._sink.name)
        for row in rows:
            await self._lost(row, "the process ended during the request")

    async def _work(self, row: OutboxRow) -> None:
        try:
            receipt = await self._attempt(row)
        except SinkBusy as error:
            self.last_error = str(error)
            await self._busy(row, error)
        except SinkMisconfigured as error:
            self._refused(str(error))
            await self._held(row, str(error))
        except SinkRejected as error:
            self._answered(str(error))
            await self._ask(row, OutboxState.DEAD, "dead_letter", f"{error} {error.body}".strip())
        except SinkUnknown as error:
            if error.answered:
                await self._unread(row, str(error))
            else:
                self.last_error = str(error)
                self._trouble(None)
                await self._lost(row, str(error))
        except _NotFound as error:
            await self._ask(row, OutboxState.UNKNOWN, "ticket_unknown", str(error))
        except SinkError as error:
            await self._ask(row, OutboxState.DEAD, "dead_letter", str(error))
        else:
            await self._sent(row, receipt)

    async def _attempt(self, row: OutboxRow) -> str:
        """The ticket's reference, looked up or created."""
        if row.state in (OutboxState.LOST, OutboxState.DOUBTFUL):
            found = await self._sink.find(row.intent.ticket.key)
            if found is not None:
                return found.reference
            if row.state is OutboxState.DOUBTFUL:
                raise _NotFound(f"{row.error}. A search for the ticket finds none")
            # Marked before the request, like every other: the lookup says that nothing of it exists yet.
            await self._write(
                lambda connection: outbox.finish(
                    connection, row.id, OutboxState.SENDING, at_us=self._clock_us()
                )
            )
        return (await self._sink.create(row.intent.ticket)).reference

    async def _sent(self, row: OutboxRow, reference: str) -> None:
        self._answered(None)
        self._failures = 0
        self._count("sent")
        await self._write(
            lambda connection: outbox.finish(
                connection, row.id, OutboxState.SENT, at_us=self._clock_us(), reference=reference
            )
        )
        ticket = row.intent.ticket
        log.info("ticket.created", sink=self._sink.name, ticket=reference, key=ticket.key, asset=ticket.asset)

    async def _busy(self, row: OutboxRow, error: SinkBusy) -> None:
        self._count("busy")
        self._trouble(error.retry_after_s)
        # A row whose lookup failed stays lost: only a lookup that says "no such ticket" lets it be sent
        # again. A server that failed halfway (500, 502, 504) may have made the ticket before it did.
        doubtful = error.may_exist and self._sink.searchable and not self._sink.idempotent
        state = OutboxState.LOST if doubtful and row.state is OutboxState.QUEUED else row.state
        at_us = self._clock_us() + int(self._delay_s(row.attempts, error.retry_after_s) * 1e6)
        await self._write(
            lambda connection: outbox.finish(connection, row.id, state, at_us=at_us, error=str(error))
        )
        log.warning("ticket.postponed", sink=self._sink.name, key=row.intent.ticket.key, error=str(error))

    async def _held(self, row: OutboxRow, why: str) -> None:
        """Back as it was: the sink's rest is wait enough."""
        self._count("held")
        at_us = self._clock_us()
        await self._write(
            lambda connection: outbox.finish(connection, row.id, row.state, at_us=at_us, error=why)
        )

    async def _unread(self, row: OutboxRow, why: str) -> None:
        """The sink said yes, and nobody can tell to what. Only where keys count is it simply sent again."""
        self._refused(why)
        if self._sink.idempotent:
            await self._held(row, why)
        elif self._sink.searchable:
            self._count("lost")
            at_us = self._clock_us() + int(LOOKUP_DELAY_S * 1e6)
            await self._write(
                lambda connection: outbox.finish(
                    connection, row.id, OutboxState.DOUBTFUL, at_us=at_us, error=why
                )
            )
            log.warning("ticket.answer_unread", sink=self._sink.name, key=row.intent.ticket.key, error=why)
        else:
            await self._ask(row, OutboxState.UNKNOWN, "ticket_unknown", why)

    async def _lost(self, row: OutboxRow, why: str) -> None:
        self._count("lost")
        if self._sink.idempotent:
            state, wait_s = OutboxState.QUEUED, self._delay_s(row.attempts, None)
        elif self._sink.searchable:
            state, wait_s = OutboxState.LOST, LOOKUP_DELAY_S
        else:
            await self._ask(row, OutboxState.UNKNOWN, "ticket_unknown", why)
            return
        at_us = self._clock_us() + int(wait_s * 1e6)
        await self._write(lambda connection: outbox.finish(connection, row.id, state, at_us=at_us, error=why))
        log.warning("ticket.answer_lost", sink=self._sink.name, key=row.intent.ticket.key, error=why)

    async def _ask(self, row: OutboxRow, state: OutboxState, reason: str, why: str) -> None:
        """End the attempts and ask a person, in one transaction."""
        self._count(state.value)
        ticket = row.intent.ticket
        question = NewReview(
            id=_event(ticket.evidence.get("event")),
            source=ticket.source,
            topic=ticket.topic,
            group_key=f"{reason}:{self._sink.name}",
            reason=reason,
            created_at_us=self._clock_us(),
            event={"text": ticket.line},
            reading={"key": ticket.key, "sink": self._sink.name, "title": ticket.title, "answer": why},
            severity=ticket.severity.value,
        )

        def write(connection: Connection) -> None:
            outbox.finish(connection, row.id, state, at_us=self._clock_us(), error=why)
            reviews.put(connection, [question])

        await self._write(write)
        log.error("ticket.given_up", sink=self._sink.name, key=ticket.key, state=state.value, error=why)

    def _refused(self, why: str) -> None:
        """The sink refuses us: it rests, and its state says why."""
        if not self._misconfigured or why != self.last_error:
            log.error("sink.misconfigured", sink=self._sink.name, error=why, retry_s=MISCONFIGURED_REST_S)
        self._misconfigured, self.last_error = True, why
        self._metrics.sink_misconfigured.labels(self._sink.name).set(1)
        self._rest(MISCONFIGURED_REST_S)

    def _answered(self, error: str | None) -> None:
        """The sink took a ticket, or refused it for what it is: it takes us."""
        if self._misconfigured:
            log.info("sink.resumed", sink=self._sink.name)
        self._misconfigured, self.last_error = False, error
        self._metrics.sink_misconfigured.labels(self._sink.name).set(0)

    def _rest(self, seconds: float) -> None:
        until_us = self._clock_us() + int(min(seconds, outbox.RETRY_AFTER_MAX_S) * 1e6)
        self.resting_until_us = max(self.resting_until_us, until_us)

    def _trouble(self, retry_after_s: float | None) -> None:
        """One more failure in a row; the whole sink rests when it says so, or after too many."""
        self._failures += 1
        rest_s = retry_after_s or 0.0
        if self._failures >= BREAKER_AFTER:
            rest_s = max(rest_s, BREAKER_REST_S)
        if rest_s:
            self._rest(rest_s)

    @staticmethod
    def _delay_s(attempts: int, retry_after_s: float | None) -> float:
        window = min(outbox.RETRY_MAX_S, RETRY_BASE_S * 2 ** min(attempts, 10))
        return min(outbox.RETRY_AFTER_MAX_S, max(retry_after_s or 0.0, random.uniform(0, window)))

    def _count(self, result: str) -> None:
        self._metrics.sink_attempts.labels(self._sink.name, result).inc()


def _is_first(row: OutboxRow) -> bool:
    return row.state is OutboxState.QUEUED and row.attempts == 0


def _current(row: OutboxRow, openings: Mapping[int, Opening]) -> OutboxRow:
    """The row with its alarm's counts, severity and state of now; after an attempt its content is fixed."""
    opening = openings.get(row.intent.opening_id or 0)
    if opening is None or not _is_first(row):
        return row
    ticket = tickets.refreshed(row.intent.ticket, opening)
    return replace(row, intent=replace(row.intent, ticket=ticket))


def _event(written: object) -> EventId:
    """The event that opened the ticket, from its evidence ("12.0")."""
    seq, _, index = str(written).partition(".")
    return EventId(int(seq), int(index or 0))
