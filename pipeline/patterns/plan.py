"""The plan of a pattern: where each field of the profile stands, so that a line is read without the model.

A plan is learnt from one line that somebody read: the model, the rules, or a person. It reads every line of
the same signature and returns spans of that line only. What the words of a pattern settle (unit, written form
of a time, decimal mark) is worked out when it is learnt, never per line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from pipeline.fields import Context, FieldConfig, Normalised, Profile, normalise, number, timestamp
from pipeline.fields.line import Line
from pipeline.fields.quantity import unit_beside
from pipeline.patterns.places import Place, place
from pipeline.patterns.signature import Signature
from schemas.extraction import Extraction, FieldType, FieldValue, Null, Span, Tier

_NUMERIC = frozenset({FieldType.QUANTITY, FieldType.NUMBER})
_PLAIN_NUMBER = re.compile(
    r"[-+]?[0-9]+(?:\.[0-9]{1,2}|\.[0-9]{4,})?"
)  # reads one way, whatever else the line holds
_MEMO_MAX = 512  # values of one field of one plan: measurements repeat


@dataclass(frozen=True, slots=True)
class FieldPlan:
    """How one field is read. `place` is None exactly when the field has no value in lines of this pattern;
    `null` says why.

    `null` with a place: *bad* is a value that this pattern never carries (a raw count), *unsure* is for a
    person.
    `digest` is that of the field's definition: another one makes this field, and only this one, stale.
    `unit`, `form` and
    `convention` are for the normaliser. `beside` is what must follow the value for `unit` to hold, when it
    has a digit.
    """

    place: Place | None
    null: Null | None
    confidence: float
    digest: str
    unit: str | None = None
    form: str = ""
    convention: str | None = None
    beside: str = ""

    def to_json(self) -> dict[str, Any]:
        row: dict[str, Any] = {"digest": self.digest, "confidence": round(self.confidence, 4)}
        if self.place is not None:
            row["place"] = self.place.to_json()
        if self.null is not None:
            row["null"] = str(self.null)
        row |= {name: getattr(self, name) for name in _OPTIONAL if getattr(self, name)}
        return row

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> FieldPlan:
        if "place" not in row:
            return _without_place(row["null"], row["confidence"], row["digest"])
        null = Null(row["null"]) if "null" in row else None
        options = {name: row[name] for name in _OPTIONAL if name in row}
        return cls(Place.from_json(row["place"]), null, row["confidence"], row["digest"], **options)


_OPTIONAL = ("unit", "form", "convention", "beside")


@lru_cache(maxsize=65_536)
def _without_place(null: str, confidence: float, digest: str) -> FieldPlan:
    """Most fields are absent in most patterns: one object serves them all."""
    return FieldPlan(None, Null(null), confidence, digest)


@dataclass(frozen=True, slots=True)
class Plan:
    """One FieldPlan a field of the profile it was learnt with. `reader` is who read the line it was learnt
    from.

    Immutable; may be used by several threads at once.
    """

    fields: Mapping[str, FieldPlan]
    slots: int
    reader: str
    _bound: list[_Bound] = field(default_factory=list, compare=False, repr=False)

    def read(self, text: str, signature: Signature, profile: Profile, context: Context) -> Extraction:
        """The fields of a line of this plan's pattern; stale fields are unsure. `context` needs no unit, form
        or convention.

        Raises ValueError when the line is of another pattern.
        """
        bounds = signature.bounds
        if len(bounds) != 2 * self.slots:
            raise ValueError(f"the plan is for {self.slots} slots, the line has {len(bounds) // 2}")
        bound = self._bind(profile)
        values = dict(bound.constant)
        for one in bound.reading:
            values[one.name] = one.read(text, bounds, context)
        return Extraction(values, self.reader, Tier.PLAN)

    def stale_fields(self, profile: Profile) -> frozenset[str]:
        """Fields of the profile that this plan does not know, or knows by another definition."""
        return self._bind(profile).stale

    def spans(self, text: str, signature: Signature) -> dict[str, Span | None]:
        """Where the fields stand in a line of the pattern, without normalising. None: nowhere, or not found
        again.
        """
        found: dict[str, Span | None] = {}
        for name, how in self.fields.items():
            at = how.place.locate(text, signature.bounds) if how.place is not None else None
            found[name] = Span(*at) if at is not None else None
        return found

    def to_json(self) -> dict[str, Any]:
        fields = {name: how.to_json() for name, how in self.fields.items()}
        return {"slots": self.slots, "reader": self.reader, "fields": fields}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Plan:
        """The plan that `to_json` wrote. Raises KeyError or ValueError for anything else."""
        fields = {name: FieldPlan.from_json(how) for name, how in row["fields"].items()}
        return cls(fields, row["slots"], row["reader"])

    def _bind(self, profile: Profile) -> _Bound:
        """The plan made ready for one profile, kept until another profile comes."""
        if self._bound and self._bound[0].profile is profile:
            return self._bound[0]
        bound = _bound(self, profile)
        self._bound[:] = [bound]
        return bound


def learn(
    text: str,
    signature: Signature,
    extraction: Extraction,
    profile: Profile,
    others: Sequence[tuple[str, Signature]] = (),
) -> Plan | None:
    """The plan that reads `text` as `extraction` does, and every line of its signature likewise.

    `others` are more lines of the pattern, from which the order of day and month and the decimal mark are
    learnt. None when a span is none of this text, or begins or ends with a blank.
    """
    places: dict[str, Place | None] = {}
    for name, value in extraction.fields.items():
        places[name] = place(text, signature, value.span) if value.span is not None else None
        if value.span is not None and places[name] is None:
            return None
    lines = [(text, signature), *others]
    fields = {
        name: _field_plan(lines, extraction.fields.get(name, FieldValue()), places.get(name), config,
        _digests(profile)[name]) for name, config in profile.fields.items()
    }  # fmt: skip
    return Plan(fields, len(signature.bounds) // 2, extraction.reader)


def _field_plan(
    lines: Sequence[tuple[str, Signature]],
    value: FieldValue,
    at: Place | None,
    config: FieldConfig,
    digest: str,
) -> FieldPlan:
    if at is None or value.span is None:
        missing = value.null or Null.ABSENT  # a value from elsewhere is not in the text
        return _without_place(str(missing), round(value.confidence, 4), digest)
    text = lines[0][0]
    raws = [one[slice(*where)] for one, signature in lines if (where := at.locate(one, signature.bounds))]
    unit, beside = _unit(text, value.span) if config.type is FieldType.QUANTITY else (None, "")
    form, convention = "", None
    if config.type is FieldType.TIMESTAMP:
        form, convention = timestamp.form_of(raws[0]), timestamp.learn_order(raws)
    elif config.type in _NUMERIC:
        convention = number.learn_mark(raws)
    bad = value.null is Null.BAD and _bad_by_itself(text, value.span, config, unit)
    null = None if bad else value.null  # the next line may carry a value there
    return FieldPlan(at, null, round(value.confidence, 4), digest, unit, form, convention, beside)


def _unit(text: str, span: Span) -> tuple[str | None, str]:
    """The unit of a number, and the text that carries it where that is not settled by the signature (m2,
    m3).
    """
    unit = unit_beside(Line(text), span)
    if unit is None or not any(char.isdigit() for char in unit):
        return unit, ""
    at = text.find(unit, span.end, span.end + len(unit) + 4)
    return unit, text[span.end : at + len(unit)] if at >= 0 else ""


_NO_CONTEXT = datetime(2000, 1, 1, tzinfo=UTC)  # a number's worth does not depend on when it came


def _bad_by_itself(text: str, span: Span, config: FieldConfig, unit: str | None) -> bool:
    """Whether the value is what is wrong (a sentinel, a dead clock), and not what the pattern carries (a raw
    count).
    """
    if config.type is FieldType.TIMESTAMP:
        return True
    context = Context(UTC, _NO_CONTEXT, unit)
    return config.type in _NUMERIC and normalise(text, span, config, context).null is Null.BAD


# --- a plan made ready for a profile ------------------------------------------------------------------------

_Normaliser = Callable[[str, int, int, Context], Normalised]


@dataclass(frozen=True, slots=True)
class _Reading:
    """One field that has a place."""

    name: str
    how: FieldPlan
    whole: int
    worth: _Normaliser

    def read(self, text: str, bounds: tuple[int, ...], context: Context) -> FieldValue:
        how = self.how
        if self.whole >= 0:
            start, end = bounds[2 * self.whole], bounds[2 * self.whole + 1]
        else:
            at = how.place.locate(text, bounds) if how.place is not None else None
            if at is None:
                return _UNSURE
            start, end = at
        span = Span(start, end)
        if how.null is not None:
            return FieldValue(span, how.null, None, "span", how.confidence, Tier.PLAN)
        if how.beside and not text.startswith(how.beside, end):
            return FieldValue(span, Null.UNSURE, None, "span", 0.0, Tier.PLAN)
        worth = self.worth(text, start, end, context)
        return FieldValue(span, worth.null, worth.value, "span", how.confidence, Tier.PLAN)


@dataclass(frozen=True, slots=True)
class _Bound:
    profile: Profile
    constant: dict[str, FieldValue]
    reading: tuple[_Reading, ...]
    stale: frozenset[str]


_UNSURE = FieldValue(None, Null.UNSURE, None, "span", 0.0, Tier.PLAN)


@lru_cache(maxsize=65_536)
def _nothing(null: Null, confidence: float) -> FieldValue:
    return FieldValue(None, null, None, "span", confidence, Tier.PLAN)


def _bound(plan: Plan, profile: Profile) -> _Bound:
    digests = _digests(profile)
    constant: dict[str, FieldValue] = {}
    reading: list[_Reading] = []
    stale: set[str] = set()
    for name, config in profile.fields.items():
        how = plan.fields.get(name)
        if how is None or how.digest != digests[name]:
            stale.add(name)
            constant[name] = _UNSURE
        elif how.place is None:
            constant[name] = _nothing(how.null or Null.ABSENT, how.confidence)
        else:
            reading.append(_Reading(name, how, how.place.whole, _normaliser(config, how)))
    return _Bound(profile, constant, tuple(reading), frozenset(stale))


def _normaliser(config: FieldConfig, how: FieldPlan) -> _Normaliser:
    """What a span of this field is worth, with everything that the pattern settles filled in."""
    if config.type is FieldType.TIMESTAMP:
        return _time_normaliser(how)
    memo: dict[str, Normalised] = {}
    steady = config.type not in _NUMERIC  # a name's or a code's worth depends on nothing but itself

    def worth(text: str, start: int, end: int, context: Context) -> Normalised:
        raw = text[start:end]
        known = memo.get(raw)
        if known is not None:
            return known
        full = Context(context.timezone, context.received_at, how.unit, how.form, how.convention)
        found = normalise(text, Span(start, end), config, full)
        if (steady or _PLAIN_NUMBER.fullmatch(raw)) and len(memo) < _MEMO_MAX:
            memo[raw] = found
        return found

    return worth


def _time_normaliser(how: FieldPlan) -> _Normaliser:
    """Times rarely repeat, but in a burst they do: the last one is remembered."""
    last: tuple[str, Context, Normalised] | None = None

    def worth(text: str, start: int, end: int, context: Context) -> Normalised:
        nonlocal last
        raw = text[start:end]
        if last is not None and last[0] == raw and last[1] is context:
            return last[2]
        form = "" if how.form.startswith("epoch") and timestamp.form_of(raw) != how.form else how.form
        full = Context(context.timezone, context.received_at, None, form, how.convention)
        found = timestamp.normalise(raw, full)
        last = raw, context, found
        return found

    return worth


# Digests of the profiles in use: working one out takes as long as reading a line.
_PROFILES_MAX = 64
_known_digests: dict[int, tuple[Profile, dict[str, str]]] = {}


def _digests(profile: Profile) -> dict[str, str]:
    known = _known_digests.get(id(profile))
    if known is not None and known[0] is profile:
        return known[1]
    if len(_known_digests) >= _PROFILES_MAX:
        _known_digests.clear()
    found = {name: config.digest() for name, config in profile.fields.items()}
    _known_digests[id(profile)] = (profile, found)
    return found
