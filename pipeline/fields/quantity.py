"""Quantities: numbers that measure something, with the unit beside them or in a neighbouring key.

Also finds the plain numbers, since any number without a unit may be the value of a quantity.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache

from pipeline.fields import lexicon, number, units
from pipeline.fields.definition import FieldConfig, Profile
from pipeline.fields.line import Line
from pipeline.fields.values import Context, Normalised
from schemas.extraction import Candidate, FieldType, Span

# Quantities that a unit of another may measure: a speed in mm/s, a vibration in g or µm.
SHARED = {
    "speed": {"vibration"},
    "vibration": {"speed", "length", "mass", "acceleration"},
    "acceleration": {"mass", "vibration"},
}

_TYPES = frozenset({FieldType.QUANTITY, FieldType.NUMBER})
_NEXT = re.compile(r"[\"']?\s?")


@cache
def _unit_pattern() -> re.Pattern[str]:
    names = lexicon.alternatives(units.symbols())
    return re.compile(rf"(?P<gap>\s{{0,2}})[\[(]?(?P<unit>{names})(?![A-Za-zÀ-ɏ0-9_²³/%°])")


def recognise(line: Line, profile: Profile | None = None) -> Iterator[Candidate]:
    """Numbers with what is known of their unit, and the words that stand where a number should."""
    wanted = dimensions(profile)
    for match in number.FIND.finditer(line.text):
        if line.is_taken(*match.span()):
            continue
        whole = number.spans(line.text, match)
        for span in whole:
            candidate = _candidate(line, span, wanted, part=span != whole[0])
            if candidate is not None:
                yield candidate
    yield from _sentinels(line, wanted)


def dimension_of(config: FieldConfig, name: str = "") -> str | None:
    """What a quantity field measures: by its unit, else by the words of its name and description."""
    return _dimension(config.unit, name, config.description)


@lru_cache(maxsize=1024)
def _dimension(unit: str | None, name: str, description: str) -> str | None:
    said = lexicon.dimension(name) or lexicon.dimension(description)
    meant = units.dimension(unit) if unit else None
    return said if meant is None or (said is not None and meant in SHARED.get(said, ())) else meant


def dimensions(profile: Profile | None) -> frozenset[str] | None:
    """What the profile's quantities measure; None when everything may be wanted."""
    if profile is None:
        return None
    found: set[str] = set()
    for name, config in profile.fields.items():
        if config.type is FieldType.NUMBER:
            return None
        if config.type is FieldType.QUANTITY:
            dimension = dimension_of(config, name)
            if dimension is None:
                return None
            found.add(dimension)
    return frozenset(found)


def fits(candidate: Candidate, name: str, config: FieldConfig) -> bool:
    """Whether the candidate's unit lets it be a value of the field: the same quantity, one that shares its units, or no unit."""
    if candidate.dimension is None or config.type is FieldType.NUMBER:
        return True
    wanted = dimension_of(config, name)
    return wanted is None or candidate.dimension == wanted or candidate.dimension in SHARED.get(wanted, ())


def _candidate(line: Line, span: Span, wanted: frozenset[str] | None, part: bool) -> Candidate | None:
    unit = unit_beside(line, span)
    if unit is None and _is_part_of_word(line, span):
        return None
    label = line.label(span.start)
    named = lexicon.dimension(label)
    dimension = _measured(unit, named)
    if wanted is not None and not _is_wanted(dimension or named, wanted):
        return None
    raw = span.of(line.text)
    form = "raw_count" if _is_raw(label) and unit is None else "number"
    read = number.parse(raw).value
    sentinel = isinstance(read, float) and number.is_sentinel(read, dimension or named)
    weight = _weight(unit, named, label, raw, line, span)
    if part:
        weight *= 0.8
    return Candidate(
        span,
        _TYPES,
        unit,
        dimension,
        sentinel or form == "raw_count",
        weight,
        "sentinel" if sentinel else form,
        named,
    )


def _is_wanted(dimension: str | None, wanted: frozenset[str]) -> bool:
    return (
        dimension is None or dimension in wanted or any(dimension in SHARED.get(name, ()) for name in wanted)
    )


def _measured(unit: str | None, named: str | None) -> str | None:
    known = units.lookup(unit) if unit else None
    if known is None:
        return None
    return named if named is not None and known.dimension in SHARED.get(named, ()) else known.dimension


def unit_beside(line: Line, span: Span) -> str | None:
    """The unit after the number, in a neighbouring key ("unit": "V"), or at the end of its own key (temp_c)."""
    match = _unit_pattern().match(line.text, span.end)
    if match is not None:
        return match.group("unit")
    pair = line.pair_at.get(span.start)
    if pair is None:
        return None
    sibling = line.sibling(pair, "unit_keys")
    known = units.lookup(sibling) if sibling is not None else None
    if known is not None and _agrees(known.dimension, lexicon.dimension(line.label(span.start))):
        return sibling
    return units.of_key(pair.key)


def _agrees(dimension: str, named: str | None) -> bool:
    """Whether a neighbouring unit can be meant for a value named so: of two values in one object it may belong to the other."""
    return named is None or dimension == named or dimension in SHARED.get(named, ())


def _is_part_of_word(line: Line, span: Span) -> bool:
    """3rd, 12ab, 0x1F: digits with letters behind them that are no unit. Chinese may follow a number without a blank."""
    after = line.text[span.end : span.end + 1]
    return after == "_" or (after.isalpha() and ord(after) < 0x2E80)


@lru_cache(maxsize=4096)
def _is_raw(label: str) -> bool:
    """Whether a label says that the number is a count of the converter; "[Raw 31]" is a value that was told apart from a score."""
    words = set(re.split(r"\W+", lexicon.plain(label)))
    return "[" not in label and not words.isdisjoint(lexicon.words("sentinels", "raw_keys"))


def is_setpoint(label: str) -> bool:
    """Whether the words before a number say that it is a setpoint, limit, rating or statistic."""
    return lexicon.is_setpoint(label)


def _weight(unit: str | None, named: str | None, label: str, raw: str, line: Line, span: Span) -> float:
    weight = 0.3
    if unit is not None:
        weight = 0.85
    elif named is not None:
        weight = 0.7
    elif span.start in line.pair_at:
        weight = 0.4
    if is_setpoint(label):
        weight *= 0.6
    if len(raw) > 7 and raw.isdigit():
        weight *= 0.5
    return weight


def _sentinels(line: Line, wanted: frozenset[str] | None) -> Iterator[Candidate]:
    for pair in line.pairs:
        if not number.is_sentinel_word(pair.value.of(line.text)) or line.is_taken(
            pair.value.start, pair.value.end
        ):
            continue
        named = lexicon.dimension(line.label(pair.value.start))
        if named is not None and (wanted is None or _is_wanted(named, wanted)):
            yield Candidate(
                pair.value, _TYPES, units.of_key(pair.key), None, True, 0.45, "sentinel_word", named
            )


def normalise(raw: str, config: FieldConfig, context: Context, text: str = "") -> Normalised:
    """The number in the field's unit. A number without a unit is in the field's unit already."""
    read = number.parse(raw, context.convention, text)
    if not isinstance(read.value, float):
        return read
    dimension = dimension_of(config)
    if number.is_sentinel(read.value, dimension):
        return number.ranged(read, config, dimension)
    if context.unit is None or config.unit is None or context.unit == config.unit:
        return number.ranged(read, config)
    factors = units.factors(context.unit, config.unit)
    if factors is None:
        return Normalised(None, None, "wrong_unit")
    return number.ranged(Normalised(read.value * factors[0] + factors[1]), config)
