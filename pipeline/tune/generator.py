"""Synthetic lines with their labels: a format, filled in at random, the same for the same seed."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pipeline.tune import values
from pipeline.tune.grammar import QUANTITIES, Format, Message, Slot, load, parse
from schemas.extraction import Severity, Span

# "The most specific named equipment": a component before its machine before the host that logged.
DEVICE_ORDER = ("device", "unit", "host")
LOWER_LEVEL_SHARE = 0.12  # of lines whose level word says less than their message means
# "{level}" is the word that says how bad it is; a fill level always states its unit, or "#".
LEVEL = Slot("level")


@dataclass(frozen=True, slots=True)
class Line:
    """A line and what is true of it. `values` maps a kind ("device", "temperature", ...) to its span."""

    text: str
    format: str
    values: dict[str, Span]
    severity: Severity | None
    """None where nobody said."""
    category: str


@dataclass(slots=True)
class _Draft:
    chance: random.Random
    format: Format
    message: Message
    text: str = ""
    spans: dict[str, Span] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)

    def write(self, pieces: Sequence[str | Slot]) -> None:
        for piece in pieces:
            if isinstance(piece, str):
                self.text += piece
            elif piece.kind == "message":
                self.write(parse(self.message.text))
            else:
                self.put(piece)

    def put(self, slot: Slot) -> None:
        start = len(self.text)
        written, after = self.choose(slot)
        self.text += written + after
        if slot.words or slot.again or not slot.kind:
            return
        if slot.counts:
            self.written.setdefault(slot.kind, written)
        if slot.counts and slot.form != "lost" and slot.kind != "time" and slot != LEVEL:
            self.spans.setdefault(slot.kind, Span(start, start + len(written)))

    def choose(self, slot: Slot) -> tuple[str, str]:
        """What is written into the slot, and the unit after it."""
        if slot.words:
            return self.chance.choice(slot.words), ""
        if slot.again:
            return self.written.get(slot.kind, ""), ""
        if slot.kind in QUANTITIES and slot != LEVEL:
            return values.quantity(self.chance, slot.kind, slot.form, self.format.language)
        match slot.kind:
            case "time" if slot.counts:
                return values.time(self.chance, self.chance.choice(self.format.time)), ""
            case "level":
                return values.level(self.chance, self.level(), self.format.level), ""
            case kind if slot.form and slot.form not in ("#", "raw", "lost"):
                return values.named(self.chance, kind, self.pool(kind)), " " + slot.form
            case kind:
                return values.named(self.chance, kind, self.pool(kind)), ""

    def level(self) -> Severity:
        lower = [one for one in Severity if one.rank < self.message.severity.rank]
        if lower and self.chance.random() < LOWER_LEVEL_SHARE:
            return self.chance.choice(lower)
        return self.message.severity

    def pool(self, kind: str) -> list[str]:
        own = self.format
        pools = {"device": own.devices, "unit": own.units, "host": own.hosts, "error_code": own.codes}
        return pools.get(kind, [])

    def finish(self) -> Line:
        spans = {kind: span for kind, span in self.spans.items() if kind not in DEVICE_ORDER}
        for kind in DEVICE_ORDER:
            if kind in self.spans:
                spans["device"] = self.spans[kind]
                break
        return Line(self.text, self.format.name, spans, self.message.severity, self.message.category)


class Generator:
    """Lines without end. The same formats and seed give the same lines on every machine."""

    def __init__(self, seed: int, formats: Sequence[Format] | None = None) -> None:
        self._chance = random.Random(seed)
        self._formats = list(formats) if formats is not None else load()

    def line(self) -> Line:
        one = self._chance.choice(self._formats)
        return write(one, self._chance.choice(one.messages), self._chance)

    def __iter__(self) -> Iterator[Line]:
        while True:
            yield self.line()


def write(one: Format, message: Message, chance: random.Random) -> Line:
    """One line of a format with that message."""
    draft = _Draft(chance, one, message)
    draft.write(parse(chance.choice(one.lines)))
    return draft.finish()


def main() -> None:
    """Checks the formats and prints a line of every tenth message, for whoever writes them."""
    chance = random.Random(1)
    formats = load()
    for one in formats:
        for form in one.time:
            if form not in values.TIME_FORMS:
                print(f"{one.name}: no time form {form!r}", file=sys.stderr)
        for message in one.messages:
            line = write(one, message, chance)
            if chance.random() < 0.1:
                told = {kind: span.of(line.text) for kind, span in line.values.items()}
                print(f"{line.text}\n    {message.severity.value} {line.category} {told}")
    print(f"{len(formats)} formats, {sum(len(one.messages) for one in formats)} messages")


if __name__ == "__main__":
    main()
