"""A person's answer, turned into a lesson. Like everyone else, a person chooses spans of the line and
labels that exist."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pipeline.fields import FieldConfig, Labels, Profile
from pipeline.patterns import PERSON, SHARED, FieldPlan, Lesson, Plan, Trust, learn, sign
from pipeline.stages.judge import Judged
from schemas.errors import RequestError
from schemas.events import LogLine
from schemas.extraction import Choice, Extraction, FieldValue, Null, Severity, Span, Tier, Transition

# What a person may say of a field that has no value; "unsure" would be no answer.
NULLS = (Null.ABSENT, Null.BAD)


class ReviewRefused(RequestError):
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


@dataclass(frozen=True, slots=True)
class Answer:
    """A person's answer to one question. `shown` is what an approval confirms: the reading as the question
    shows it."""

    who: str
    correction: Correction
    shown: Mapping[str, Any] | None = None

    def saw(self, what: str) -> Mapping[str, Any]:
        """A part of the reading that the person approves; empty where there is none."""
        found = self.shown.get(what) if self.shown is not None else None
        return found if isinstance(found, Mapping) else {}


def lesson_of(
    line: LogLine, known: Lesson | None, answer: Answer, profile: Profile, labels: Labels
) -> Lesson:
    """The lesson that a person teaches with a line: what is `known` of its pattern, with the answer on top.

    What the answer states is a person's word from now on, whatever is read later. What it does not state
    keeps the confidence and the reader that it had: a label or a field that was unsure stays unsure, and a
    field that nobody has read yet is read with the pattern's next line. An approval states nothing; it
    confirms what was shown, and what was empty there stays as it was.

    Where the device, the time and the code stand is said for all codes of the pattern; what the line means is
    said for this one (patterns/share.py).

    Raises ReviewRefused for unknown fields and labels, and for values that do not stand in the line.
    """
    severity = _choice("severity", known, answer, [str(label) for label in labels.severities])
    category = _choice("category", known, answer, list(labels.categories))
    action = _choice("action", known, answer, list(labels.actions))
    plan = _plan(line, known, answer, profile)
    named = {"severity": severity, "category": category, "action": action}
    return Lesson(
        plan,
        severity,
        category,
        action,
        transition=_transition(severity, known, answer.correction),
        clears=known.clears if known is not None else None,
        trust=Trust.TRUSTED,
        taught_by=f"{PERSON}{answer.who}",
        unsure=tuple(
            [name for name, how in plan.fields.items() if how.null is Null.UNSURE]
            + [what for what, choice in named.items() if choice.label is None]
        ),
    )


def refuse_what_stays_open(
    lesson: Lesson, judged: Judged, answer: Answer, labels: Labels, confidence_min: Callable[[str], float]
) -> None:
    """Raise ReviewRefused when the lesson would not let the line go: people are asked once, so an answer that
    leaves the question open is none. `judged` is the line as the lesson judges it."""
    severity = judged.change.decision.severity.label
    if severity is None:
        raise ReviewRefused(
            f"nobody knows how severe this is yet; say one of: {', '.join(labels.severities)} (--severity)"
        )
    seen = severity if answer.shown is None else answer.saw("severity").get("label")
    if seen != severity:
        was = "without a severity" if seen is None else f"as {seen}"
        raise ReviewRefused(f"it was shown {was}, and is read as {severity} by now; say which (--severity)")
    for name in judged.change.checked.unsure:
        how = lesson.plan.fields.get(name)
        unknown = how is None or how.null is Null.UNSURE or how.confidence < confidence_min(name)
        if unknown and f"unsure_{name}" in judged.reasons:
            raise ReviewRefused(
                f"{name} is needed and unsure: give its value (--set {name}=...) or --null {name}=absent"
            )


def _plan(line: LogLine, known: Lesson | None, answer: Answer, profile: Profile) -> Plan:
    """The known plan, as far as it is of today's profile, with what was stated or confirmed in its place."""
    correction = answer.correction
    signature = sign(line.text)
    named = {*correction.values, *correction.spans, *correction.nulls}
    unknown = named - set(profile.fields)
    if unknown:
        raise ReviewRefused(
            f"no field {', '.join(sorted(unknown))}; the profile has: {', '.join(profile.fields)}"
        )
    stated = {name: _stated(name, line, correction) for name in named}
    learnt = learn(line.text, signature, Extraction(stated, tier=Tier.PERSON), profile)
    if learnt is None:
        raise ReviewRefused("a value may not begin or end with a blank; choose the words alone")
    fields: dict[str, FieldPlan] = {}
    if known is not None:
        stale = known.plan.stale_fields(profile)
        spans = known.plan.spans(line.text, signature)
        for name, how in known.plan.fields.items():
            if name in profile.fields and name not in stale:
                confirmed = _confirms(answer.saw("fields").get(name), how, spans[name])
                fields[name] = _said(how, profile.fields[name]) if confirmed else how
    fields |= {name: _said(learnt.fields[name], profile.fields[name]) for name in named}
    return Plan(fields, learnt.slots, f"{PERSON}{answer.who}")


