"""The plan of a pattern: where each field of the profile stands, so that a line is read without the model.

A plan is learnt from one line that somebody read: the model, the rules, or a person. It reads every line of
the same signature and returns spans of that line only. What the words of a pattern settle (unit, written form
of a time, decimal mark) is worked out when it is learnt, never per line.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from pipeline.fields import Context, FieldConfig, Profile, normalise, number, timestamp
from pipeline.fields.line import Line
from pipeline.fields.quantity import unit_beside
from pipeline.patterns.places import Place, place
from pipeline.patterns.prepare import NUMERIC, Convention, Normaliser, prepared
from pipeline.patterns.signature import Signature
from schemas.extraction import Extraction, FieldType, FieldValue, Null, Span, Tier


@dataclass(frozen=True, slots=True)
class FieldPlan:
    """How one field is read. `place` is None when this pattern has no value for it; `null` says why.

    `null` with a place: *bad* is what this pattern always has there (a raw count), *unsure* is for a person.
    `digest` is that of the field's definition: another one makes this field, and only this one, stale.
    `beside` is what must follow the value for its unit to hold, when the unit has a digit. `shared`: a person
    said so, for every variant of the pattern (see share.py).
    """

    place: Place | None
    null: Null | None
    confidence: float
    digest: str
    convention: Convention = field(default_factory=Convention)
    beside: str = ""
    shared: bool = False

    def to_json(self) -> dict[str, Any]:
        row: dict[str, Any] = {"digest": self.digest, "confidence": round(self.confidence, 4)}
        if self.place is not None:
            row["place"] = self.place.to_json()
        if self.null is not None:
            row["null"] = str(self.null)
        row |= {key: value for key, value in asdict(self.convention).items() if value}
        if self.beside:
            row["beside"] = self.beside
        if self.shared:
            row["shared"] = True
        return row

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> FieldPlan:
        digest, confidence = sys.intern(row["digest"]), row["confidence"]
        shared = row.get("shared", False)
        if "place" not in row:
            return _without_place(row["null"], confidence, digest, shared)
        convention = _convention(row.get("unit"), row.get("form", ""), row.get("order"))
        null = Null(row["null"]) if "null" in row else None
        beside = row.get("beside", "")
        return cls(Place.from_json(row["place"]), null, confidence, digest, convention, beside, shared)


_convention = lru_cache(maxsize=4096)(Convention)


@lru_cache(maxsize=65_536)
def _without_place(null: str, confidence: float, digest: str, shared: bool = False) -> FieldPlan:
    """Most fields are absent in most patterns: one object serves them all."""
    return FieldPlan(None, Null(null), confidence, digest, shared=shared)


@dataclass(frozen=True, slots=True)
class Plan:
    """One FieldPlan a field of the profile. `reader` is who read the line that it was learnt from.

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
        """Where the fields stand in a line of the pattern. None: nowhere, or not found again."""
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
        fields = {sys.intern(name): FieldPlan.from_json(how) for name, how in row["fields"].items()}
        return cls(fields, row["slots"], sys.intern(row["reader"]))

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
        prepared(profile).digests[name]) for name, config in profile.fields.items()
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
    form, order = "", None
    if config.type is FieldType.TIMESTAMP:
        form, order = timestamp.form_of(raws[0]), timestamp.learn_order(raws)
    elif config.type in NUMERIC:
        order = number.learn_mark(raws)
    bad = value.null is Null.BAD and _bad_by_itself(text, value.span, config, unit)
    null = None if bad else value.null  # the next line may carry a value there
    return FieldPlan(at, null, round(value.confidence, 4), digest, _convention(unit, form, order), beside)


def _unit(text: str, span: Span) -> tuple[str | None, str]:
    """The unit of a number, and the text that carries it where the signature does not settle it (m2, m3)."""
    unit = unit_beside(Line(text), span)
    if unit is None or not any(char.isdigit() for char in unit):
        return unit, ""
    at = text.find(unit, span.end, span.end + len(unit) + 4)
    return unit, text[span.end : at + len(unit)] if at >= 0 else ""


_NO_CONTEXT = datetime(2000, 1, 1, tzinfo=UTC)  # a number's worth does not depend on when it came


def _bad_by_itself(text: str, span: Span, config: FieldConfig, unit: str | None) -> bool:
    """Whether the value is wrong (a sentinel, a dead clock), not what the pattern carries (a raw count)."""
    if config.type is FieldType.TIMESTAMP:
        return True
    context = Context(UTC, _NO_CONTEXT, unit)
    return config.type in NUMERIC and normalise(text, span, config, context).null is Null.BAD


# --- a plan made ready for a profile ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Reading:
    """One field that has a place."""

    name: str
    how: FieldPlan
    whole: int
    worth: Normaliser

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
    ready = prepared(profile)
    constant: dict[str, FieldValue] = {}
    reading: list[_Reading] = []
    stale: set[str] = set()
    for name in profile.fields:
        how = plan.fields.get(name)
        if how is None or how.digest != ready.digests[name]:
            stale.add(name)
            constant[name] = _UNSURE
        elif how.place is None:
            constant[name] = _nothing(how.null or Null.ABSENT, how.confidence)
        else:
            reading.append(_Reading(name, how, how.place.whole, ready.normaliser(name, how.convention)))
    return _Bound(profile, constant, tuple(reading), frozenset(stale))
