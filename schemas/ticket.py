"""What comes out: outcomes, alarms and tickets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from schemas.events import EventId
from schemas.extraction import Severity


class Outcome(StrEnum):
    """The one end of every event. An event without one is pending."""

    TICKET = "ticket"
    REVIEW = "review"
    DISCARD = "discard"
    REPEAT = "repeat"
    PART_OF = "part_of"


@dataclass(frozen=True, slots=True)
class Settlement:
    """How an event ended, and why. `of` points at the original of a repeat or a part."""

    id: EventId
    outcome: Outcome
    reason: str
    alarm_id: int | None = None
    of: EventId | None = None


@dataclass(frozen=True, slots=True)
class AlarmKey:
    """Identity of an alarm: what (asset, else source and topic) and why (code, else rule id, else pattern
    lineage)."""

    subject: str
    cause: str

    def __str__(self) -> str:
        return f"{self.subject}|{self.cause}"


@dataclass(frozen=True, slots=True)
class Ticket:
    """One ticket to be created, complete: everything a sink's template may use.

    `key` is the idempotency key: the alarm key's digest and the opening's number; it never changes once
    written. `fields` maps field name to its normalised text; `evidence` is the JSON-ready record of line,
    spans, readers and checks.
    """

    key: str
    title: str
    body: str
    severity: Severity
    asset: str
    cause: str
    category: str | None = None
    action: str | None = None
    source: str = ""
    topic: str = ""
    line: str = ""
    first_seen: str = ""
    last_seen: str = ""
    occurrences: int = 1
    state: str = "open"
    fields: Mapping[str, str] = field(default_factory=dict)
    evidence: Mapping[str, object] = field(default_factory=dict)
