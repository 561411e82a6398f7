"""The seams between andon and the outside: sources give deliveries, sinks take tickets.

A source knows nothing of stages: it yields batches of deliveries in arrival order and is told, after the
journal's commit, which to acknowledge. A sink creates one ticket under one idempotency key and never retries
by itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal, Protocol, Self

import structlog
from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from schemas.ticket import Ticket


class Strict(BaseModel):
    """Base of every config model: unknown keys are refused, nothing can be changed after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Secret(Strict):
    """A secret by reference: a file, or a systemd credential by name. Never the secret itself."""

    file: str | None = Field(
        default=None, description="path of a file that holds the secret and nothing else"
    )
    credential: str | None = Field(
        default=None, description="name of a systemd credential (LoadCredential= in the unit)"
    )

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.file is None) == (self.credential is None):
            raise ValueError("say where the secret is: either file: PATH or credential: NAME")
        if self.credential is not None and ("/" in self.credential or self.credential in {"", ".", ".."}):
            raise ValueError("a credential is a plain name, as after LoadCredential= in the unit, not a path")
        return self


Framing = Literal["payload", "lines", "multiline"]


class Multiline(Strict):
    """How lines join into one record: one that matches `start` (RE2) begins it, all others continue it."""

    start: str = Field(description="RE2 expression that matches the first line of a record")
    flush_s: float = Field(default=2.0, gt=0, le=300, description="a record is complete after this silence")
    max_lines: int = Field(
        default=200, ge=2, le=10_000, description="a longer record is closed and a new one begun"
    )


class Dedupe(Strict):
    """Redelivery only. Repeats of a fault are the alarm's business."""

    content_window_s: float = Field(
        default=60.0,
        ge=0,
        le=86_400,
        description="equal lines of a topic with one event time within this window are one; 0 turns it off",
    )


class SourceOptions(Strict):
    """What every source may state, whatever its protocol."""

    profile: str = Field(default="machine-log", description="name of the profile its events are read with")
    mode: Literal["observe", "live"] = Field(
        default="observe", description="observe: decide and show everything, send nothing; live: send tickets"
    )
    framing: Framing = Field(
        default="payload",
        description="what a payload is: one event (of a JSON array each record), lines, or joined records",
    )
    multiline: Multiline | None = Field(
        default=None, description="the joining rule when framing is multiline"
    )
    encoding: str | None = Field(default=None, description="text encoding; found by itself when not given")
    timezone: str | None = Field(
        default=None, description="IANA time zone of stamps without one; default: the site's"
    )
    topic_template: str | None = Field(
        default=None,
        description="names topic levels, as in plant/{asset}/+/{metric}; + and # as in MQTT filters",
    )
    dedupe: Dedupe = Field(default=Dedupe(), description="how repeated deliveries are recognised")


# A port of 0 is never meant in a site file.
Port = Annotated[int, Field(ge=1, le=65_535)]


@dataclass(frozen=True, slots=True)
class Delivery:
    """One payload as it arrived. `position` is what the source needs to acknowledge it (MQTT packet id,
    file offset).

    `connection` names the connection it came over: an acknowledgement for an old connection is never sent,
    since the same packet id may by now stand for another message.
    """

    topic: str
    payload: bytes
    received_at_us: int
    qos: int = 0
    retain: bool = False
    duplicate: bool = False
    position: int = 0
    connection: str = ""


