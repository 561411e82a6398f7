"""Free text: order numbers, operators, recipes, messages; what is no measurement, code or asset.

Also finds, for every field that is a name of some kind, what stands behind the field's own words: for a field
"operator: who acknowledged the alarm" the word after "operator" or "acknowledged".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from pipeline.fields import lexicon
from pipeline.fields.definition import FieldConfig, Profile
from pipeline.fields.line import Line
from pipeline.fields.values import Context, Normalised
from schemas.extraction import Candidate, FieldType, Span

_TYPES = frozenset({FieldType.TEXT})
_NAMES = (FieldType.TEXT, FieldType.CODE, FieldType.ASSET)  # types whose values no unit and no shape betrays
_MESSAGE = re.compile(r"(?:[\]:|]\s|\s-\s)(?P<text>[^\r\n]{1,200})$")
_MESSAGE_WINDOW = 240  # characters at the end of the line that the message is looked for in
_WORD_MIN = 3  # shorter words of a field's name say nothing
# Words of names and descriptions that are about fields, not about what they hold.
_ABOUT_FIELDS = frozenset(
    "the and for with that this from number name value code text field line person which who what when was "
    "were has written der die das und von mit aus nummer wert feld zeile text 编号 名称 的".split()
)


def recognise(line: Line, profile: Profile | None = None) -> Iterator[Candidate]:
    """Values of keys, quoted strings, tags, the message at the end: where the profile has a text field."""
    if profile is not None:
        yield from _led_by_field(line, profile)
    if profile is None or any(config.type is FieldType.TEXT for config in profile.fields.values()):
        for start, end, form, weight in _texts(line):
            span = line.trim(start, end)
            if span is not None and not line.is_taken(span.start, span.end):
                yield Candidate(span, _TYPES, weight=weight, form=form)


def _texts(line: Line) -> Iterator[tuple[int, int, str, float]]:
    for pair in line.pairs:
        if pair.value.of(line.text) in ("{", "["):
            continue
        yield pair.value.start, pair.value.end, "key", 0.4
        if pair.phrase != pair.value:
            yield pair.phrase.start, pair.phrase.end, "key", 0.4
    for span in line.quoted:
        if not line.is_object_key(span):
            yield span.start, span.end, "quoted", 0.4
    for span in line.tokens:
        raw = span.of(line.text)
        if len(raw) > 2 and any(char.isdigit() for char in raw) and any(char.isalpha() for char in raw):
            yield span.start, span.end, "tag", 0.3
    message = _MESSAGE.search(line.text, max(0, len(line.text) - _MESSAGE_WINDOW))
    if message is not None:
        yield (*message.span("text"), "message", 0.2)


def _led_by_field(line: Line, profile: Profile) -> Iterator[Candidate]:
    for name, config in profile.fields.items():
        expression = _leading(name, config.description) if config.type in _NAMES else None
        for match in expression.finditer(line.text) if expression is not None else ():
            span = line.trim(*match.span("value"))
            if span is not None and not line.is_taken(span.start, span.end) and _says_something(span, line):
                weight = 0.5 if any(char.isdigit() for char in span.of(line.text)) else 0.35
                yield Candidate(span, frozenset({config.type}), weight=weight, form="field_word")


def _says_something(span: Span, line: Line) -> bool:
    raw = span.of(line.text).lower()
    return raw not in lexicon.words("assets", "stop") and any(char.isalnum() for char in raw)


@lru_cache(maxsize=256)
def _leading(name: str, description: str) -> re.Pattern[str] | None:
    """The words of a field's name and description, and what may follow them."""
    words = re.findall(r"[^\W\d_]+", f"{lexicon.plain(name)} {description.lower()}")
    telling = {word for word in words if (len(word) >= _WORD_MIN or ord(word[0]) > 0x2E80)} - _ABOUT_FIELDS
    if not telling:
        return None
    return re.compile(
        rf"(?<![^\W\d_])(?:{lexicon.alternatives(telling)})(?:[\s_]?(?:no|nr|id|name|number)\.?)?"
        r"[\"']?[\s:=：#]{1,3}[\"'\[(]?(?P<value>[^\s,;|{}()\[\]<>\"'=:：，；。]{1,60})",
        re.IGNORECASE,
    )


def normalise(raw: str, config: FieldConfig, context: Context) -> Normalised:
    """The text with its runs of blanks made one."""
    return Normalised(" ".join(raw.split()))
