"""Short ways to make what flows through the stages, and a store in memory to apply it to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, Engine, StaticPool, create_engine

from connectors.base import SourceOptions
from pipeline.fields.definition import Labels, Profile
from pipeline.stages.alarm import Alarms
from pipeline.stages.change import Change
from pipeline.stages.decode import Decoded, Decoder
from pipeline.stages.facts import Facts
from pipeline.stages.options import Limits
from pipeline.stages.route import RouteConfig, Router
from pipeline.store import events, outbox, tables
from pipeline.store.codec import to_us
from schemas.events import Event, EventId, LogLine, Message, Reading
from schemas.extraction import Choice, Decision, Severity, Tier, Transition
from schemas.ticket import Settlement, Ticket

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")

LABELS = Labels(
    severities={severity: severity.value for severity in Severity},
    categories={"sensor_fault": "no reading", "process_alarm": "limit", "hardware_fault": "broken"},
    actions={"call_mechanic": "mechanics", "check_sensor": "sensor"},
)
PROFILE = Profile.model_validate(
    {
        "fields": {
            "timestamp": {"type": "timestamp", "description": "when"},
            "device": {"type": "asset", "description": "what"},
            "error_code": {"type": "code", "description": "code"},
            "temperature": {
                "type": "quantity",
                "description": "temperature",
                "unit": "°C",
                "range": [-40, 200],
            },
        }
    }
)


def message(payload: bytes, seq: int = 7, topic: str = "plant/p7/log", **given: Any) -> Message:
    return Message(seq, "line7", topic, payload, **{"received_at": NOW, **given})


def decoder(encoding: str | None = None, limits: Limits | None = None, **options: Any) -> Decoder:
    return Decoder("line7", SourceOptions(**options), limits or Limits(), BERLIN, encoding)


def decode(payload: bytes, topic: str = "plant/p7/log", **options: Any) -> Decoded:
    return decoder(**options).decode(message(payload, topic=topic))


def lines(decoded: Decoded) -> list[str]:
    return [event.text for event in decoded.events if isinstance(event, LogLine)]


def readings(decoded: Decoded) -> dict[str, float | None]:
    return {event.metric: event.value for event in decoded.events if isinstance(event, Reading)}


def ids(decoded: Decoded) -> list[EventId]:
    return sorted(
        [event.id for event in decoded.events]
        + [settlement.id for settlement in decoded.settled]
        + [refused.id for refused in decoded.undecodable]
    )


def line(text: str = "bearing hot", at: int | EventId = 1, **given: Any) -> LogLine:
    id_ = EventId(at, 0) if isinstance(at, int) else at
    values = {"received_at": NOW + timedelta(seconds=id_.seq), "topic": "plant/p7/log", **given}
    return LogLine(id=id_, source="line7", text=text, **values)


def reading(metric: str = "temp", value: float | None = 90.0, at: int | EventId = 1, **given: Any) -> Reading:
    id_ = EventId(at, 0) if isinstance(at, int) else at
    defaults = {"received_at": NOW + timedelta(seconds=id_.seq), "topic": "plant/p7", "written": str(value)}
    return Reading(id=id_, source="line7", metric=metric, value=value, **{**defaults, **given})


def change(event: Event, kind: str = "raise", **given: Any) -> Change:
    """What `event` does to the alarm (press, E207): `kind` is raise, clear or none."""
    severity = Choice(given.pop("severity", Severity.ERROR), 1.0, Tier.RULE)
    category = Choice(given.pop("category", None), 1.0, Tier.RULE)
    decision = Decision(severity=severity, category=category, transition=Transition(kind))
    values = {"facts": Facts("press", True), "cause": "E207", "live": True, "document": event.id, **given}
    return Change(event=event, decision=decision, **values)


class Plant:
    """The alarm stage on a store in memory, with what the settle lane does around it."""

    def __init__(self, routes: Sequence[RouteConfig] | None = None) -> None:
        self.engine = memory()
        default = [RouteConfig(id="all", sink="board")]
        self.alarms = Alarms(Router(default if routes is None else routes), site="hall-2")

    def reset(self) -> Plant:
        """As new, without making the tables again."""
        self.alarms.forget()
        with self.engine.begin() as connection:
            for table in (
                tables.openings,
                tables.clears,
                tables.events,
                tables.outbox,
                tables.reviews,
                tables.journal,
                tables.counters,
            ):
                connection.execute(table.delete())
        return self

    def apply(self, *changes: Change, fail: bool = False) -> list[Settlement]:
        """One transaction. With `fail` it rolls back at its very end, as a full disk makes it."""
        try:
            with self.engine.begin() as connection:
                settled = self.alarms.apply(connection, changes, to_us(NOW))
                _settle(connection, changes, settled)
                if fail:
                    raise OSError("disk full")
        except OSError:
            self.alarms.forget()
            return []
        return settled

    def rows(self, table: Any, *order: str) -> list[dict[str, Any]]:
        with self.engine.connect() as connection:
            query = table.select().order_by(*(table.c[name] for name in order or ("id",)))
            return [dict(row._mapping) for row in connection.execute(query)]

    def tickets(self) -> list[Ticket]:
        """Every ticket asked for, oldest first."""
        with self.engine.connect() as connection:
            return [row.intent.ticket for row in reversed(outbox.recent(connection, 1000))]


def memory() -> Engine:
    engine = create_engine("sqlite://", poolclass=StaticPool)
    tables.metadata.create_all(engine)
    return engine


def journaled(connection: Connection, messages: Iterable[Message]) -> None:
    """Put messages into the journal under their own seqs."""
    for each in messages:
        connection.execute(
            tables.journal.insert().prefix_with("OR IGNORE"),
            {
                "seq": each.seq,
                "source": each.source,
                "topic": each.topic,
                "payload": each.payload,
                "received_at_us": to_us(each.received_at),
                "qos": each.qos,
                "flags": 0,
                "mid": each.mid,
                "connection": each.connection,
            },
        )


def _settle(connection: Connection, changes: Sequence[Change], settled: Sequence[Settlement]) -> None:
    journaled(connection, [message(b"", each.id.seq, received_at=each.event.received_at) for each in changes])
    rows = [
        events.EventRow(
            id=done.id,
            source=each.event.source,
            kind=events.Kind.LINE if each.is_line else events.Kind.READING,
            state=done.outcome,
            reason=done.reason,
            opening_id=done.alarm_id,
            of=done.of,
        )
        for each, done in zip(changes, settled, strict=True)
    ]
    events.settle(connection, rows)
