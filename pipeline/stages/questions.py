"""What a person is asked about an event, in words and with everything that was read."""

from __future__ import annotations

import base64
import hashlib

from pipeline.patterns.signature import sign
from pipeline.stages.decode import HEAD_BYTES, Refused
from pipeline.stages.judge import Judged
from pipeline.stages.ticket import evidence
from pipeline.store.codec import dump_event
from pipeline.store.reviews import NewReview
from schemas.events import EventId, LogLine, Message

# Nobody has read the line: it looked urgent and waited too long, or too many wait.
OVERDUE, OVERFLOW = "unread_too_long", "unread_overflow"
# Readings disagree about the pattern.
DISPUTED = "disputed"
# The profile that the line waited for is not in the site file any more.
UNKNOWN_PROFILE = "unknown_profile"


def about(judged: Judged, now_us: int) -> NewReview:
    """The first reason names the question; all lines of one pattern with that reason are one question."""
    change = judged.change
    reason = judged.reasons[0]
    return NewReview(
        id=change.id,
        source=change.event.source,
        topic=change.event.topic,
        group_key=group_key(reason, change.pattern_id, change.event.source),
        reason=reason,
        created_at_us=now_us,
        event=dump_event(change.event),
        reading={
            **evidence(change),
            "reasons": list(judged.reasons),
            "details": list(change.checked.details),
        },
        pattern_id=change.pattern_id,
        severity=change.decision.severity.label,
    )


def raw(line: LogLine, reason: str, now_us: int, pattern_id: int | None = None) -> NewReview:
    """A line that nobody has read."""
    return NewReview(
        id=line.id,
        source=line.source,
        topic=line.topic,
        group_key=group_key(reason, pattern_id, _kind_of(line)),
        reason=reason,
        created_at_us=now_us,
        event=dump_event(line),
        pattern_id=pattern_id,
    )


def refused(message: Message, what: Refused, now_us: int) -> NewReview:
    """A payload, or a part of one, that is no text or over a limit: its first bytes are kept."""
    return NewReview(
        id=what.id,
        source=message.source,
        topic=message.topic,
        group_key=group_key(what.reason, None, message.source),
        reason=what.reason,
        created_at_us=now_us,
        event={"bytes": base64.b64encode(what.head).decode(), "size": what.size},
    )


def orphan(message: Message, reason: str, now_us: int) -> NewReview:
    """A message that cannot be decoded as a whole."""
    head, size = message.payload[:HEAD_BYTES], len(message.payload)
    return refused(message, Refused(EventId(message.seq, 0), reason, head, size), now_us)


def _kind_of(line: LogLine) -> str:
    """Lines of one pattern are one question, also before the pattern has an id."""
    return hashlib.sha256(sign(line.text).text.encode("utf-8", "replace")).hexdigest()[:16]


def group_key(reason: str, pattern_id: int | None, source: str) -> str:
    """What is asked once: a reason, of one pattern where there is one, else of one source."""
    return f"{reason}|{source if pattern_id is None else f'pattern:{pattern_id}'}"
