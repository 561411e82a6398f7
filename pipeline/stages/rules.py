"""Decision rules: their config, and compiled: which match, and behind which setpoints a value is back."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Any

import re2
from pydantic import Field, model_validator

from connectors.base import Strict
from pipeline.fields.definition import Profile
from pipeline.stages.facts import Facts
from pipeline.stages.topics import filter_pattern, glob_pattern
from schemas.events import Event, LogLine, Reading
from schemas.extraction import Extraction, FieldType, Severity

# For the automaton of all expressions of a source: RE2's own bound for one.
SET_BYTES = 8 * 1024 * 1024

Test = Callable[[Event, Facts], bool]


class When(Strict):
    """What a rule looks at. All conditions given must hold."""

    source: str | None = Field(default=None, description="name of a source")
    topic: str | None = Field(default=None, description="MQTT topic filter")
    asset: str | None = Field(default=None, description="name, * as wildcard")
    text: str | None = Field(default=None, description="RE2 expression searched in the line")
    code: list[str] | None = Field(default=None, description="codes, exactly as written")
    metric: str | None = Field(default=None, description="metric of a reading, * as wildcard")
    above: float | None = Field(default=None, description="setpoint: the reading (or `field`) is above it")
    below: float | None = Field(default=None, description="setpoint: the reading (or `field`) is below it")
    deadband: float = Field(
        default=0.0, ge=0, description="returns to normal only beyond setpoint by this much"
    )
    field: str | None = Field(default=None, description="field of a line that above/below apply to")

    @model_validator(mode="after")
    def _says_something(self) -> When:
        if not (self.model_fields_set - {"deadband"}):
            raise ValueError("state at least one condition (text, code, metric, topic, ...)")
        if (self.above is not None or self.below is not None) and (self.metric is None) == (
            self.field is None
        ):
            raise ValueError("above and below need either metric (of a reading) or field (of a line)")
        return self


class RuleConfig(Strict):
    """One decision rule. The first rule that matches decides what it states; what it leaves open goes on."""

    id: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$",
        description="name of the rule: the cause of its alarms, and the reason of what it discards",
    )
    when: When = Field(description="what an event must be like; all conditions must hold")
    severity: Severity | None = Field(default=None, description="how bad it is; left out: decided as usual")
    category: str | None = Field(
        default=None, description="one of the categories; left out: decided as usual"
    )
    action: str | None = Field(default=None, description="one of the actions; left out: decided as usual")
    clears: str | None = Field(
        default=None, description="id of the rule, or the code, whose alarm this returns to normal"
    )
    discard: bool = Field(
        default=False, description="the event is routine: counted under this rule's id, nothing else"
    )

    @model_validator(mode="after")
    def _does_something(self) -> RuleConfig:
        if not self.discard and self.clears is None and self.severity is self.category is self.action is None:
            raise ValueError("a rule states severity, category, action, clears or discard")
        return self


class Rule:
    """One rule. Its expression is looked for by `Rules`, together with those of the others."""

    def __init__(self, config: RuleConfig) -> None:
        self.config = config
        self._when = config.when
        self._tests = tuple(_tests(config))
        self.has_setpoint = self._when.above is not None or self._when.below is not None
        # Place and text are known before the line is read; code, field and the asset it names are not.
        self.needs_reading = any(x is not None for x in (self._when.code, self._when.field, self._when.asset))

    @property
    def reads_readings(self) -> bool:
        """Not a rule about lines, which says nothing of the readings beside them."""
        return self._when.metric is not None or self.config.discard

    def concerns(self, event: Event, facts: Facts) -> bool:
        """Every condition but the text and the setpoint holds."""
        if isinstance(event, Reading) and not self.reads_readings:
            return False
        return all(test(event, facts) for test in self._tests)

    def matches(self, event: Event, facts: Facts, extraction: Extraction | None) -> bool:
        if not self.concerns(event, facts):
            return False
        if not self.has_setpoint:
            return not isinstance(event, Reading) or event.value is not None or self.config.discard
        value = self._value(event, extraction)
        return value is not None and _beyond(value, self._when)

    def normal(self, event: Event, facts: Facts, extraction: Extraction | None) -> bool:
        """The value this rule watches is back behind its setpoint, by the deadband. Null is never normal."""
        if not self.has_setpoint or not self.concerns(event, facts):
            return False
        value = self._value(event, extraction)
        return value is not None and _behind(value, self._when)

    def _value(self, event: Event, extraction: Extraction | None) -> float | None:
        if isinstance(event, Reading):
            return event.value if self._when.metric is not None else None
        if self._when.field is None or extraction is None:
            return None
        field = extraction.fields.get(self._when.field)
        if field is None or not field.present:
            return None
        return _number(field.normalised)


class Rules:
    """The rules of a source, in order. Raises ValueError when an expression is not RE2."""

    def __init__(self, configs: Sequence[RuleConfig]) -> None:
        self.all = tuple(Rule(config) for config in configs)
        self._readings = tuple(rule for rule in self.all if rule.reads_readings)
        lines = [rule for rule in self.all if rule.config.when.metric is None]
        self._wordless = tuple(rule for rule in lines if rule.config.when.text is None)
        texts = [(config.id, config.when.text) for config in (rule.config for rule in lines)]
        self._texts = Texts([(id_, text) for id_, text in texts if text is not None])
        numbers = count()
        self._lines = tuple(
            (rule, next(numbers) if rule.config.when.text is not None else -1) for rule in lines
        )

    def look_at(self, profile: Profile) -> frozenset[str]:
        """The fields of a line that may decide whether a rule matches it."""
        whens = [rule.config.when for rule in self.all]
        named = {when.field for when in whens if when.field is not None}
        types = {FieldType.CODE for when in whens if when.code is not None}
        types |= {FieldType.ASSET for when in whens if when.asset is not None}
        return frozenset(n for n, config in profile.fields.items() if n in named or config.type in types)

    def about(self, event: Event) -> tuple[Rule, ...]:
        """Those that may match the event, in order: of rules about words only those whose words it has."""
        if isinstance(event, Reading):
            return self._readings
        found = self._texts.found(event.text)
        if not found:
            return self._wordless
        return tuple(rule for rule, number in self._lines if number < 0 or number in found)


class Texts:
    """Which of the rules' expressions are found in a line, in one pass over it however many there are."""

    def __init__(self, expressions: Sequence[tuple[str, str]], memory_bytes: int = SET_BYTES) -> None:
        """(id of the rule, its expression) each. Raises ValueError."""
        self._searches = [_search(rule, expression) for rule, expression in expressions]
        self._set = _set([expression for _, expression in expressions], memory_bytes)
        self._last: tuple[str, frozenset[int]] = ("", self._find(""))

    def found(self, text: str) -> frozenset[int]:
        """Their numbers. Remembered for the line at hand, which is asked about more than once; read and
        replaced in one step each, for threads."""
        last, found = self._last
        if last is not text:
            found = self._find(text)
            self._last = (text, found)
        return found

    def _find(self, text: str) -> frozenset[int]:
        if not self._searches:
            return _NONE
        found = self._set.Match(text) or () if self._set is not None else ()
        witness = len(self._searches)
        if witness not in found:  # out of memory: RE2's sets then find nothing, and do not say why
            return frozenset(n for n, search in enumerate(self._searches) if search(text) is not None)
        return _NONE if len(found) == 1 else frozenset(found) - {witness}


