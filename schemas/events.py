"""What arrives: messages, and the events decoded from them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from schemas.extraction import Null


class EventId(NamedTuple):
    """An event is the `index`-th one of the journaled message `seq`. Both count from what the journal gave
    out."""

    seq: int
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs here

    def __str__(self) -> str:
        return f"{self.seq}.{self.index}"


@dataclass(frozen=True, slots=True)
class Message:
    """One accepted payload, as journaled: raw bytes, before anything is parsed.

    `seq` is the journal's sequence number, the order in which everything downstream is applied.
    `received_at` is an aware UTC time. `connection` names the source connection it came over (empty for
    files).
    """

    seq: int
    source: str
    topic: str
    payload: bytes
    received_at: datetime
    qos: int = 0
    retain: bool = False
    duplicate: bool = False
    mid: int = 0
    connection: str = ""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line (or joined record) of text. `asset` comes from the topic or from a neighbouring JSON key, if
    any.

    `repeated` is the N of "message repeated N times: [ ... ]": how many occurrences this line stands for.
    """

    id: EventId
    source: str
    topic: str
    text: str
    received_at: datetime
    asset: str | None = None
    retain: bool = False
    repeated: int = 1


@dataclass(frozen=True, slots=True)
class Reading:
    """One measured value. `value` is None exactly when `null` says why; None is never 0.

    `time` is the event's own time (aware UTC) where the payload carries one.
    `pointer` is the JSON pointer (RFC 6901) of the value in the payload, or "" for a bare payload.
    `written` is the value exactly as the payload had it.
    """

    id: EventId
    source: str
    topic: str
    metric: str
    value: float | None
    received_at: datetime
    null: Null | None = None
    asset: str | None = None
    unit: str | None = None
    quality: str | None = None
    time: datetime | None = None
    pointer: str = ""
    written: str = ""
    retain: bool = False


Event = LogLine | Reading
