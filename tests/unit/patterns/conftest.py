"""A profile, labels, and a reader that answers from a script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from pipeline.fields import Context, FieldConfig, Labels, Profile
from schemas.extraction import Choice, Extraction, FieldType, FieldValue, Null, Severity, Span, Tier, Verdict


@pytest.fixture(scope="session")
def profile() -> Profile:
    return Profile(
        fields={
            "timestamp": FieldConfig(type=FieldType.TIMESTAMP, description="when it happened"),
            "device": FieldConfig(type=FieldType.ASSET, description="the machine"),
            "error_code": FieldConfig(type=FieldType.CODE, description="the code of the fault"),
            "temperature": FieldConfig(
                type=FieldType.QUANTITY, unit="°C", range=[-50, 400], description="temperature"
            ),
            "pressure": FieldConfig(type=FieldType.QUANTITY, unit="bar", description="pressure"),
        }
    )


@pytest.fixture(scope="session")
def labels() -> Labels:
    return Labels(
        severities={severity: str(severity) for severity in Severity},
        categories={"process_alarm": "limits", "other": "all else"},
        actions={"call_mechanic": "send somebody"},
    )


@pytest.fixture(scope="session")
def context() -> Context:
    return Context(UTC, datetime(2026, 3, 1, 12, 0, tzinfo=UTC))


@pytest.fixture(scope="session")
def extraction() -> Callable[..., Extraction]:
    """`extraction(text, device="Pump 3")`: the first place of each text; None is absent, a Null has none."""

    def make(text: str, confidence: float = 0.9, **written: str | Null | None) -> Extraction:
        fields: dict[str, FieldValue] = {}
        for name, value in written.items():
            if isinstance(value, Null) or value is None:
                fields[name] = FieldValue(None, value or Null.ABSENT, confidence=confidence)
            else:
                start = text.index(value)
                fields[name] = FieldValue(Span(start, start + len(value)), None, confidence=confidence)
        return Extraction(fields, "rules:test", Tier.RULE)

    return make


Answer = Callable[[str], Verdict]


@dataclass
class ScriptedReader:
    """Reads by a function and remembers what it was asked."""

    answer: Answer
    name: str = "model:scripted"
    asked: list[str] = field(default_factory=list)

    def read(self, texts: Sequence[str], profile: Profile, labels: Labels) -> list[Verdict]:
        self.asked += texts
        return [self.answer(text) for text in texts]


@pytest.fixture
def reads(extraction: Callable[..., Extraction]) -> Callable[..., ScriptedReader]:
    """`reads(device=lambda text: ..., severity="error")`: a reader that finds what the functions find."""

    def make(
        severity: str | Callable[[str], str | None] | None = "error", **finders: Callable[[str], object]
    ):
        def answer(text: str) -> Verdict:
            found = extraction(text, **{name: finder(text) for name, finder in finders.items()})
            label = severity(text) if callable(severity) else severity
            return Verdict(
                found, severity=Choice(label, 0.9, Tier.MODEL), category=Choice("other", 0.8, Tier.MODEL)
            )

        return ScriptedReader(answer)

    return make
