"""A person's answer, turned into a lesson. Like everyone else, a person chooses spans of the line and
labels that exist."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pipeline.fields import Labels, Profile
from pipeline.patterns import PERSON, Lesson, Trust, learn, sign
from schemas.errors import AndonError
from schemas.events import LogLine
from schemas.extraction import Choice, Extraction, FieldValue, Null, Severity, Span, Tier, Transition

# What a person may say of a field that has no value; "unsure" would be no answer.
NULLS = (Null.ABSENT, Null.BAD)


class ReviewRefused(AndonError):
    """The answer cannot be taken as it is; the message says what to change."""


@dataclass(frozen=True, slots=True)
class Correction:
    """`values` maps a field to its text in the line, `spans` to [start, end); `nulls` to absent or bad.

    What is not mentioned stays as it was read.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    spans: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    nulls: Mapping[str, str] = field(default_factory=dict)
    severity: str | None = None
    category: str | None = None
    action: str | None = None


def lesson_of(
    line: LogLine,
    read: Extraction | None,
    decided: Lesson | None,
    correction: Correction,
    profile: Profile,
    labels: Labels,
    who: str,
) -> Lesson:
    """The lesson that `who` teaches with a line: what was read, with the correction on top of it.

    Raises ReviewRefused for unknown fields and labels, values that do not stand in the line, and when
    nobody has said how severe it is.
    """
    extraction = _extraction(line, read, correction, profile, who)
    severity = _choice("severity", correction.severity, decided, [str(s) for s in labels.severities])
    if severity.label is None:
        raise ReviewRefused(
            f"nobody knows how severe this is yet; say one of: {', '.join(labels.severities)} (--severity)"
        )
    signature = sign(line.text)
    plan = learn(line.text, signature, extraction, profile)
    if plan is None:
        raise ReviewRefused("a value may not begin or end with a blank; choose the words alone")
    return Lesson(
        plan=plan,
        severity=severity,
        category=_choice("category", correction.category, decided, list(labels.categories)),
        action=_choice("action", correction.action, decided, list(labels.actions)),
        transition=_transition(severity, correction, decided),
        clears=decided.clears if decided is not None else None,
        trust=Trust.TRUSTED,
        agreed=1,
        taught_by=f"{PERSON}{who}",
    )


def _extraction(
    line: LogLine, read: Extraction | None, correction: Correction, profile: Profile, who: str
) -> Extraction:
    named = {*correction.values, *correction.spans, *correction.nulls}
    unknown = named - set(profile.fields)
    if unknown:
        raise ReviewRefused(
            f"no field {', '.join(sorted(unknown))}; the profile has: {', '.join(profile.fields)}"
        )
    fields: dict[str, FieldValue] = {}
    for name in profile.fields:
        stated = _stated(name, line, correction)
        known = read.fields.get(name, FieldValue()) if read is not None else FieldValue()
        if stated is None and known.null is Null.UNSURE:
            raise ReviewRefused(
                f"{name} is unsure: give its value (--set {name}=...) or --null {name}=absent"
            )
        fields[name] = stated or replace(known, confidence=1.0, tier=Tier.PERSON)
    return Extraction(fields, reader=f"{PERSON}{who}", tier=Tier.PERSON)


def _stated(name: str, line: LogLine, correction: Correction) -> FieldValue | None:
    """What the correction says of one field; None when it says nothing."""
    if name in correction.nulls:
        if correction.nulls[name] not in NULLS:
            raise ReviewRefused(f"{name}: null is {' or '.join(NULLS)}, not {correction.nulls[name]!r}")
        return FieldValue(None, Null(correction.nulls[name]), tier=Tier.PERSON)
    if name in correction.spans:
        start, end = correction.spans[name]
        if not 0 <= start < end <= len(line.text):
            raise ReviewRefused(f"{name}: [{start}, {end}) is no part of the line (0 to {len(line.text)})")
        return FieldValue(Span(start, end), None, tier=Tier.PERSON)
    if name in correction.values:
        return FieldValue(_find(name, correction.values[name], line.text), None, tier=Tier.PERSON)
    return None


def _find(name: str, value: str, text: str) -> Span:
    start = text.find(value) if value else -1
    if start < 0:
        raise ReviewRefused(f"{name}: {value!r} does not stand in the line; a value is a part of it or null")
    if text.find(value, start + 1) >= 0:
        raise ReviewRefused(f"{name}: {value!r} stands there more than once; say which: {name}=START:END")
    return Span(start, start + len(value))


def _choice(what: str, stated: str | None, decided: Lesson | None, known: list[str]) -> Choice:
    if stated is not None:
        if stated not in known:
            raise ReviewRefused(f"{what} {stated!r} is not configured; choose one of: {', '.join(known)}")
        return Choice(stated, 1.0, Tier.PERSON)
    choice: Choice = getattr(decided, what) if decided is not None else Choice()
    return choice if choice.label is None else Choice(choice.label, 1.0, Tier.PERSON)


def _transition(severity: Choice, correction: Correction, decided: Lesson | None) -> Transition:
    """A severity that the person states raises or not by itself; otherwise what was read stays."""
    if correction.severity is None and decided is not None:
        return decided.transition
    return Transition.NONE if severity.label == Severity.INFO else Transition.RAISE
