"""The seams between andon and the outside: sources give deliveries, sinks take tickets.

A source knows nothing of stages: it yields batches of deliveries in arrival order and is told, after the journal's
commit, which to acknowledge. A sink creates one ticket under one idempotency key and never retries by itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from schemas.ticket import Ticket


class Strict(BaseModel):
    """Base of every config model: unknown keys are refused, nothing can be changed after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Secret(Strict):
    """A secret by reference: a file, or a systemd credential by name. Never the secret itself."""

    file: str | None = Field(default=None, description="path of a file that holds the secret and nothing else")
    credential: str | None = Field(
        default=None, description="name of a systemd credential (LoadCredential= in the unit)"
    )


Framing = Literal["payload", "lines", "multiline"]


class Multiline(Strict):
    """How lines join into one record: a line matching `start` (RE2) begins a new one, all others continue it."""

    start: str = Field(description="RE2 expression that matches the first line of a record")
    flush_s: float = Field(default=2.0, gt=0, le=300, description="a record is complete after this silence")
    max_lines: int = Field(default=200, ge=2, le=10_000, description="a longer record is closed and a new one begun")


class Dedupe(Strict):
    """Redelivery only. Repeats of a fault are the alarm's business."""

    content_window_s: float = Field(
        default=60.0,
        ge=0,
        le=86_400,
        description="equal lines of one topic with the same event time within this window are one; 0 turns it off",
    )


class SourceOptions(Strict):
    """What every source may state, whatever its protocol."""

    profile: str = Field(default="machine-log", description="name of the profile its events are read with")
    mode: Literal["observe", "live"] = Field(
        default="observe", description="observe: decide and show everything, send nothing; live: send tickets"
    )
    framing: Framing = Field(default="payload", description="what a payload is: one event, lines, or joined records")
    multiline: Multiline | None = Field(default=None, description="the joining rule when framing is multiline")
    encoding: str | None = Field(default=None, description="text encoding; found by itself when not given")
    timezone: str | None = Field(default=None, description="IANA time zone of stamps without one; default: the site's")
    topic_template: str | None = Field(
        default=None, description="names topic levels, as in plant/{asset}/+/{metric}; + and # as in MQTT filters"
    )
    dedupe: Dedupe = Dedupe()


# A port of 0 is never meant in a site file.
Port = Annotated[int, Field(ge=1, le=65_535)]


@dataclass(frozen=True, slots=True)
class Delivery:
    """One payload as it arrived. `position` is what the source needs to acknowledge it (MQTT packet id, file offset).

    `connection` names the connection it came over: an acknowledgement for an old connection is never sent, since
    the same packet id may by now stand for another message.
    """

    topic: str
    payload: bytes
    received_at_us: int
    qos: int = 0
    retain: bool = False
    duplicate: bool = False
    position: int = 0
    connection: str = ""


class Source(Protocol):
    """A stream of deliveries.

    `batches()` yields whatever has arrived since the last time it was asked (at least one, at most `batch_max`), in
    arrival order, and ends when the source is exhausted or stopped. `ack` is called with a prefix of what was yielded,
    after it is on disk, in order; it is a no-op for deliveries of an old connection. `pause` stops the inflow without
    disconnecting, so that acks can still go out; `close` disconnects. Raises SourceRefused when going on is useless.
    """

    name: str

    def batches(self) -> AsyncIterator[Sequence[Delivery]]: ...

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

    `create` makes one attempt under `ticket.key`; raises SinkBusy, SinkRejected or SinkUnknown. `find` looks an earlier
    ticket up by its key, for lost answers; None when the system cannot be searched or has none. `idempotent` tells whether
    the system itself deduplicates by key (then a lost answer may simply be sent again).
    """

    name: str
    idempotent: bool
    searchable: bool

    async def create(self, ticket: Ticket) -> Receipt: ...

    async def find(self, key: str) -> Receipt | None: ...

    async def close(self) -> None: ...
