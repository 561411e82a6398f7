"""Which lines are read, and what several readings teach together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pipeline.fields import Labels, Profile
from pipeline.patterns.agree import READINGS
from pipeline.patterns.learn import representatives, study
from pipeline.patterns.lesson import Lesson, Taught, Trust
from pipeline.patterns.signature import sign
from schemas.extraction import Choice, FieldValue, Null, Severity, Span, Transition, Verdict

Reads = Callable[..., Any]


def lines(count: int, start: int = 0) -> list[str]:
    return [
        f"2026-01-05 08:00:{n % 60:02} Pump {n} bearing {20 + n}.5 °C" for n in range(start, start + count)
    ]


def pump(text: str) -> str:
    return text.split(" bearing")[0][20:]


def temperature(text: str) -> str:
    return text.split()[-2]


def taught(lesson: Lesson) -> Taught:
    return Taught(lesson, 1, 0)


def test_a_burst_of_one_pattern_costs_three_readings(profile: Profile, labels: Labels, reads: Reads) -> None:
    reader = reads(device=pump, temperature=temperature)
    lesson = study(lines(1000), profile, labels, reader)
    assert lesson is not None
    assert len(reader.asked) == READINGS == len(set(reader.asked))
    assert (lesson.trust, lesson.agreed, lesson.unsure) == (Trust.TRUSTED, READINGS, ("action",))
    other = "2026-01-05 08:00:00 Pump 77 bearing 9.5 °C"
    assert lesson.plan.spans(other, sign(other))["device"] == Span(20, 27)
    assert lesson.severity.label == Severity.ERROR
    assert lesson.taught_by == "model:scripted"


def test_equal_lines_are_read_once(profile: Profile, labels: Labels, reads: Reads) -> None:
    reader = reads(device=pump)
    lesson = study(lines(1) * 500, profile, labels, reader)
    assert lesson is not None
    assert len(reader.asked) == 1
    assert lesson.trust is Trust.PROVISIONAL


def test_a_line_without_slots_needs_no_second_reading(profile: Profile, labels: Labels, reads: Reads) -> None:
    lesson = study(["GPS glitch"] * 9, profile, labels, reads())
    assert lesson is not None
    assert lesson.trust is Trust.TRUSTED


def test_a_provisional_lesson_is_checked_until_three_agree(
    profile: Profile, labels: Labels, reads: Reads
) -> None:
    reader = reads(device=pump, temperature=temperature)
    first = study(lines(1), profile, labels, reader)
    assert first is not None
    second = study([lines(1)[0], lines(1, 5)[0]], profile, labels, reader, taught(first))
    assert second is not None
    assert (second.trust, second.agreed) == (Trust.PROVISIONAL, 2)
    assert second.plan is first.plan
    third = study(lines(50, 10), profile, labels, reader, taught(second))
    assert third is not None
    assert (third.trust, third.agreed) == (Trust.TRUSTED, 3)
    assert third.says_the_same(first)
    assert len(reader.asked) == READINGS
    assert study(lines(50, 90), profile, labels, reader, taught(third)) is None
    assert len(reader.asked) == READINGS


def test_a_line_read_before_is_no_check(profile: Profile, labels: Labels, reads: Reads) -> None:
    reader = reads(device=pump)
    first = study(lines(1), profile, labels, reader)
    assert first is not None
    assert study(lines(1) * 3, profile, labels, reader, taught(first)) is None
    assert len(reader.asked) == 1


def test_readings_at_other_places_are_a_dispute(profile: Profile, labels: Labels, reads: Reads) -> None:
    reader = reads(device=lambda text: pump(text) if text.startswith("2026-01-05 08:00:00") else "bearing")
    lesson = study(lines(9), profile, labels, reader)
    assert lesson is not None
    assert lesson.trust is Trust.DISPUTED
    assert "device" in lesson.unsure
    assert lesson.plan.fields["device"].null is Null.UNSURE


def test_what_differs_in_a_routine_pattern_is_unsure_and_no_dispute(
    profile: Profile, labels: Labels, reads: Reads
) -> None:
    reader = reads(severity="info", device=lambda text: pump(text) if "Pump 0" in text else "bearing")
    lesson = study(lines(9), profile, labels, reader)
    assert lesson is not None
    assert lesson.trust is Trust.TRUSTED
    assert "device" in lesson.unsure


def test_a_name_that_stands_twice_is_one_name_but_a_number_is_not(
    profile: Profile, labels: Labels, reads: Reads
) -> None:
    texts = [f"cn{n} cn{n} at 5 bar, {n % 2 + 4} bar" for n in range(3)]

    def second(text: str) -> str:
        return text.split()[1]

    reader = reads(device=second)
    inner = reader.answer

    def answer(text: str) -> Verdict:
        verdict = inner(text)
        device = Span(4, 7) if "cn1" in text else Span(0, 3)
        pressure = Span(20, 21) if "cn1" in text else Span(11, 12)
        fields = {"device": FieldValue(device, None), "pressure": FieldValue(pressure, None)}
        return replace(verdict, extraction=replace(verdict.extraction, fields=fields))

    reader.answer = answer
    lesson = study(texts, profile, labels, reader)
    assert lesson is not None
    assert lesson.plan.fields["device"].place is not None
    assert lesson.plan.fields["pressure"].null is Null.UNSURE


def test_present_and_absent_is_a_dispute(profile: Profile, labels: Labels, reads: Reads) -> None:
    reader = reads(temperature=lambda text: temperature(text) if "Pump 0" in text else None)
    lesson = study(lines(3), profile, labels, reader)
    assert lesson is not None
    assert lesson.trust is Trust.DISPUTED


def test_severities_that_differ_are_a_dispute_and_unsure(
    profile: Profile, labels: Labels, reads: Reads
) -> None:
    reader = reads(severity=lambda text: "error" if "Pump 1 " in text else "warning", device=pump)
    lesson = study(lines(3), profile, labels, reader)
    assert lesson is not None
    assert (lesson.trust, lesson.severity.label) == (Trust.DISPUTED, None)
    assert lesson.plan.fields["device"].place is not None


def test_categories_that_differ_are_unsure_only(profile: Profile, labels: Labels, reads: Reads) -> None:
    reader = reads(device=pump)
    inner = reader.answer

    def answer(text: str) -> Verdict:
        label = "other" if "Pump 1 " in text else "process_alarm"
        return replace(inner(text), category=Choice(label, 0.9))

    reader.answer = answer
    lesson = study(lines(3), profile, labels, reader)
    assert lesson is not None
    assert (lesson.trust, lesson.category.label) == (Trust.TRUSTED, None)
    assert lesson.unsure == ("category", "action")


def test_raise_and_clear_is_a_dispute(profile: Profile, labels: Labels, reads: Reads) -> None:
    reader = reads(device=pump)
    inner = reader.answer
    reader.answer = lambda text: replace(
        inner(text), transition=Transition.CLEAR if "Pump 1 " in text else Transition.RAISE
    )
    lesson = study(lines(3), profile, labels, reader)
    assert lesson is not None
    assert (lesson.trust, lesson.transition) == (Trust.DISPUTED, Transition.NONE)


def test_abstaining_is_no_contradiction_but_costs_confidence(
    profile: Profile, labels: Labels, reads: Reads
) -> None:
    reader = reads(device=lambda text: Null.UNSURE if "Pump 0" in text else pump(text))
    lesson = study(lines(3), profile, labels, reader)
    assert lesson is not None
    assert lesson.trust is Trust.TRUSTED
    assert lesson.plan.fields["device"].place is not None
    assert lesson.plan.fields["device"].confidence == pytest.approx(0.6)


def test_a_check_can_settle_what_was_open(profile: Profile, labels: Labels, reads: Reads) -> None:
    first = study(lines(1), profile, labels, reads(device=lambda text: Null.UNSURE))
    assert first is not None and "device" in first.unsure
    second = study(lines(1, 7), profile, labels, reads(device=pump), taught(first))
    assert second is not None
    assert second.plan.fields["device"].place is not None
    assert "device" not in second.unsure
    assert second.checked > first.checked


def test_a_check_that_contradicts_is_a_dispute(profile: Profile, labels: Labels, reads: Reads) -> None:
    first = study(lines(2), profile, labels, reads(device=pump, temperature=temperature))
    assert first is not None and first.trust is Trust.PROVISIONAL
    second = study(
        lines(1, 7), profile, labels, reads(device=pump, temperature=lambda text: None), taught(first)
    )
    assert second is not None
    assert second.trust is Trust.DISPUTED
    assert second.plan.fields["temperature"].null is Null.UNSURE
    assert second.plan.fields["device"].place == first.plan.fields["device"].place


def test_a_reader_that_gives_no_span_of_the_line_abstains(
    profile: Profile, labels: Labels, reads: Reads
) -> None:
    reader = reads(device=pump)
    inner = reader.answer

    def answer(text: str) -> Verdict:
        verdict = inner(text)
        fields = {"device": replace(verdict.extraction.fields["device"], span=Span(900, 950))}
        return replace(verdict, extraction=replace(verdict.extraction, fields=fields))

    reader.answer = answer
    lesson = study(lines(3), profile, labels, reader)
    assert lesson is not None
    assert "device" in lesson.unsure


@pytest.mark.parametrize("by", ["model:a", "person:eva"])
def test_only_stale_fields_are_read_anew(profile: Profile, labels: Labels, reads: Reads, by: str) -> None:
    first = study(lines(3), profile, labels, reads(device=pump, temperature=temperature))
    assert first is not None
    first = replace(first, taught_by=by, clears="bearing-hot")
    fields = dict(profile.fields)
    fields["temperature"] = fields["temperature"].model_copy(update={"description": "of the bearing"})
    changed = Profile(fields=fields)
    reader = reads(severity="info", device=lambda text: "bearing", temperature=temperature)
    second = study(lines(9, 10), changed, labels, reader, taught(first))
    assert second is not None
    assert second.plan.stale_fields(changed) == frozenset()
    assert second.plan.fields["device"] is first.plan.fields["device"]
    assert second.plan.fields["temperature"].place == first.plan.fields["temperature"].place
    assert (second.severity, second.taught_by, second.trust) == (first.severity, by, Trust.TRUSTED)
    assert second.clears == "bearing-hot"


def test_nothing_to_read(profile: Profile, labels: Labels, reads: Reads) -> None:
    reader = reads()
    assert study([], profile, labels, reader) is None
    assert reader.asked == []


def test_representatives_differ_as_much_as_they_can() -> None:
    chosen = representatives(["a 1 1", "a 1 2", "a 1 3", "a 222 9", "a 1 4"], 2)
    assert chosen == ["a 1 1", "a 222 9"]
    assert representatives(["a 1"] * 5, 3) == ["a 1"]


def test_a_lesson_survives_json(profile: Profile, labels: Labels, reads: Reads) -> None:
    lesson = study(lines(3), profile, labels, reads(device=pump))
    assert lesson is not None
    lesson = replace(lesson, clears="x")
    again = Lesson.from_json(
        lesson.plan.to_json(), lesson.decisions(), str(lesson.trust), lesson.agreed, lesson.taught_by
    )
    assert again == replace(lesson, checked=frozenset())