_NONE: frozenset[int] = frozenset()


def _search(rule: str, expression: str) -> Callable[[str], object | None]:
    try:
        search: Callable[[str], object | None] = re2.compile(expression, _options()).search
    except re2.error as error:
        raise ValueError(f"rule {rule}: {expression!r} is not an RE2 expression: {error}") from error
    return search


def _set(expressions: Sequence[str], memory_bytes: int) -> Any:
    """The expressions as one automaton, and behind them a witness that is found everywhere; None when they
    are too large together."""
    options = _options()
    options.max_mem = memory_bytes
    together = re2.Set.SearchSet(options)
    try:
        for expression in (*expressions, ""):
            together.Add(expression)
        together.Compile()
    except re2.error:
        return None
    return together


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False  # the error is raised: re2 need not print it too
    return options


def _number(value: str | float | None) -> float | None:
    try:
        number = math.nan if value is None else float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _beyond(value: float, when: When) -> bool:
    return (when.above is not None and value > when.above) or (when.below is not None and value < when.below)


def _behind(value: float, when: When) -> bool:
    """Outside of the deadband too; a deadband of 0 still asks to be no longer beyond."""
    return (when.above is None or value <= when.above - when.deadband) and (
        when.below is None or value >= when.below + when.deadband
    )


def _tests(config: RuleConfig) -> Iterator[Test]:
    """Every condition but the text, which is `Rules`' to look for, and the setpoint."""
    when = config.when
    if when.metric is not None:
        metric = glob_pattern(when.metric)
        yield lambda event, _: isinstance(event, Reading) and metric.fullmatch(event.metric) is not None
    elif when.text is not None or when.code is not None or when.field is not None:
        yield lambda event, _: isinstance(event, LogLine)
    if when.source is not None:
        yield lambda event, _: event.source == when.source
    if when.topic is not None:
        topic = filter_pattern(when.topic)
        yield lambda event, _: topic.fullmatch(event.topic) is not None
    if when.asset is not None:
        yield _asset_test(when.asset)
    if when.code is not None:
        codes = frozenset(when.code)
        yield lambda _, facts: facts.code in codes


def _asset_test(glob: str) -> Test:
    pattern = glob_pattern(glob)

    def test(event: Event, facts: Facts) -> bool:
        names = (event.asset, facts.component, facts.subject)
        return any(name is not None and pattern.fullmatch(name) for name in names)

    return test
