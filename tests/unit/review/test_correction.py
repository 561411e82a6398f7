"""A person's answer is a lesson only as far as it stands in the line and among the labels."""

from __future__ import annotations

from typing import Any

import pytest
from making import LABELS, PROFILE, line

from pipeline.patterns import Lesson, Trust, sign
from pipeline.patterns.plan import Plan
from pipeline.review.correction import Correction, ReviewRefused, lesson_of
from schemas.extraction import Choice, Extraction, FieldValue, Null, Span, Tier, Transition

TEXT = "press7 E207 bearing 92 C, limit 92"


def lesson(
    text: str = TEXT, read: Extraction | None = None, decided: Lesson | None = None, **said: Any
) -> Lesson:
    return lesson_of(line(text), read, decided, Correction(**said), PROFILE, LABELS, "ada")


def spans(taught: Lesson, text: str = TEXT) -> dict[str, str | None]:
    found = taught.plan.spans(text, sign(text))
    return {name: span.of(text) if span is not None else None for name, span in found.items()}


def decided(**given: Any) -> Lesson:
    values = {"severity": Choice("error", 0.6, Tier.MODEL), "transition": Transition.RAISE, **given}
    return Lesson(Plan({}, 0, "m"), taught_by="model", **values)


def test_what_is_said_is_taught_in_the_persons_name() -> None:
    taught = lesson(values={"device": "press7", "error_code": "E207"}, severity="error")
    assert spans(taught) == {
        "timestamp": None,
        "device": "press7",
        "error_code": "E207",
        "temperature": None,
    }
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


def test_somebody_has_to_say_how_severe_it_is() -> None:
    with pytest.raises(ReviewRefused, match="nobody knows how severe this is yet; say one of: info"):
        lesson(values={"device": "press7"})
    assert lesson(decided=decided()).severity == Choice("error", 1.0, Tier.PERSON)


def test_what_the_reader_was_unsure_of_has_to_be_said() -> None:
    read = Extraction({"device": FieldValue(None, Null.UNSURE, confidence=0.3)})
    with pytest.raises(ReviewRefused, match=r"device is unsure: give its value \(--set device="):
        lesson(read=read, severity="error")
    assert spans(lesson(read=read, severity="error", values={"device": "press7"}))["device"] == "press7"
    assert spans(lesson(read=read, severity="error", nulls={"device": "absent"}))["device"] is None


def test_absent_and_bad_are_kept_apart() -> None:
    taught = lesson(severity="error", nulls={"device": "absent", "temperature": "bad"})
    assert taught.plan.fields["device"].null is Null.ABSENT
    assert taught.plan.fields["temperature"].null is Null.BAD


def test_what_is_not_mentioned_stays_as_it_was_read() -> None:
    read = Extraction({"device": FieldValue(Span(0, 6), None, confidence=0.4, tier=Tier.MODEL)})
    before = decided(
        category=Choice("process_alarm", 0.5, Tier.MODEL), clears="E207", transition=Transition.CLEAR
    )
    taught = lesson(read=read, decided=before, values={"error_code": "E207"})
    assert spans(taught)["device"] == "press7"
    assert taught.plan.fields["device"].confidence == 1.0
    assert taught.category == Choice("process_alarm", 1.0, Tier.PERSON)
    assert taught.action == Choice()
    assert (taught.transition, taught.clears) == (Transition.CLEAR, "E207")


@pytest.mark.parametrize(
    ("severity", "transition"), [("info", Transition.NONE), ("warning", Transition.RAISE)]
)
def test_a_stated_severity_raises_or_does_not(severity: str, transition: Transition) -> None:
    assert lesson(severity=severity, decided=decided(transition=Transition.CLEAR)).transition is transition
