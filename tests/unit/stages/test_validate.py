"""Fail closed, with named reasons; and only where it matters."""

from __future__ import annotations

from typing import Any

import pytest
from making import BERLIN, LABELS, PROFILE, line, reading

from pipeline.fields.definition import Profile
from pipeline.stages.validate import Checked, Validator
from schemas.extraction import (
    Choice,
    Decision,
    Extraction,
    FieldValue,
    Null,
    Severity,
    Span,
    Tier,
    Transition,
)

TEXT = "2026-03-02 10:00:00 Fan 2 E207 temp 93 °C"
NONE_READ = Extraction({})


def at(word: str, confidence: float = 0.95, normalised: str | float | None = None) -> FieldValue:
    start = TEXT.index(word)
    return FieldValue(
        Span(start, start + len(word)), None, normalised, confidence=confidence, tier=Tier.MODEL
    )


def decided(severity: str | None = "error", **given: Any) -> Decision:
    return Decision(severity=Choice(severity, 0.9), **given)


def check(
    profile: dict[str, Any] | None = None,
    decision: Decision | None = None,
    text: str = TEXT,
    **read: FieldValue,
) -> Checked:
    fields = {name: config.model_dump(exclude_unset=True) for name, config in PROFILE.fields.items()}
    merged = Profile.model_validate({"fields": {**fields, **(profile or {})}})
    return Validator(merged, LABELS, BERLIN, 0.8).check(line(text), Extraction(read), decision or decided())


def field(type_: str, **given: Any) -> dict[str, Any]:
    return {"type": type_, "description": "x", **given}


UNSURE = FieldValue(null=Null.UNSURE)
SURE = field("asset", required=True, confidence_min=0.99)
NARROW = field("quantity", unit="°C", range=[0, 50])


def test_a_sound_event_passes_and_says_what_held() -> None:
    checked = check(timestamp=at("2026-03-02 10:00:00"), device=at("Fan 2"), temperature=at("93"))
    assert checked.reasons == []
    assert "temperature in -40..200 °C" in checked.passed


def test_a_field_with_a_low_threshold_of_its_own_is_sure_sooner_and_the_others_are_not() -> None:
    easy = {"device": field("asset", required=True, confidence_min=0.5)}
    assert check(easy, device=at("Fan 2", 0.5), temperature=at("93", 0.5)).unsure == ["temperature"]


@pytest.mark.parametrize(
    ("profile", "read", "reason", "detail"),
    [
        ({"device": field("asset", required=True)}, {}, "missing_required", "device is required"),
        ({"device": field("asset", required=True)}, {"device": UNSURE}, "unsure_device", "cannot tell"),
        ({"device": field("asset", required=True)}, {"device": at("Fan 2", 0.5)}, "unsure_device", "50%"),
        ({"device": SURE}, {"device": at("Fan 2", 0.98)}, "unsure_device", "98%"),
        ({}, {"temperature": at("93", normalised=480.0)}, "out_of_range", "480 °C, outside -40..200 °C"),
        (
            {"temperature": field("quantity", unit="°C", range=[0, 50])},
            {"temperature": at("93")},
            "out_of_range",
            "",
        ),
        ({"error_code": field("code", known=["E1"])}, {"error_code": at("E207")}, "unknown_code", "'E207'"),
        ({"device": field("asset", known=["Fan 1"])}, {"device": at("Fan 2")}, "unknown_asset", "'Fan 2'"),
        ({"speed": field("quantity")}, {"speed": at("93"), "temperature": at("93")}, "shared_value", "same"),
    ],
)
def test_what_holds_an_event_back(
    profile: dict[str, Any], read: dict[str, FieldValue], reason: str, detail: str
) -> None:
    checked = check(profile, **read)
    assert checked.reasons == [reason]
    assert detail in checked.details[0]
    routine = check(profile, decided("info"), **read)
    assert routine.reasons == [], "of a routine line nobody needs the fields"


AMBIGUOUS = "06:41:10 02/01/2026 Fan 2 E207 temp 93 °C"


