"""validate: what may leave without a person having looked. Fails closed; each failure is a named reason.

Only actionable events (warning and up) are looked at closely: of a routine line nobody needs the fields. An
event whose severity is unsure goes to review anyway, and what else is wrong with it is named too.

A field that cannot be read surely holds an event back only when something rests on it: the profile requires
it, the decision does (see Decider.rests_on), or the alarm's name, where neither topic nor payload says which
machine it is. Any other one is left out, and the ticket says so: a fault does not wait for a time stamp.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Set
from dataclasses import dataclass, field
from datetime import tzinfo
from itertools import combinations

from pipeline.fields import Context, FieldConfig, Labels, Normalised, Profile, normalise
from pipeline.fields.line import Line
from pipeline.fields.quantity import unit_beside
from pipeline.stages.decide import is_actionable
from schemas.events import Event, LogLine
from schemas.extraction import Decision, Extraction, FieldType, FieldValue, Null, Severity, Transition

# A field's problem as its normaliser names it, and the reason it is here.
_REASONS = {
    "bad_time": "implausible_time",
    "ambiguous_time": "ambiguous_time",
    "sentinel": "bad_value",
    "bad_number": "bad_value",
    "ambiguous_number": "ambiguous_number",
}
_NUMERIC = frozenset({FieldType.QUANTITY, FieldType.NUMBER})


@dataclass(slots=True)
class Checked:
    """`reasons` hold the event back, in the order found. `details` say each with its values, for people.

    `passed` names the checks that held, `remarks` what is odd but holds nothing back. `unsure` are fields
    that have no value to rely on, whether they hold the event back or not.
    """

    reasons: list[str] = field(default_factory=list)
    details: list[str] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    unsure: list[str] = field(default_factory=list)

    def fail(self, reason: str, detail: str) -> None:
        if reason not in self.reasons:
            self.reasons.append(reason)
        self.details.append(detail)


class Validator:
    """Checks events read with one profile. Pure."""

    def __init__(self, profile: Profile, labels: Labels, timezone: tzinfo, confidence_min: float) -> None:
        self._profile = profile
        self._labels = labels
        self._timezone = timezone
        self._min = confidence_min

    def check(
        self,
        event: Event,
        extraction: Extraction | None,
        decision: Decision,
        rests_on: Set[str] = frozenset(),
    ) -> Checked:
        """`rests_on` are the fields that the decision and the alarm's name cannot do without."""
        checked = Checked()
        self._labelled(decision, checked)
        if decision.discard or not (is_actionable(decision) or decision.severity.label is None):
            return checked
        if isinstance(event, LogLine):
            for name, config in self._profile.fields.items():
                value = extraction.fields.get(name, FieldValue()) if extraction else FieldValue()
                self._field(event, name, config, value, config.required or name in rests_on, checked)
            if extraction is not None:
                self._across(extraction, decision, checked)
        return checked

    def _labelled(self, decision: Decision, checked: Checked) -> None:
        """The decision uses labels that exist: a plan may have been taught before the labels changed."""
        if decision.severity.label is None:
            checked.fail("unsure_severity", f"severity unsure ({decision.severity.confidence:.0%})")
        labels = {
            "severity": (decision.severity.label, frozenset(map(str, self._labels.severities))),
            "category": (decision.category.label, frozenset(self._labels.categories)),
            "action": (decision.action.label, frozenset(self._labels.actions)),
        }
        for what, (label, known) in labels.items():
            if label is not None and label not in known:
                checked.fail(f"unknown_{what}", f"{what} {label} is not configured")
            elif label is not None:
                checked.passed.append(f"{what} is configured")

    def _field(
        self,
        event: LogLine,
        name: str,
        config: FieldConfig,
        value: FieldValue,
        needed: bool,
        checked: Checked,
    ) -> None:
        if value.null is Null.UNSURE:
            _unsure(name, config, "the reader cannot tell", needed, checked)
        elif value.span is None:
            if config.required:
                checked.fail("missing_required", f"{name} is required and the line does not carry it")
        elif value.confidence < self._profile.confidence_min(name, self._min):
            why = f"{value.span.of(event.text)!r} read with {value.confidence:.0%}"
            _unsure(name, config, why, needed, checked)
        else:
            self._value(event, name, config, value, needed, checked)

    def _value(
        self,
        event: LogLine,
        name: str,
        config: FieldConfig,
        value: FieldValue,
        needed: bool,
        checked: Checked,
    ) -> None:
        """A span that is sure of being the field's: is what it says possible?"""
        assert value.span is not None
        worth = self._worth(event, config, value)
        written = repr(value.span.of(event.text))
        shown = f"{name} {written}"
        if worth.null is Null.UNSURE or worth.problem in ("ambiguous_time", "ambiguous_number"):
            _unsure(name, config, f"{written} reads two ways", needed, checked)
        elif worth.null is Null.BAD or value.null is Null.BAD:
            reason = _REASONS.get(worth.problem or "", worth.problem or "bad_value")
            if config.required:
                checked.fail(reason, f"{shown} is no value and {name} is required")
            else:
                checked.remarks.append(f"{reason}: {shown}")
        elif worth.problem == "out_of_range" or _outside(worth, config):
            checked.fail("out_of_range", f"{shown} is {_unit(worth.value, config)}, outside {_range(config)}")
        elif worth.problem is not None:
            checked.fail(worth.problem, f"{shown}: {worth.problem.replace('_', ' ')}")
        else:
            checked.passed.append(_passed(name, config))

    def _worth(self, event: LogLine, config: FieldConfig, value: FieldValue) -> Normalised:
        """What the span is worth by the field's definition of today, whoever read it and when."""
        assert value.span is not None
        known = value.normalised
        if config.type in _NUMERIC and isinstance(known, int | float):
            return Normalised(float(known))  # the reader knew the unit's and the decimal mark's convention
        unit = unit_beside(Line(event.text), value.span) if config.type is FieldType.QUANTITY else None
        worth = normalise(
            event.text, value.span, config, Context(self._timezone, event.received_at, unit=unit)
        )
        if worth.null is Null.UNSURE and known is not None:
            return Normalised(known)
        return worth

    def _across(self, extraction: Extraction, decision: Decision, checked: Checked) -> None:
        """Rules over several fields and the decision."""
        for one, other in _shared(self._profile, extraction, checked.unsure):
            checked.fail("shared_value", f"{one} and {other} are read from the same characters")
        if decision.transition is Transition.CLEAR and decision.clears is None and is_actionable(decision):
            severity = Severity(str(decision.severity.label))
            checked.fail("contradiction", f"reads as a return to normal and as {severity}")


