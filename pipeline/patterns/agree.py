"""What several readings of one pattern say together.

Readings are compared by *place*: two agree on a field when the place that one found holds, in the other's
line, what the other read. A name may stand twice in a line, so names agree by their text; numbers are equal
by accident, so they agree only by where they stand. Whoever abstains neither agrees nor contradicts, but his
confidence counts as none. What a person said of a field is not voted on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.fields import FieldConfig, Profile
from pipeline.patterns.lesson import Lesson, Trust
from pipeline.patterns.places import Place, place
from pipeline.patterns.plan import Plan, learn
from pipeline.patterns.signature import Signature, line_digest
from schemas.extraction import (
    Choice,
    Extraction,
    FieldType,
    FieldValue,
    Null,
    Severity,
    Span,
    Tier,
    Transition,
    Verdict,
)

READINGS = 3  # distinct lines that agree make a plan trusted: two may share an accident of their values

_ABSENT = FieldValue()
_UNSURE = FieldValue(None, Null.UNSURE, confidence=0.0)


@dataclass(frozen=True, slots=True)
class Reading:
    """One line as it was read. `weight` is how many readings it stands for: an earlier lesson counts all of
    its own.
    """

    text: str
    signature: Signature
    verdict: Verdict
    weight: int = 1

    def value(self, name: str) -> FieldValue:
        return self.verdict.extraction.fields.get(name, _ABSENT)

    def place(self, name: str) -> Place | None:
        span = self.value(name).span
        return place(self.text, self.signature, span) if span is not None else None

    def found_at(self, name: str, at: Place | None, by_text: bool) -> bool:
        """Whether the field was read at this place, or reads the same there; None: not in the line."""
        span = self.value(name).span
        if at is None or span is None:
            return at is None and span is None
        found = at.locate(self.text, self.signature.bounds)
        if found is None or found == (span.start, span.end):
            return found is not None
        return by_text and self.text[slice(*found)] == span.of(self.text)

    def abstains(self, name: str) -> bool:
        """Whether the reader could not tell, or gave a span that is none of the line."""
        value = self.value(name)
        return value.null is Null.UNSURE or (value.span is not None and self.place(name) is None)


def recall(lesson: Lesson, text: str, signature: Signature) -> Reading:
    """A line as an earlier lesson reads it, for comparing with new readings."""
    spans = lesson.plan.spans(text, signature)
    fields: dict[str, FieldValue] = {}
    for name, how in lesson.plan.fields.items():
        lost = how.place is not None and spans[name] is None
        null = Null.UNSURE if lost else how.null
        tier = Tier.PERSON if how.shared else Tier.RULE
        fields[name] = FieldValue(spans[name], null, None, "span", how.confidence, tier)
    return Reading(text, signature, lesson.verdict(Extraction(fields, lesson.plan.reader)), lesson.agreed)


def combine(readings: Sequence[Reading], profile: Profile, reader: str) -> Lesson:
    """The lesson of readings of lines of one pattern and variant: at least one.

    Trusted when READINGS distinct lines agree, or when the pattern has no slot and so only one line. What
    readings differ in becomes unsure. Disputed when that is the severity, what they do to the alarm, or any
    field of a pattern that is not routine: of a routine line nobody needs the fields.
    """
    settled = {name: _settle_field(name, config, readings) for name, config in profile.fields.items()}
    chosen = {what: _settle_choice(what, readings) for what in ("severity", "category", "action")}
    transitions = {reading.verdict.transition for reading in readings}
    severity = chosen["severity"]
    routine = severity is not None and severity.label == Severity.INFO
    disputed = severity is None or len(transitions) > 1 or (None in settled.values() and not routine)
    fields = {name: value or _UNSURE for name, value in settled.items()}
    choices = {what: choice or Choice() for what, choice in chosen.items()}
    agreed = sum(reading.weight for reading in readings)
    return Lesson(
        _plan(readings, fields, profile, reader),
        choices["severity"],
        choices["category"],
        choices["action"],
        transition=transitions.pop() if len(transitions) == 1 else Transition.NONE,
        trust=_trust(disputed, agreed, readings[0].signature),
        agreed=agreed,
        taught_by=reader,
        unsure=tuple(
            [name for name, value in fields.items() if value.null is Null.UNSURE]
            + [what for what, choice in choices.items() if choice.label is None]
        ),
        checked=frozenset(line_digest(reading.text) for reading in readings),
    )


def _trust(disputed: bool, agreed: int, signature: Signature) -> Trust:
    if disputed:
        return Trust.DISPUTED
    return Trust.TRUSTED if agreed >= READINGS or not signature.bounds else Trust.PROVISIONAL


def _plan(readings: Sequence[Reading], fields: dict[str, FieldValue], profile: Profile, reader: str) -> Plan:
    first = readings[0]
    others = [(reading.text, reading.signature) for reading in readings[1:]]
    plan = learn(first.text, first.signature, Extraction(fields, reader), profile, others)
    assert plan is not None, "every span was found by a place"
    return plan


def _settle_field(name: str, config: FieldConfig, readings: Sequence[Reading]) -> FieldValue | None:
    """The field in the first line; unsure when all abstain, None when the readings contradict each other."""
    prior = readings[0]
    if prior.value(name).tier is Tier.PERSON and not prior.abstains(name):
        return prior.value(name)
    voters = [reading for reading in readings if not reading.abstains(name)]
    if not voters:
        return _UNSURE
    at = voters[0].place(name)
    by_text = config.type not in (FieldType.QUANTITY, FieldType.NUMBER)
    if not all(reading.found_at(name, at, by_text) for reading in voters[1:]):
        return None
    whole = sum(reading.weight for reading in readings)
    confidence = sum(reading.weight * reading.value(name).confidence for reading in voters) / whole
    if at is None:
        return FieldValue(None, Null.ABSENT, confidence=confidence)
    found = at.locate(readings[0].text, readings[0].signature.bounds)
    if found is None:
        return _UNSURE
    bad = all(reading.value(name).null is Null.BAD for reading in voters)
    return FieldValue(Span(*found), Null.BAD if bad else None, confidence=confidence)


def _settle_choice(what: str, readings: Sequence[Reading]) -> Choice | None:
    """The label all agree on; unsure when all abstain, None when they contradict each other."""
    choices = [(getattr(reading.verdict, what), reading.weight) for reading in readings]
    voters = [(choice, weight) for choice, weight in choices if choice.label is not None]
    if not voters:
        return Choice()
    if len({choice.label for choice, _ in voters}) > 1:
        return None
    first: Choice = voters[0][0]
    confidence = sum(weight * choice.confidence for choice, weight in voters) / sum(w for _, w in choices)
    return Choice(first.label, round(confidence, 4), first.tier, first.rule)
