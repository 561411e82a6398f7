"""Free text: order numbers, operators, recipes, messages; whatever a field names that is no measurement, code or asset."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pipeline.fields.definition import FieldConfig, Profile
from pipeline.fields.line import Line
from pipeline.fields.values import Context, Normalised
from schemas.extraction import Candidate, FieldType

_TYPES = frozenset({FieldType.TEXT})
_MESSAGE = re.compile(r"(?:^|[\]:|]\s)(?P<text>[^\r\n]{1,400})$")


def recognise(line: Line, profile: Profile | None = None) -> Iterator[Candidate]:
    """Values of keys, what stands in quotes, and the message at the end; only where the profile has a text field."""
    if profile is not None and all(config.type is not FieldType.TEXT for config in profile.fields.values()):
        return
    for pair in line.pairs:
        for span in {pair.value, pair.phrase}:
            if span.of(line.text) not in ("{", "["):
                yield Candidate(span, _TYPES, weight=0.45, form="key")
    for span in line.quoted:
        if not line.is_object_key(span):
            yield Candidate(span, _TYPES, weight=0.4, form="quoted")
    for span in line.tokens:
        raw = span.of(line.text)
        if len(raw) > 2 and any(char.isdigit() for char in raw) and any(char.isalpha() for char in raw):
            yield Candidate(span, _TYPES, weight=0.3, form="tag")


def normalise(raw: str, config: FieldConfig, context: Context) -> Normalised:
    """The text with its runs of blanks made one."""
    return Normalised(" ".join(raw.split()))
