"""decide: severity, category, action. Rules first, then known codes, then the reader's choice, else unsure.

Nothing here looks at the words of a line but the rules' own expressions: a line cannot talk itself into a
severity or an action. A reader's choice counts only when it is a configured label and confident enough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipeline.fields.definition import Labels, Profile
from pipeline.stages.facts import Facts
from pipeline.stages.rules import RuleConfig, Rules, When
from schemas.events import Event, LogLine, Reading
from schemas.extraction import (
    Choice,
    Decision,
    Extraction,
    FieldType,
    Null,
    Severity,
    Tier,
    Transition,
    Verdict,
)

__all__ = ["ROUTINE", "SENSOR_FAULT", "UNNAMED", "Decider", "RuleConfig", "When", "is_actionable"]

ROUTINE = "routine"
# Raised by a bad reading (NaN, ---, a sentinel, a bad quality code), cleared by the metric's next good one.
SENSOR_FAULT = "sensor_fault"

# Cause of an alarm that nothing names: a line outside of every pattern.
UNNAMED = "unnamed"

_INFO = Choice(Severity.INFO, 1.0, Tier.RULE)
_UNSURE = "unsure_severity"


def is_actionable(decision: Decision) -> bool:
    """Warning and up: somebody may have to do something."""
    return decision.severity.label is not None and Severity(decision.severity.label) is not Severity.INFO


class Decider:
    """Decides events. Pure: the same event, extraction and verdict give the same decision.

    `code_severities` are the severities that lists of known codes state. Raises ValueError for a rule whose
    expression is not RE2.
    """

    def __init__(
        self,
        rules: Sequence[RuleConfig],
        labels: Labels,
        confidence_min: float,
        code_severities: Mapping[str, Severity] | None = None,
    ) -> None:
        self._rules = Rules(rules)
        self._labels = labels
        self._min = confidence_min
        self._codes = dict(code_severities or {})
        self._setpoints = tuple(rule for rule in self._rules.all if rule.has_setpoint)
        self._watching = {rule.id: rule.when.field for rule in rules if rule.when.field is not None}
        self._named = frozenset(rule.clears for rule in rules if rule.clears) & {rule.id for rule in rules}
        self._named |= {rule.config.id for rule in self._setpoints}

    def early(self, event: Event, facts: Facts) -> Decision | None:
        """The decision of a discard rule that nothing has to be read for; None: the event is to be read."""
        for rule in self._rules.about(event):
            if rule.needs_reading:
                return None  # it comes first and may want the line once it is read
            if rule.matches(event, facts, None):
                return self._discard(rule.config) if rule.config.discard else None
        return None

    def look_at(self, profile: Profile) -> frozenset[str]:
        """The fields of a line that may change how bad it is: those of rules, and codes that state it."""
        codes = [name for name, config in profile.fields.items() if config.type is FieldType.CODE]
        return self._rules.look_at(profile) | frozenset(codes if self._codes else ())

    def rests_on(self, decision: Decision, looked_at: frozenset[str]) -> frozenset[str]:
        """The fields without which a line's decision cannot stand: the setpoint of a rule that decided, and
        of a mere warning every field that could have made it worse (see `look_at`).
        """
        by = (decision.rule, decision.severity.rule, decision.category.rule, decision.action.rule)
        fields = frozenset(self._watching[rule] for rule in by if rule in self._watching)
        return fields | looked_at if decision.severity.label == Severity.WARNING else fields

    def is_routine(self, line: LogLine, facts: Facts, verdict: Verdict) -> bool:
        """Whether `decide` and `returns` leave nothing to do for a line without the fields of `look_at`."""
        matching = [rule.config for rule in self._rules.about(line) if rule.matches(line, facts, None)]
        if matching and (matching[0].discard or matching[0].clears is not None):
            return False
        severity = self._severity(facts, matching, verdict, None)
        return severity.label == Severity.INFO and _transition(severity, None, verdict) is Transition.NONE

    def decide(
        self, event: Event, facts: Facts, extraction: Extraction | None = None, verdict: Verdict | None = None
    ) -> Decision:
        rules = self._rules.about(event)
        matching = [rule.config for rule in rules if rule.matches(event, facts, extraction)]
        if matching and matching[0].discard:
            return self._discard(matching[0])
        if isinstance(event, Reading):
            return self._reading(event, matching)
        return self._line(facts, matching, verdict)

    def returns(self, event: Event, facts: Facts, extraction: Extraction | None = None) -> tuple[str, ...]:
        """Causes that this event's value returns to normal: rules behind whose setpoint it is back."""
        rules = self._rules.about(event) if self._setpoints else ()
        behind = tuple(rule.config.id for rule in rules if rule.normal(event, facts, extraction))
        if isinstance(event, Reading) and event.value is not None:
            return (*behind, f"{SENSOR_FAULT}:{event.metric}")
        return behind

    def cause(self, decision: Decision, facts: Facts, pattern_id: int | None) -> str | None:
        """Why: the code, else the rule's id, else the pattern. None: a return to normal of nothing known.

        A rule that a setpoint or another rule's `clears` returns to normal names its alarm itself: otherwise
        the return, which carries no code, would not find it. A return to normal never names a pattern.
        """
        if decision.transition is Transition.CLEAR:
            return decision.clears or facts.code
        if decision.rule is not None and decision.rule in self._named:
            return decision.rule
        if facts.code is not None:
            return facts.code
        if decision.rule is not None:
            return decision.rule
        return UNNAMED if pattern_id is None else f"pattern:{pattern_id}"

    def _reading(self, event: Reading, matching: Sequence[RuleConfig]) -> Decision:
        if event.value is None:
            return self._no_value(event)
        if not matching:
            return Decision(severity=_INFO)
        return self._line(Facts("", False), matching, None)

    def _no_value(self, event: Reading) -> Decision:
        """A dead sensor is a warning of its own; a value that is only missing is nothing."""
        if event.null is not Null.BAD or Severity.WARNING not in self._labels.severities:
            return Decision(severity=_INFO)
        rule = f"{SENSOR_FAULT}:{event.metric}"
        category = SENSOR_FAULT if SENSOR_FAULT in self._labels.categories else None
        return Decision(
            severity=Choice(Severity.WARNING, 1.0, Tier.RULE, rule),
            category=Choice(category, 1.0 if category else 0.0, Tier.RULE, rule),
            transition=Transition.RAISE,
            rule=rule,
        )

    def _line(self, facts: Facts, matching: Sequence[RuleConfig], verdict: Verdict | None) -> Decision:
        first = matching[0] if matching else None
        clears = first.clears if first else None
        severity = self._severity(facts, matching, verdict, clears)
        return Decision(
            severity=severity,
            category=self._stated("category", matching) or self._chosen("category", verdict),
            action=self._stated("action", matching) or self._chosen("action", verdict),
            transition=_transition(severity, clears, verdict),
            rule=first.id if first else None,
            clears=clears,
            reasons=() if severity.label is not None else (_UNSURE,),
        )

    def _severity(
        self, facts: Facts, matching: Sequence[RuleConfig], verdict: Verdict | None, clears: str | None
    ) -> Choice:
        stated = self._stated("severity", matching)
        if stated is not None:
            return stated
        if clears is not None:
            return _INFO
        # The list says how bad the fault is. A line that returns it to normal is not that bad.
        known = self._codes.get(facts.code) if facts.code is not None else None
        if known is not None and not _returns(verdict):
            return Choice(known, 1.0, Tier.RULE, f"code:{facts.code}")
        return self._chosen("severity", verdict)

    def _stated(self, what: str, matching: Sequence[RuleConfig]) -> Choice | None:
        """What the first rule that states it says."""
        for rule in matching:
            label = getattr(rule, what)
            if label is not None:
                return Choice(str(label), 1.0, Tier.RULE, rule.id)
        return None

    def _chosen(self, what: str, verdict: Verdict | None) -> Choice:
        """The reader's choice; without a label when it is no configured one, or not confident enough."""
        choice: Choice = getattr(verdict, what) if verdict is not None else Choice()
        labels: Mapping[Severity, str] | Mapping[str, str] = getattr(
            self._labels, {"severity": "severities", "category": "categories", "action": "actions"}[what]
        )
        if choice.label is None or choice.confidence < self._min or choice.label not in set(labels):
            return Choice(None, choice.confidence, choice.tier)
        return choice

    def _discard(self, rule: RuleConfig) -> Decision:
        return Decision(severity=Choice(Severity.INFO, 1.0, Tier.RULE, rule.id), rule=rule.id, discard=True)


def _returns(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict.transition is Transition.CLEAR


def _transition(severity: Choice, clears: str | None, verdict: Verdict | None) -> Transition:
    """A severity that a rule states (`severity.rule`) raises whatever the reader makes of the words."""
    if clears is not None:
        return Transition.CLEAR
    if severity.label is None:
        return Transition.NONE
    if _returns(verdict) and severity.rule is None:
        return Transition.CLEAR
    return Transition.NONE if severity.label == Severity.INFO else Transition.RAISE
