"""decode: lines that join into records, also across messages of one topic. A record is one event."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import re2

from connectors.base import Multiline
from schemas.events import EventId

# What continues a record in the stack traces of Java, Python and .NET though it is not indented.
_CONTINUES = ("Caused by:", "Suppressed:", "}", ")", "]")


@dataclass(frozen=True, slots=True)
class OpenRecord:
    """A record that may still grow. `id` is its first line's; `touched_at` when its last line came."""

    topic: str
    id: EventId
    text: str
    lines: int
    received_at: datetime
    touched_at: datetime
    retain: bool = False


class Joiner:
    """The open records of one source, one a topic."""

    def __init__(self, rule: Multiline | None, line_chars: int) -> None:
        rule = rule or Multiline(start=r"^\S")
        self._flush = timedelta(seconds=rule.flush_s)
        self._max_lines = rule.max_lines
        self._max_chars = line_chars
        self._starts = _starter(rule)
        self._open: dict[str, OpenRecord] = {}

    @property
    def records(self) -> tuple[OpenRecord, ...]:
        return tuple(self._open.values())

    def restore(self, records: Iterable[OpenRecord]) -> None:
        self._open = {record.topic: record for record in records}

    def expired(self, now: datetime, topic: str | None = None) -> list[OpenRecord]:
        """Close and return the records that were silent for `flush_s`: of one topic, or all."""
        done = [
            record
            for record in self._open.values()
            if (topic is None or record.topic == topic) and now - record.touched_at >= self._flush
        ]
        for record in done:
            del self._open[record.topic]
        return done

    def close(self) -> list[OpenRecord]:
        """Close and return every record (end of a file)."""
        done = list(self._open.values())
        self._open.clear()
        return done

    def add(self, line: str, begun: OpenRecord) -> tuple[OpenRecord | None, EventId | None]:
        """Take one line; `begun` is the record it would begin.

        Returns the record it closes, if any, and the id of the record it is a part of (None: it began one).
        """
        open_record = self._open.get(begun.topic)
        if open_record is not None and self._continues(open_record, line):
            self._open[begun.topic] = replace(
                open_record,
                text=f"{open_record.text}\n{line}",
                lines=open_record.lines + 1,
                touched_at=begun.touched_at,
            )
            return None, open_record.id
        self._open[begun.topic] = begun
        return open_record, None

    def _continues(self, record: OpenRecord, line: str) -> bool:
        return (
            not self._starts(line)
            and record.lines < self._max_lines
            and len(record.text) + 1 + len(line) <= self._max_chars
        )


def _starter(rule: Multiline) -> Callable[[str], bool]:
    pattern: Any = re2.compile(rule.start)
    if rule.start == r"^\S":
        return lambda line: pattern.search(line) is not None and not line.startswith(_CONTINUES)
    return lambda line: pattern.search(line) is not None
