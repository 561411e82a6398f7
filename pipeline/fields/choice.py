"""Choices: one of the words that the field's definition lists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from pipeline.fields import lexicon
from pipeline.fields.definition import FieldConfig, Profile
from pipeline.fields.line import Line
from pipeline.fields.values import Context, Normalised
from schemas.extraction import Candidate, FieldType, Span

_TYPES = frozenset({FieldType.CHOICE})


def recognise(line: Line, profile: Profile | None = None) -> Iterator[Candidate]:
    """The listed words, wherever they stand as whole words, in any case."""
    if profile is None:
        return
    listed = {word for c in profile.fields.values() if c.type is FieldType.CHOICE for word in c.choices or ()}
    expression = _pattern(tuple(sorted(listed)))
    if expression is None:
        return
    for match in expression.finditer(line.text):
        if not line.is_taken(*match.span()):
            yield Candidate(Span(*match.span()), _TYPES, weight=0.8, form="choice")


@lru_cache(maxsize=64)
def _pattern(words: tuple[str, ...]) -> re.Pattern[str] | None:
    return lexicon.pattern(words) if words else None


def normalise(raw: str, config: FieldConfig, context: Context) -> Normalised:
    """The listed word as the definition spells it."""
    folded = raw.casefold()
    for word in config.choices or ():
        if word.casefold() == folded:
            return Normalised(word)
    return Normalised(raw, None, "unknown_choice")
