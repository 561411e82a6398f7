"""What an event is about, in the words alarms are named by: where, which component, which code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.fields.definition import Profile
from pipeline.stages.payload import clean
from schemas.events import Event, LogLine
from schemas.extraction import Extraction, FieldType, FieldValue, Null


@dataclass(frozen=True, slots=True)
class Facts:
    """`scope` is the asset that topic or payload names, else source and topic; `component` is the line's.

    Only values that are sure are facts: an alarm must not be named by a guess. `unsure`: the line may name a
    component, and nobody can tell which.
    """

    scope: str
    named: bool
    component: str | None = None
    code: str | None = None
    unsure: bool = False

    @property
    def subject(self) -> str:
        """Subject of the alarm key: two presses' "Fan 2" are two subjects."""
        if self.component is None:
            return self.scope
        if not self.named or self.component.casefold() == self.scope.casefold():
            return self.component
        return f"{self.scope}/{self.component}"


def facts(event: Event, extraction: Extraction | None, profile: Profile, confidence_min: float) -> Facts:
    asset = event.asset
    scope = clean(asset or (f"{event.source}/{event.topic}" if event.topic else event.source))
    if extraction is None or not isinstance(event, LogLine):
        return Facts(scope, asset is not None)
    component = _first(event.text, extraction, profile, FieldType.ASSET, confidence_min)
    code = _first(event.text, extraction, profile, FieldType.CODE, confidence_min)
    unsure = component is None and any(doubtful_assets(extraction, profile, confidence_min))
    return Facts(scope, asset is not None, component, code, unsure)


def doubtful_assets(extraction: Extraction, profile: Profile, confidence_min: float) -> Iterator[str]:
    """The fields that may name a component, but not surely."""
    for name, config in profile.fields.items():
        value = extraction.fields.get(name)
        if config.type is FieldType.ASSET and value is not None:
            least = profile.confidence_min(name, confidence_min)
            if value.null is Null.UNSURE or (value.span is not None and value.confidence < least):
                yield name


def shown(text: str, value: FieldValue) -> str | None:
    """A field as people and alarm keys see it: normalised, else as written; None when there is no value."""
    if not value.present:
        return None
    if value.normalised is not None:
        return str(value.normalised)
    return value.span.of(text) if value.span is not None else None


def _first(
    text: str, extraction: Extraction, profile: Profile, type_: FieldType, confidence_min: float
) -> str | None:
    for name, config in profile.fields.items():
        value = extraction.fields.get(name)
        if config.type is not type_ or value is None:
            continue
        if value.confidence >= profile.confidence_min(name, confidence_min):
            found = shown(text, value)
            if found is not None:
                return found
    return None
