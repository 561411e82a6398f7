"""Quantities: numbers that measure something, with the unit beside them or in a neighbouring key.

Also finds the plain numbers, since any number without a unit may be the value of a quantity.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from pipeline.fields import lexicon, number, units
from pipeline.fields.definition import FieldConfig, Profile
from pipeline.fields.line import Line
from pipeline.fields.values import Context, Normalised
from schemas.extraction import Candidate, FieldType, Span

# Units of another quantity that measure this one too, by their names in units.yaml: a speed in mm/s.
SHARED = {
    "speed": frozenset({"mm/s", "inch/s"}),
    "vibration": frozenset({"m/s", "m/s**2", "micrometer", "millimeter", "inch/s", "standard_gravity"}),
    "acceleration": frozenset({"standard_gravity"}),
}

_TYPES = frozenset({FieldType.QUANTITY, FieldType.NUMBER})
UNASKED = 0.15  # weight of a number whose words say it measures what no field of the profile does
# Symbols that are also words or letters: behind a blank they are units only where nothing says otherwise.
_ENGLISH = frozenset(("in", "min"))
# Where a clause ends behind such a letter, it is no word of what follows: `press cycle 12.3 s, peak 170 bar`.
_CLAUSE_END = re.compile(r"\s*(?:$|[,;)\]}\n]|\.(?:\s|$))")
_DOUBTFUL = frozenset("in min m h s d g t l L G B N pc ft times events".split())


@lru_cache(maxsize=64)
def _unit_pattern(own: frozenset[str] = frozenset()) -> re.Pattern[str]:
    """Any unit of the table, or one of the profile's `own`, right behind a number."""
    names = lexicon.alternatives([*units.symbols(), *own])
    return re.compile(rf"(?P<gap>\s{{0,2}})[\[(]?(?P<unit>{names})(?![A-Za-zÀ-ɏ0-9_²³/%°]|\s?=)")


def recognise(line: Line, profile: Profile | None = None) -> Iterator[Candidate]:
    """Numbers with what is known of their unit, and the words that stand where a number should."""
    wanted, own = dimensions(profile), _own_units(profile)
    for match in line.matches(number.FIND):
        has_unit = _unit_pattern(own).match(line.text, match.end()) is not None
        whole = number.spans(line.text, match, has_unit)
        for span in whole:
            candidate = _candidate(line, span, wanted, own, part=span != whole[0])
            if candidate is not None:
                yield candidate
    yield from _sentinels(line, wanted)


def _own_units(profile: Profile | None) -> frozenset[str]:
    """Units of the profile that the table does not have."""
    fields = profile.fields.values() if profile is not None else ()
    return frozenset(config.unit for config in fields if config.unit and units.lookup(config.unit) is None)


def dimension_of(config: FieldConfig, name: str = "") -> str | None:
    """What a quantity field measures: by its unit, else by the words of its name and description."""
    return _dimension(config.unit, name, config.description)


@lru_cache(maxsize=1024)
def _dimension(unit: str | None, name: str, description: str) -> str | None:
    said = lexicon.dimension(name) or lexicon.described_dimension(description)
    meant = units.dimension(unit) if unit else None
    return said if meant is None or (unit and said and _measures(unit, said)) else meant


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
    """Whether the candidate's unit allows the field: it measures the field's quantity, or there is none."""
    wanted = dimension_of(config, name)
    if (
        candidate.dimension is None
        or config.type is FieldType.NUMBER
        or wanted in (None, candidate.dimension)
    ):
        return True
    return candidate.unit is not None and wanted is not None and _measures(candidate.unit, wanted)


def _measures(unit: str, dimension: str) -> bool:
    """Whether values of the quantity may be written in this unit."""
    known = units.lookup(unit)
    return known is not None and (known.dimension == dimension or known.pint in SHARED.get(dimension, ()))


def _candidate(
    line: Line, span: Span, wanted: frozenset[str] | None, own: frozenset[str], part: bool
) -> Candidate | None:
    label = line.label(span.start)
    named = lexicon.dimension(label)
    unit = unit_beside(line, span, named, own)
    if unit is None and _is_part_of_word(line, span):
        return None
    dimension = _measured(unit, named)
    if unit is not None and dimension is not None and not _is_wanted(dimension, unit, wanted):
        return None
    raw = span.of(line.text)
    read = number.parse(raw).value
    sentinel = isinstance(read, float) and number.is_sentinel(read, dimension or named)
    raw_count = unit is None and _is_raw(label) and not line.is_bracketed(span.start - len(label))
    form = "sentinel" if sentinel else "raw_count" if raw_count else "number"
    weight = _weight(unit, named, label, raw, line, span) * (0.8 if part else 1.0)
    if unit is None and named is not None and wanted is not None and named not in wanted:
        weight = UNASKED
    return Candidate(span, _TYPES, unit, dimension, sentinel or raw_count, weight, form, named)


def _is_wanted(dimension: str, unit: str, wanted: frozenset[str] | None) -> bool:
    return wanted is None or dimension in wanted or any(_measures(unit, name) for name in wanted)


def _measured(unit: str | None, named: str | None) -> str | None:
    """What the number measures by its unit; where that measures several things, what the words say."""
    known = units.lookup(unit) if unit else None
    if unit is None or known is None:
        return None
    return named if named is not None and _measures(unit, named) else known.dimension


def unit_beside(
    line: Line, span: Span, named: str | None = None, own: frozenset[str] = frozenset()
) -> str | None:
    """The unit after the number, in a neighbouring key ("unit": "V"), or at the end of its own key (temp_c).

    `named` is what the words before the number say it measures: it settles "Temperature 58 min 20", and
    to which of two values in one object a unit belongs.
    """
    match = _unit_pattern(own).match(line.text, span.end)
    if match is not None:
        unit = match.group("unit")
        doubtful = match.group("gap") and unit in _DOUBTFUL and not _agrees(unit, named)
        if not doubtful or (unit not in _ENGLISH and _CLAUSE_END.match(line.text, match.end())):
            return unit
    pair = line.pair_at.get(span.start)
    if pair is None:
        return None
    sibling = line.sibling(pair, "unit_keys")
    if sibling is not None and (units.lookup(sibling) or sibling in own) and _agrees(sibling, named):
        return sibling
    ending = units.of_key(pair.key)
    return ending if ending is not None and _agrees(ending, named) else None


def _agrees(unit: str, named: str | None) -> bool:
    """Whether a unit can be meant for a value named so; "in" is English before it is an inch."""
    if named is None or units.lookup(unit) is None:
        return unit not in _ENGLISH
    return _measures(unit, named)


def _is_part_of_word(line: Line, span: Span) -> bool:
    """3rd, 12ab, 0x1F: digits with letters behind that are no unit. Chinese may follow without a blank."""
    after = line.text[span.end : span.end + 1]
    return after == "_" or (after.isalpha() and ord(after) < 0x2E80)


@lru_cache(maxsize=4096)
def _is_raw(label: str) -> bool:
    """Whether a label says that this is a count of the converter."""
    words = set(re.split(r"\W+", lexicon.plain(label)))
    return not words.isdisjoint(lexicon.words("sentinels", "raw_keys"))


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
        if named is not None and (wanted is None or named in wanted):
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
