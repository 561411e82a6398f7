"""From a synthetic line to what the model is shown and what it should answer: the reader's own prompt, no
copy of it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.model.prompt import NONE, Ask, Layout, Tokens
from pipeline.model.reader import rows, times
from pipeline.model.rules import look
from pipeline.tune.generator import Generator, Line
from pipeline.tune.grammar import Format
from pipeline.tune.schemas import Schema, draw

LINE_CHARS_MAX = 400  # longer lines cost much and teach little
CORRECTED_SHARE = 0.5  # of the lines under the site's own schema, when people have corrected any
ROUND = 8  # batches that are made and mixed together


@dataclass(frozen=True, slots=True)
class Sample:
    """One line's tokens, where answers stand, and for each the tokens of its options and which one is
    right."""

    tokens: tuple[int, ...]
    positions: tuple[int, ...]
    options: tuple[tuple[int, ...], ...]
    answers: tuple[int, ...]
    decisions: frozenset[int]
    """The positions that are decisions."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Samples under one head."""

    head: tuple[int, ...]
    samples: tuple[Sample, ...]


def sample(line: Line, schema: Schema, layout: Layout) -> Sample:
    """The prompt's part for the line, with the right option of every row."""
    view = look(line.text, schema.profile, schema.labels)
    body = layout.body(line.text, rows(view), times(view))
    wanted = {
        name: line.values[kind].of(line.text) for name, kind in schema.fields.items() if kind in line.values
    }
    asks = [(ask, answer) for ask in body.asks if (answer := _answer(ask, line, schema, wanted)) is not None]
    return Sample(
        body.tokens,
        tuple(ask.position for ask, _ in asks),
        tuple(tuple(layout.option_tokens(ask)) for ask, _ in asks),
        tuple(ask.options.index(answer) for ask, answer in asks),
        frozenset(ask.position for ask, _ in asks if ask.decision),
    )


def _answer(ask: Ask, line: Line, schema: Schema, wanted: dict[str, str]) -> str | None:
    """The right option; None where nobody can say (an action that no category calls for)."""
    match ask.decision:
        case "severity":
            return line.severity.value if line.severity is not None else None
        case "category":
            return schema.categories.get(line.category)
        case "action":
            return schema.actions.get(line.category)
    written = ask.candidate.span.of(line.text) if ask.candidate is not None else ""
    return next((name for name in ask.options if wanted.get(name) == written), NONE)


@dataclass(frozen=True, slots=True)
class Course:
    """What a run is taught, batch by batch. The same course gives the same batches, from any one of them
    on."""

    formats: Sequence[Format]
    own: Schema
    tokens: Tokens
    seed: int
    size: int
    own_share: float = 0.3
    """Of the schemas: `own`, in its own words."""
    corrected: Sequence[Line] = ()
    """Lines that people have read, under the field names of `own`."""

    def batches(self, begin: int = 0) -> Iterator[Batch]:
        """Batches without end, from number `begin` on."""
        number, skip = divmod(begin, ROUND)
        while True:
            yield from self._round(number)[skip:]
            number, skip = number + 1, 0

    def _round(self, number: int) -> list[Batch]:
        """Two schemas with half of the round each, mixed: one head many times in a row would teach the
        head."""
        chance = random.Random(f"{self.seed}/{number}")
        generator = Generator(chance.randrange(2**63), self.formats)
        made = [batch for _ in range(2) for batch in self._under_one_head(generator, chance)]
        chance.shuffle(made)
        return made

    def _under_one_head(self, generator: Generator, chance: random.Random) -> list[Batch]:
        schema = self.own if chance.random() < self.own_share else draw(chance)
        corrected = self.corrected if schema is self.own else ()
        layout = Layout(schema.profile, schema.labels, self.tokens)
        half = ROUND // 2
        made = [sample(_line(generator, corrected, chance), schema, layout) for _ in range(half * self.size)]
        # Lines of a batch have about the same length, so that little is padded.
        made.sort(key=lambda one: len(one.tokens))
        return [Batch(layout.head, tuple(made[n * self.size : (n + 1) * self.size])) for n in range(half)]


def _line(generator: Generator, corrected: Sequence[Line], chance: random.Random) -> Line:
    if corrected and chance.random() < CORRECTED_SHARE:
        return chance.choice(corrected)
    while len((line := generator.line()).text) > LINE_CHARS_MAX:
        pass
    return line