def _unsure(name: str, config: FieldConfig, why: str, needed: bool, checked: Checked) -> None:
    """A field without a value to rely on: it holds the event back where something rests on it."""
    checked.unsure.append(name)
    if needed:
        checked.fail(f"unsure_{name}", f"{name}: {why}")
    else:
        what = "the line's own time" if config.type is FieldType.TIMESTAMP else "it"
        checked.remarks.append(f"{name}: {what} could not be read surely ({why})")


def _shared(profile: Profile, extraction: Extraction, unsure: Collection[str]) -> Iterator[tuple[str, str]]:
    """Pairs of measured fields that claim the same number: at most one of them is right."""
    measured = [
        (name, value.span)
        for name, value in extraction.fields.items()
        if value.span is not None
        and name not in unsure
        and name in profile.fields
        and profile.fields[name].type in _NUMERIC
    ]
    for (one, first), (other, second) in combinations(measured, 2):
        if first.overlaps(second):
            yield one, other


def _outside(worth: Normalised, config: FieldConfig) -> bool:
    if config.range is None or not isinstance(worth.value, int | float):
        return False
    return not config.range[0] <= worth.value <= config.range[1]


def _unit(value: object, config: FieldConfig) -> str:
    return f"{value:g}{_suffix(config)}" if isinstance(value, int | float) else str(value)


def _range(config: FieldConfig) -> str:
    low, high = config.range or (0, 0)
    return f"{low:g}..{high:g}{_suffix(config)}"


def _suffix(config: FieldConfig) -> str:
    return f" {config.unit}" if config.unit else ""


def _passed(name: str, config: FieldConfig) -> str:
    if config.range is not None:
        return f"{name} in {_range(config)}"
    return f"{name} is known" if config.known is not None else f"{name} is readable"
