"""A person's answer is a lesson only as far as it stands in the line and among the labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from making import BERLIN, LABELS, NOW, PROFILE, line

from pipeline.fields import Context
from pipeline.patterns import Lesson, Match, Plan, Taught, Trust, learn, sign
from pipeline.review.correction import Answer, Correction, ReviewRefused, lesson_of
from pipeline.stages.decide import Decider
from pipeline.stages.judge import Judge
from pipeline.stages.ticket import evidence
from pipeline.stages.validate import Validator
from schemas.extraction import Choice, Extraction, FieldValue, Null, Span, Tier, Transition

TEXT = "press7 E207 bearing 92 C, limit 92"


def lesson(known: Lesson | None = None, shown: Mapping[str, Any] | None = None, **said: Any) -> Lesson:
    return lesson_of(line(TEXT), known, Answer("ada", Correction(**said), shown), PROFILE, LABELS)


def spans(taught: Lesson, text: str = TEXT) -> dict[str, str | None]:
    found = taught.plan.spans(text, sign(text))
    return {name: span.of(text) if span is not None else None for name, span in found.items()}


SURE, UNSURE = 0.95, 0.5


def decided(fields: Mapping[str, FieldValue] | None = None, **given: Any) -> Lesson:
    """What a reader taught: every field read, those of `fields` as given."""
    plan = learn(TEXT, sign(TEXT), Extraction(dict(fields or {}), "model"), PROFILE)
    assert plan is not None
    values = {"severity": Choice("error", SURE, Tier.MODEL), "transition": Transition.RAISE, **given}
    return Lesson(plan, taught_by="model", **values)


def value(word: str, confidence: float) -> FieldValue:
    start = TEXT.index(word)
    return FieldValue(Span(start, start + len(word)), None, confidence=confidence, tier=Tier.MODEL)


def as_shown(known: Lesson) -> dict[str, Any]:
    """What a question shows of a line that is read by `known`."""
    match = Match(sign(TEXT), "E207", 1, Taught(known, 1, 0))
    judge = Judge(Decider([], LABELS, 0.8), Validator(PROFILE, LABELS, BERLIN, 0.8), PROFILE, 0.8, True)
    extraction = known.plan.read(TEXT, match.signature, PROFILE, Context(BERLIN, NOW))
    return evidence(judge.judge(line(TEXT), extraction, known.verdict(extraction)).change)


def test_what_is_said_is_taught_in_the_persons_name() -> None:
    taught = lesson(values={"device": "press7", "error_code": "E207"}, severity="error")
    assert spans(taught) == {"device": "press7", "error_code": "E207"}
    unread = {"timestamp", "temperature"}
    assert taught.plan.stale_fields(PROFILE) == unread, "what nobody has read is still to be read"
    assert (taught.taught_by, taught.trust, taught.by_person) == ("person:ada", Trust.TRUSTED, True)
    assert taught.severity == Choice("error", 1.0, Tier.PERSON)


def test_a_value_by_position_where_it_stands_twice() -> None:
    with pytest.raises(ReviewRefused, match=r"'92' stands there more than once; say which: temperature="):
        lesson(values={"temperature": "92"}, severity="error")
    start = TEXT.rindex("92")
    taught = lesson(spans={"temperature": (start, start + 2)}, severity="error")
    assert spans(taught)["temperature"] == "92"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"values": {"device": "press8"}}, "'press8' does not stand in the line"),
        ({"values": {"device": ""}}, "'' does not stand in the line"),
        ({"values": {"colour": "red"}}, "no field colour; the profile has: timestamp, device"),
        ({"spans": {"colour": (0, 1)}}, "no field colour"),
        ({"nulls": {"colour": "absent"}}, "no field colour"),
        ({"spans": {"device": (3, 3)}}, "no part of the line"),
        ({"spans": {"device": (-1, 3)}}, "no part of the line"),
        ({"spans": {"device": (0, 999)}}, "no part of the line"),
        ({"spans": {"device": (5, 7)}}, "may not begin or end with a blank"),
        ({"nulls": {"device": "unsure"}}, "device: null is absent or bad, not 'unsure'"),
        ({"severity": "fatal"}, "severity 'fatal' is not configured; choose one of: info, warning"),
        ({"category": "poetry"}, "category 'poetry' is not configured"),
        ({"action": "rm -rf /"}, "action 'rm -rf /' is not configured"),
    ],
)
def test_what_is_no_span_and_no_label_is_refused(said: dict[str, Any], words: str) -> None:
    with pytest.raises(ReviewRefused, match=words.replace("(", r"\(")):
        lesson(**{"severity": "error", **said})


def test_absent_and_bad_are_kept_apart() -> None:
    taught = lesson(severity="error", nulls={"device": "absent", "temperature": "bad"})
    assert taught.plan.fields["device"].null is Null.ABSENT
    assert taught.plan.fields["temperature"].null is Null.BAD


LABELLED = {"severity": "error", "category": "process_alarm", "action": "call_mechanic"}


@pytest.mark.parametrize("confidence", [SURE, UNSURE])
@pytest.mark.parametrize("stated", [None, *LABELLED])
def test_what_is_not_stated_keeps_who_read_it_and_how_surely(stated: str | None, confidence: float) -> None:
    read = {what: Choice(label, confidence, Tier.MODEL) for what, label in LABELLED.items()}
    known = decided({"device": value("press7", confidence)}, **read, clears="E207")
    said = {stated: LABELLED[stated]} if stated is not None else {"values": {"error_code": "E207"}}
    taught = lesson(known, **said)
    for what, choice in read.items():
        own = Choice(LABELLED[what], 1.0, Tier.PERSON)
        assert getattr(taught, what) == (own if what == stated else choice)
    assert taught.plan.fields["device"] == known.plan.fields["device"]
    assert (taught.transition, taught.clears) == (known.transition, "E207")
    assert spans(taught)["error_code"] == ("E207" if stated is None else None)


@pytest.mark.parametrize("unsure", [*LABELLED, None])
def test_an_approval_confirms_what_was_shown_and_no_more(unsure: str | None) -> None:
    read = {
        what: Choice(label, UNSURE if what == unsure else SURE, Tier.MODEL)
        for what, label in LABELLED.items()
    }
    fields = {
        "device": value("press7", UNSURE),
        "temperature": value("92", SURE),
        "timestamp": FieldValue(None, Null.UNSURE, confidence=0.0),
    }
    known = decided(fields, **read)
    taught = lesson(known, as_shown(known))
    for what, choice in read.items():
        own = Choice(LABELLED[what], 1.0, Tier.PERSON)
        assert getattr(taught, what) == (choice if what == unsure else own), "it was shown empty"
    sure = {name: how.confidence for name, how in taught.plan.fields.items()}
    assert sure == {"device": 1.0, "temperature": 1.0, "error_code": 1.0, "timestamp": 0.0}
    assert taught.plan.fields["timestamp"].null is Null.UNSURE
    assert "timestamp" in taught.unsure


def test_an_approval_does_not_confirm_what_has_come_to_be_read_otherwise() -> None:
    saw = as_shown(decided({"device": value("press7", SURE), "temperature": value("92", SURE)}))
    known = decided({"device": value("bearing", 0.9)}, severity=Choice("critical", 0.9, Tier.MODEL))
    taught = lesson(known, saw)
    assert taught.severity == known.severity
    assert taught.plan.fields["device"].confidence == 0.9
    assert lesson(known, {}).plan.fields["error_code"].confidence == 1.0, "as it was read"
    assert lesson(known, {}).category == Choice()


def test_what_a_rule_said_is_not_taught_as_a_persons_word() -> None:
    known = decided(severity=Choice("error", UNSURE, Tier.MODEL))
    by_rule = {"severity": {"label": "error", "rule": "hot", "tier": "rule"}}
    assert lesson(known, by_rule).severity == known.severity


def test_what_several_lines_taught_outlives_a_correction_of_something_else() -> None:
    """The order of day and month, that one line alone does not tell."""
    stamp = {"timestamp": value("92", SURE)}
    known = decided(stamp)
    how = known.plan.fields["timestamp"]
    ordered = replace(how, convention=replace(how.convention, order="dmy"))
    known = replace(known, plan=Plan({**known.plan.fields, "timestamp": ordered}, known.plan.slots, "model"))
    assert lesson(known, severity="info").plan.fields["timestamp"].convention.order == "dmy"


@pytest.mark.parametrize(
    ("severity", "read", "transition"),
    [
        ("info", Transition.RAISE, Transition.NONE),
        ("info", Transition.CLEAR, Transition.CLEAR),
        ("warning", Transition.CLEAR, Transition.RAISE),
        ("warning", Transition.NONE, Transition.RAISE),
    ],
)
def test_a_stated_severity_raises_or_does_not(
    severity: str, read: Transition, transition: Transition
) -> None:
    assert lesson(decided(transition=read), severity=severity).transition is transition
    assert lesson(severity="info").transition is Transition.NONE
