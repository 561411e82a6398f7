"""From scores to values: each field gets the best candidate that is likelier than null, each candidate one
field.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.model.scene import Option
from schemas.extraction import FieldValue, Null, Tier

# Below even odds a field is null; within this much of it a person is asked (odds 1:2).
UNSURE_ODDS = 0.5
LARGEST = 12.0  # log-odds beyond which a probability is 1 in every way that matters


@dataclass(frozen=True, slots=True)
class Scale:
    """Makes a rule's score a log-odds that holds; fitted on lines of our own systems."""

    shift: float
    slope: float

    def of(self, score: float) -> float:
        return self.shift + self.slope * score


RULE_SCALE = Scale(shift=0.0, slope=1.3)


def settle(text: str, table: Mapping[str, Sequence[Option]], tier: Tier) -> dict[str, FieldValue]:
    """Values for all fields of `table`. The confidence is the chosen option's share of the odds; null has
    odds 1.
    """
    given = _assign(table)
    return {name: _value(text, options, given.get(name), tier) for name, options in table.items()}


def _assign(table: Mapping[str, Sequence[Option]]) -> dict[str, Option]:
    """Best pairs first; a span that a field has taken is not another field's value."""
    pairs = sorted(
        (
            (option.score, name, option)
            for name, options in table.items()
            for option in options
            if option.score > 0
        ),
        key=lambda pair: (-pair[0], pair[2].candidate.span, pair[1]),
    )
    given: dict[str, Option] = {}
    for _, name, option in pairs:
        span = option.candidate.span
        if name not in given and not any(span.overlaps(other.candidate.span) for other in given.values()):
            given[name] = option
    return given


def _odds(text: str, options: Sequence[Option]) -> list[float]:
    """One entry a distinct text: a name that stands twice is not its own rival."""
    best: dict[str, float] = {}
    for option in options:
        written = option.candidate.span.of(text)
        best[written] = max(best.get(written, -LARGEST), min(option.score, LARGEST))
    return [math.exp(score) for score in best.values()]


def _value(text: str, options: Sequence[Option], chosen: Option | None, tier: Tier) -> FieldValue:
    odds = _odds(text, options)
    whole = 1.0 + sum(odds)
    if chosen is None:
        best = max(odds, default=0.0)
        null = Null.UNSURE if UNSURE_ODDS <= best <= 1.0 else Null.ABSENT
        return FieldValue(null=null, confidence=1.0 / whole, tier=tier)
    confidence = math.exp(min(chosen.score, LARGEST)) / whole
    bad = Null.BAD if chosen.candidate.bad else None
    return FieldValue(span=chosen.candidate.span, null=bad, confidence=confidence, tier=tier)
