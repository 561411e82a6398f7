"""What one event does to alarms, complete: what the alarm stage applies and a ticket is written from."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipeline.stages import numbers
from pipeline.stages.facts import Facts
from pipeline.stages.validate import Checked
from pipeline.store.codec import to_us
from schemas.events import Event, EventId, LogLine, Reading
from schemas.extraction import Decision, Extraction, Severity, Transition
from schemas.ticket import AlarmKey


@dataclass(frozen=True, slots=True)
class Change:
    """`cause` names the alarm raised or cleared; `returns` are causes this event's value returns to normal.

    `document` is the event's own id, or that of the line it stands beside (decode.documents). `live` is false
    for sources that only observe. `confirmed`: a person says that it ends every alarm it may be about.
    """

    event: Event
    facts: Facts
    decision: Decision
    cause: str | None
    document: EventId
    returns: tuple[str, ...] = ()
    live: bool = False
    extraction: Extraction | None = None
    checked: Checked = field(default_factory=Checked)
    pattern_id: int | None = None
    confirmed: bool = False

    @property
    def id(self) -> EventId:
        return self.event.id

    @property
    def raises(self) -> bool:
        return self.decision.transition is Transition.RAISE and self.cause is not None

    @property
    def clears(self) -> bool:
        return self.decision.transition is Transition.CLEAR and self.cause is not None

    @property
    def key(self) -> AlarmKey:
        return AlarmKey(self.facts.subject, self.cause or "")

    @property
    def is_line(self) -> bool:
        return isinstance(self.event, LogLine)

    @property
    def severity(self) -> Severity:
        return Severity(str(self.decision.severity.label))

    @property
    def at_us(self) -> int:
        return to_us(self.event.received_at)

    @property
    def count(self) -> int:
        return self.event.repeated if isinstance(self.event, LogLine) else 1

    @property
    def text(self) -> str:
        """The line; of a reading what it says."""
        return text_of(self.event)

    @property
    def is_dated(self) -> bool:
        """Equal text then means the same event."""
        if isinstance(self.event, Reading):
            return self.event.time is not None
        return numbers.has_date_time(self.event.text)


def text_of(event: Event) -> str:
    if isinstance(event, LogLine):
        return event.text
    unit = f" {event.unit}" if event.unit and event.unit not in event.written else ""
    at = f" at {event.time.isoformat()}" if event.time is not None else ""
    return f"{event.metric} = {event.written}{unit}{at}"
