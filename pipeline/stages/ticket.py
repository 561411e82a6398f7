"""The ticket of an alarm: title and body by a fixed template, and the evidence for every value in it.

Text from a line goes in as text only: it can neither choose the template nor add a field.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from pipeline.stages.change import Change
from pipeline.stages.encodings import visible
from pipeline.stages.facts import shown
from pipeline.store.alarms import Opening
from pipeline.store.codec import from_us
from schemas.events import EventId, LogLine, Reading
from schemas.extraction import Choice, FieldValue, Null
from schemas.ticket import Ticket

# Titles of most ticket systems end at 255 characters or less; the rest of the line stands in the body.
TITLE_CHARS = 160
# 24 hexadecimal digits are 96 bits: no two alarms of a plant share them.
KEY_DIGITS = 24
INDENT = 4
OPEN, CLEARED = "open", "cleared"


def ticket_key(site: str, opening: Opening) -> str:
    """The idempotency key: digest of site, subject and cause, and the opening's number."""
    identity = "\x1f".join((site, opening.subject, opening.cause))
    return f"{hashlib.sha256(identity.encode()).hexdigest()[:KEY_DIGITS]}-{opening.number}"


def build(opening: Opening, change: Change) -> Ticket:
    """The ticket of `opening`, with `change` (the event that asks for it) as its evidence."""
    fields = dict(_fields(change))
    ticket = Ticket(
        key=opening.ticket_key or "",
        title="",
        body="",
        severity=opening.severity,
        asset=opening.subject,
        cause=opening.cause,
        category=opening.category,
        action=opening.action,
        source=change.event.source,
        topic=change.event.topic,
        line=change.text,
        fields=fields,
        evidence=evidence(change),
    )
    return refreshed(ticket, opening)


def refreshed(ticket: Ticket, opening: Opening) -> Ticket:
    """The ticket as the alarm stands now: severity, counts, times, open or cleared; title and body too."""
    current = replace(
        ticket,
        severity=opening.severity,
        first_seen=_iso(opening.first_seen_us),
        last_seen=_iso(opening.last_seen_us),
        occurrences=opening.occurrences,
        state=OPEN if opening.cleared is None else CLEARED,
    )
    return replace(current, title=_title(current), body=_body(current))


def bare(opening: Opening) -> Ticket:
    """A ticket of what the alarm itself knows, where the evidence is not kept any more."""
    ticket = Ticket(
        key=opening.ticket_key or "",
        title="",
        body="",
        severity=opening.severity,
        asset=opening.subject,
        cause=opening.cause,
        category=opening.category,
        action=opening.action,
        source=opening.source,
        topic=opening.topic,
        line=opening.line,
        evidence={"event": str(opening.opened), "note": "the evidence is older than what is kept"},
    )
    return refreshed(ticket, opening)


def split_off(ticket: Ticket, opening: Opening, event: EventId) -> Ticket:
    """The ticket of an opening that a return to normal, read late, split off another one (whose is `ticket`).

    The event that opened it is known by its number only; the line shown is an earlier one of the same alarm,
    and the evidence says so.
    """
    note = f"opened by event {event}; the line shown is an earlier one of this alarm"
    record = {**ticket.evidence, "event": str(event), "note": note}
    return refreshed(replace(ticket, key=opening.ticket_key or "", evidence=record), opening)


def _title(ticket: Ticket) -> str:
    said = " ".join(ticket.line.split())
    code = "" if ticket.cause in said or ":" in ticket.cause else f"{ticket.cause}: "
    title = f"{ticket.severity.upper()} {ticket.asset}: {code}{said}"
    title = visible(title)
    return title if len(title) <= TITLE_CHARS else title[: TITLE_CHARS - 1] + "…"


def _body(ticket: Ticket) -> str:
    rows = {
        "What": ticket.line,
        "Where": ticket.asset,
        "Cause": ticket.cause,
        "Severity": str(ticket.severity),
        "Category": ticket.category or "unsure",
        "Action": ticket.action or "none given",
        "State": ticket.state,
        "First seen": ticket.first_seen,
        "Last seen": ticket.last_seen,
        "Occurrences": str(ticket.occurrences),
        "Source": f"{ticket.source} {ticket.topic}".strip(),
        **ticket.fields,
    }
    notes = ticket.evidence.get("remarks")
    if isinstance(notes, Sequence) and notes:
        rows["Notes"] = "; ".join(map(str, notes))
    return "\n".join(f"{name}: {_legible(value)}" for name, value in rows.items())


def _legible(value: str) -> str:
    """Text of a machine in the body. Further lines of it are indented, so that none passes for a row."""
    return visible(value.expandtabs(INDENT)).replace("\n", "\n" + INDENT * " ")


def _fields(change: Change) -> Iterator[tuple[str, str]]:
    event = change.event
    if isinstance(event, Reading):
        yield "metric", event.metric
        yield "value", event.written
        if event.unit:
            yield "unit", event.unit
    elif change.extraction is not None:
        for name, value in change.extraction.fields.items():
            text = shown(event.text, value)
            if text is not None:
                yield name, text


def evidence(change: Change) -> dict[str, object]:
    """Everything known of the event: the line, each field's origin, who read it, the checks it passed."""
    event, decision = change.event, change.decision
    record: dict[str, object] = {
        "event": str(event.id),
        "source": event.source,
        "topic": event.topic,
        "received_at": event.received_at.astimezone(UTC).isoformat(),
        "line": change.text,
        "severity": _choice(decision.severity),
        "category": _choice(decision.category),
        "action": _choice(decision.action),
        "checks": list(change.checked.passed),
        "remarks": list(change.checked.remarks),
        "pattern": change.pattern_id,
    }
    if isinstance(event, Reading):
        record["reading"] = {
            "metric": event.metric,
            "written": event.written,
            "origin": f"pointer:{event.pointer}" if event.pointer else "payload",
            "quality": event.quality,
            "time": event.time.isoformat() if event.time else None,
        }
    elif change.extraction is not None:
        record["reader"] = change.extraction.reader
        record["fields"] = {name: _value(event, value) for name, value in change.extraction.fields.items()}
    return record


def _value(event: LogLine, value: FieldValue) -> Mapping[str, object]:
    """A field with its origin: where it stands, who read it, how sure. What is unsure is no value, but a
    candidate for a person to look at."""
    span = value.span
    written = None if span is None else span.of(event.text)
    sure = value.null is not Null.UNSURE
    return {
        "value": written if sure else None,
        **({} if sure or written is None else {"candidate": written}),
        "span": None if span is None else [span.start, span.end],
        "null": None if value.null is None else str(value.null),
        "normalised": value.normalised,
        "origin": value.origin,
        "tier": str(value.tier),
        "confidence": round(value.confidence, 4),
    }


def _choice(choice: Choice) -> Mapping[str, object]:
    return {
        "label": None if choice.label is None else str(choice.label),
        "tier": str(choice.tier),
        "confidence": round(choice.confidence, 4),
        "rule": choice.rule,
    }


def _iso(us: int) -> str:
    time: datetime = from_us(us)
    return time.isoformat().replace("+00:00", "Z")