class NoticeKind(StrEnum):
    """What a source may have to say about itself. Names are stable: they become metric labels and alarms."""

    CONNECTED = "connected"
    DISCONNECTED = "disconnected"
    UNREACHABLE = "unreachable"  # the other side cannot be reached, or a file is not there; tried again
    SESSION_LOST = "session_lost"  # the broker forgot us: what it held for us may be gone
    SUBSCRIBED = "subscribed"  # the broker holds other subscriptions than before: `position` has changed
    SUBSCRIPTION_REFUSED = "subscription_refused"
    QOS_LOWERED = "qos_lowered"  # the broker granted QoS 0 where 1 was asked for
    DROPPED = "dropped"  # QoS 0 messages that found the queue full; `count` says how many
    ODD_TOPIC = "odd_topic"  # a topic that is no valid UTF-8; the message is kept, the topic escaped
    ROTATED = "rotated"  # the file was renamed away and its successor is read now
    TRUNCATED = "truncated"  # the file was emptied or rewritten in place; it is read from its beginning
    GAP = "gap"  # the file that was being read is gone: lines written to it since then were not seen
    LINE_SPLIT = "line_split"  # a line longer than a payload may be was delivered in parts


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that people should hear about a source.

    `detail` is one line of plain text without secrets.
    """

    source: str
    kind: NoticeKind
    detail: str
    count: int = 1


# Called on the event loop, never from a source's own threads.
Notices = Callable[[Notice], None]

_QUIET = frozenset({NoticeKind.CONNECTED, NoticeKind.SUBSCRIBED, NoticeKind.ROTATED})


def log_notice(notice: Notice) -> None:
    """What happens to a notice that nobody asked for: it is logged, as a warning unless it is good news."""
    log = structlog.get_logger()
    say = log.info if notice.kind in _QUIET else log.warning
    say(f"source.{notice.kind}", source=notice.source, detail=notice.detail, count=notice.count)


@dataclass(frozen=True, slots=True)
class SourceStats:
    """A source's own counters since it was built. Whoever reads them turns them into metrics.

    `queue_depth` counts deliveries that arrived and were not yet taken by `batches()`. `resent` counts
    packets that the broker sent twice on one connection. `last_error` is what is wrong, None once it is
    over: an error from before the last connect says nothing any more.
    """

    connected: bool = False
    connects: int = 0
    received: int = 0
    acked: int = 0
    queue_depth: int = 0
    dropped_qos0: int = 0
    resent: int = 0
    odd_topics: int = 0
    session_lost: int = 0
    last_error: str | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """What `andon check --connect` found about one source or sink, in one line."""

    ok: bool
    message: str


class Source(Protocol):
    """A stream of deliveries.

    `batches()` yields whatever has arrived since the last time it was asked (at least one, at most
    `batch_max`), in arrival order, and ends when the source is exhausted or stopped. `ack` is called with a
    prefix of what was yielded, after it is on disk, in order; it is a no-op for deliveries of an old
    connection. `pause` stops the inflow without disconnecting, so that acks can still go out: what has
    arrived by then is still yielded, then `batches()` ends. `close` disconnects. Raises SourceRefused when
    going on is useless.

    `position` is what the source needs to go on after a restart. It always belongs to the batch yielded last:
    persist it in the transaction that stores that batch, and hand it to `build()` the next time. `check`
    tries the other side without taking anything from it.
    """

    name: str

    @property
    def position(self) -> Mapping[str, JsonValue]: ...

    def batches(self) -> AsyncIterator[Sequence[Delivery]]: ...

    def stats(self) -> SourceStats: ...

    async def check(self) -> Check: ...

    async def ack(self, deliveries: Sequence[Delivery]) -> None: ...

    async def pause(self) -> None: ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Receipt:
    """A sink's answer: the ticket's reference in the other system, and whether it existed already."""

    reference: str
    existed: bool = False


class Sink(Protocol):
    """A ticket system.

    `create` makes one attempt under `ticket.key`; raises SinkBusy, SinkMisconfigured, SinkRejected or
    SinkUnknown. `find` looks an earlier ticket up by its key, for lost answers; None when the system cannot
    be searched or has none; raises SinkBusy or SinkMisconfigured. `idempotent` tells whether the system
    itself deduplicates by key (then a lost answer may simply be sent again). `check` tries the other side
    without creating anything.
    """

    name: str
    idempotent: bool
    searchable: bool

    async def create(self, ticket: Ticket) -> Receipt: ...

    async def find(self, key: str) -> Receipt | None: ...

    async def check(self) -> Check: ...

    async def close(self) -> None: ...
