"""Everything the stages hold for one source: how its messages are decoded, matched, read and judged."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo

from sqlalchemy import Connection

from pipeline.fields import Labels, Profile
from pipeline.stages import dedupe
from pipeline.stages.decode import Decoder
from pipeline.stages.dedupe import Folded, Redelivery
from pipeline.stages.judge import Judge
from pipeline.store import seen
from pipeline.store.codec import to_us
from schemas.events import LogLine, Message
from schemas.ticket import Settlement


@dataclass(frozen=True, slots=True)
class Feed:
    """One source's way through the stages. The settle lane's thread owns `decoder` and `redelivery`; the
    rest is pure.

    `redelivery` is None for sources that never redeliver (files). `content_window_us` is 0 where equal
    lines are never one.
    """

    source: str
    profile_name: str
    profile: Profile
    labels: Labels
    timezone: tzinfo
    decoder: Decoder
    judge: Judge
    redelivery: Redelivery | None = None
    content_window_us: int = 0

    def repeat_of(self, connection: Connection, message: Message) -> Settlement | None:
        """How a redelivered message is settled; None for a new one."""
        if self.redelivery is None:
            return None
        if not self.redelivery.knows(message):
            before = dedupe.history(connection, message, self.redelivery.receive_maximum)
            self.redelivery.begin(message.connection, before)
        return self.redelivery.repeat_of(message)

    def fold(self, connection: Connection, lines: list[LogLine]) -> Folded:
        """Lines that have come before, by content and event time."""
        dated = dedupe.dated(lines) if self.content_window_us else []
        if not dated:
            return Folded()
        # Counted from arrival, not from now: a backlog may be longer than the window.
        since_us = min(to_us(line.received_at) for line, _ in dated) - self.content_window_us
        known = seen.find(connection, [digest for _, digest in dated], since_us)
        return dedupe.fold(dated, known)
