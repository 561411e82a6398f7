"""What is read from a line. A value is a span of the text, or it is null; nothing here can carry text of
its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Null(StrEnum):
    """Why a field has no value: the line does not carry it; it carries a sentinel; the reader cannot tell."""

    ABSENT = "absent"
    BAD = "bad"
    UNSURE = "unsure"


class Tier(StrEnum):
    """Who read a value or took a decision, from cheapest to dearest."""

    RULE = "rule"
    PLAN = "plan"
    MODEL = "model"
    PERSON = "person"


class FieldType(StrEnum):
    """The field types a profile may use. Each has one file in pipeline/fields/."""

    TIMESTAMP = "timestamp"
    QUANTITY = "quantity"
    NUMBER = "number"
    CODE = "code"
    ASSET = "asset"
    CHOICE = "choice"
    TEXT = "text"


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Characters [start, end) of the decoded text."""

    start: int
    end: int

    def of(self, text: str) -> str:
        return text[self.start : self.end]

    def overlaps(self, other: Span) -> bool:
        return self.start < other.end and other.start < self.end


@dataclass(frozen=True, slots=True)
class Candidate:
    """A span that could be the value of a field of one of `types`.

    `unit` is the unit as written beside the number (or found in a neighbouring key), `dimension` what it
    measures ("temperature", "pressure", ...; None when the unit is unknown or missing). `named` is what the
    words beside it (its key, the prose before it) say it measures. `bad` marks sentinels (-127, 65535, ---).
    `weight` in 0..1 says how strongly the recogniser believes in it, before any field is considered.
    """

    span: Span
    types: frozenset[FieldType]
    unit: str | None = None
    dimension: str | None = None
    bad: bool = False
    weight: float = 0.5
    form: str = ""  # the recogniser's own name for the written form ("ymd_hms", "epoch_ms", "hex", ...)
    named: str | None = None


@dataclass(frozen=True, slots=True)
class FieldValue:
    """One field, read. `span` is None exactly when the line shows nothing; a *bad* value keeps its span.

    `normalised` is derived from the span by the field's normaliser (UTC ISO time, number in the field's
    unit, known code). `origin` says where it stands: "span", "pointer:/a/b", "topic". `confidence` is in
    0..1.
    """

    span: Span | None = None
    null: Null | None = Null.ABSENT
    normalised: str | float | None = None
    origin: str = "span"
    confidence: float = 1.0
    tier: Tier = Tier.RULE

    @property
    def present(self) -> bool:
        return self.null is None


class Severity(StrEnum):
    """The four severities, in rising order."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        return _SEVERITY_ORDER.index(self)


_SEVERITY_ORDER = (Severity.INFO, Severity.WARNING, Severity.ERROR, Severity.CRITICAL)


class Transition(StrEnum):
    """What an event does to its alarm: raises it, returns it to normal, or neither."""

    RAISE = "raise"
    CLEAR = "clear"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Choice:
    """One decision among configured labels; `label` is None when unsure."""

    label: str | None = None
    confidence: float = 0.0
    tier: Tier = Tier.RULE
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """Severity, category and action of an event, and what it does to its alarm.

    `rule` is the id of the decision rule that fired, if any. `reasons` are named, in the order they were
    found.
    """

    severity: Choice = field(default_factory=Choice)
    category: Choice = field(default_factory=Choice)
    action: Choice = field(default_factory=Choice)
    transition: Transition = Transition.NONE
    rule: str | None = None
    clears: str | None = None
    discard: bool = False
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Extraction:
    """Everything read from one line. `reader` names the model hash or rule set that read it."""

    fields: Mapping[str, FieldValue]
    reader: str = ""
    tier: Tier = Tier.RULE


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a reader (model or rules) made of one line: its fields and the decisions it would take.

    `notes` tell what a person should know of the reading ("the model saw only parts of a long line").
    """

    extraction: Extraction
    severity: Choice = field(default_factory=Choice)
    category: Choice = field(default_factory=Choice)
    action: Choice = field(default_factory=Choice)
    transition: Transition = Transition.NONE
    notes: tuple[str, ...] = ()