def _said(how: FieldPlan, config: FieldConfig) -> FieldPlan:
    """A person's word. Where the event's own names stand, it holds for the pattern's other codes as well."""
    return replace(how, confidence=1.0, shared=config.type in SHARED)


def _confirms(seen: Any, how: FieldPlan, span: Span | None) -> bool:
    """Whether what a person saw of a field, its value or that it has none, is what the plan reads."""
    if not isinstance(seen, Mapping) or how.null is Null.UNSURE:
        return False
    if span is None:
        return how.place is None and seen.get("null") == how.null
    return seen.get("span") == [span.start, span.end]


def _stated(name: str, line: LogLine, correction: Correction) -> FieldValue:
    """What the correction says of a field that it names."""
    if name in correction.nulls:
        if correction.nulls[name] not in NULLS:
            raise ReviewRefused(f"{name}: null is {' or '.join(NULLS)}, not {correction.nulls[name]!r}")
        return FieldValue(None, Null(correction.nulls[name]), tier=Tier.PERSON)
    if name in correction.spans:
        start, end = correction.spans[name]
        if not 0 <= start < end <= len(line.text):
            raise ReviewRefused(f"{name}: [{start}, {end}) is no part of the line (0 to {len(line.text)})")
        return FieldValue(Span(start, end), None, tier=Tier.PERSON)
    return FieldValue(_find(name, correction.values[name], line.text), None, tier=Tier.PERSON)


def _find(name: str, value: str, text: str) -> Span:
    start = text.find(value) if value else -1
    if start < 0:
        raise ReviewRefused(f"{name}: {value!r} does not stand in the line; a value is a part of it or null")
    if text.find(value, start + 1) >= 0:
        raise ReviewRefused(f"{name}: {value!r} stands there more than once; say which: {name}=START:END")
    return Span(start, start + len(value))


def _choice(what: str, known: Lesson | None, answer: Answer, configured: list[str]) -> Choice:
    stated: str | None = getattr(answer.correction, what)
    if stated is not None:
        if stated not in configured:
            raise ReviewRefused(
                f"{what} {stated!r} is not configured; choose one of: {', '.join(configured)}"
            )
        return Choice(stated, 1.0, Tier.PERSON)
    choice: Choice = getattr(known, what) if known is not None else Choice()
    saw = answer.saw(what)
    # What a rule decides it decides with every line: nothing of it has to be taught.
    confirmed = choice.label is not None and saw.get("label") == choice.label and saw.get("rule") is None
    return Choice(choice.label, 1.0, Tier.PERSON) if confirmed else choice


def _transition(severity: Choice, known: Lesson | None, correction: Correction) -> Transition:
    """What was read of it stays, but where the person's severity says otherwise: one above info raises, and
    info does not. A return to normal is info."""
    read = known.transition if known is not None else None
    if correction.severity is None and read is not None:
        return read
    if severity.label == Severity.INFO:
        return Transition.CLEAR if read is Transition.CLEAR else Transition.NONE
    return Transition.RAISE