def test_what_nothing_rests_on_is_left_out_and_named() -> None:
    stamp = FieldValue(Span(0, 19), None, None, confidence=0.95)
    for checked in (
        check(text=AMBIGUOUS, timestamp=stamp),
        check(timestamp=at("2026-03-02", 0.5)),
        check(timestamp=UNSURE),
    ):
        assert (checked.reasons, checked.unsure) == ([], ["timestamp"])
        assert checked.remarks[0].startswith("timestamp: the line's own time could not be read surely (")
        assert not any("timestamp" in held for held in checked.passed)
    required = {"timestamp": field("timestamp", required=True)}
    assert check(required, text=AMBIGUOUS, timestamp=stamp).reasons == ["unsure_timestamp"]


def test_what_the_decision_rests_on_holds_the_event_back() -> None:
    validator = Validator(PROFILE, LABELS, BERLIN, 0.8)
    read = Extraction({"device": UNSURE, "temperature": UNSURE})
    checked = validator.check(line(TEXT), read, decided(), {"temperature"})
    assert (checked.reasons, checked.unsure) == (["unsure_temperature"], ["device", "temperature"])


def test_a_number_that_is_unsure_is_shared_with_nobody() -> None:
    checked = check({"speed": field("quantity")}, speed=at("93", 0.5), temperature=at("93"))
    assert checked.reasons == []


def test_units_count_in_ranges() -> None:
    text = "temp 93 °F"
    read = {"temperature": FieldValue(Span(5, 7), None, None, tier=Tier.MODEL)}
    assert check({"temperature": NARROW}, text=text, **read).reasons == [], "93 °F are 34 °C"
    assert check({"temperature": NARROW}, text="temp 93 °C", **read).reasons == ["out_of_range"]


@pytest.mark.parametrize("stamp", ["1970-01-01 00:00:05", "2126-03-02 10:00:00"])
def test_a_dead_clock_is_remarked_and_holds_back_only_where_time_is_required(stamp: str) -> None:
    text = f"{stamp} Fan 2 failed"
    read = {"timestamp": FieldValue(Span(0, len(stamp)), None, None)}
    checked = check(text=text, **read)
    assert checked.reasons == [] and checked.remarks[0].startswith("implausible_time")
    required = check({"timestamp": field("timestamp", required=True)}, text=text, **read)
    assert required.reasons == ["implausible_time"]


def test_an_unsure_severity_is_named_with_all_else_that_is_wrong() -> None:
    required = {"device": field("asset", required=True)}
    checked = check(required, decision=decided(None), device=UNSURE, temperature=UNSURE)
    assert checked.reasons == ["unsure_severity", "unsure_device"]
    assert "temperature" in checked.remarks[0]


@pytest.mark.parametrize("what", ["category", "action"])
def test_labels_that_do_not_exist_any_more(what: str) -> None:
    decision = decided(**{what: Choice("gone", 1.0)})
    assert check(decision=decision).reasons == [f"unknown_{what}"]
    assert check(decision=decided(**{what: Choice(None)})).reasons == [], "none is no wrong one"


def test_labels_are_checked_for_readings_too() -> None:
    validator = Validator(PROFILE, LABELS, BERLIN, 0.8)
    decision = decided(action=Choice("gone", 1.0))
    assert validator.check(reading(), None, decision).reasons == ["unknown_action"]
    assert validator.check(reading(), None, decided()).reasons == []


def test_a_return_to_normal_that_reads_as_an_error_is_a_contradiction() -> None:
    assert check(decision=decided(transition=Transition.CLEAR)).reasons == ["contradiction"]
    by_rule = decided(transition=Transition.CLEAR, clears="jam")
    assert check(decision=by_rule).reasons == []


def test_a_line_that_was_not_read_lacks_what_is_required() -> None:
    required = Profile.model_validate({"fields": {"device": field("asset", required=True)}})
    validator = Validator(required, LABELS, BERLIN, 0.8)
    assert validator.check(line(), None, decided()).reasons == ["missing_required"]
    assert validator.check(line(), NONE_READ, decided("warning")).reasons == ["missing_required"]
    assert (
        validator.check(line(), NONE_READ, Decision(severity=Choice(Severity.INFO), discard=True)).reasons
        == []
    )
