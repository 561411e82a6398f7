"""Choices and free text, and names that only the field's own words betray."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pipeline.fields import Context, FieldConfig, Profile, normalise
from schemas.extraction import Candidate, FieldType, Span

Offered = Callable[..., dict[str, Candidate]]


def test_choices_are_found_in_any_case_as_whole_words(offered: Offered, berlin: Context) -> None:
    config = FieldConfig(type="choice", description="mode", choices=["Auto", "Hand", "自动"])
    found = offered("MODE=AUTO Handbuch, hand 自动", FieldType.CHOICE, Profile(fields={"mode": config}))
    assert set(found) == {"AUTO", "hand", "自动"}
    assert normalise("AUTO", Span(0, 4), config, berlin).value == "Auto"
    assert normalise("Handbuch", Span(0, 8), config, berlin).problem == "unknown_choice"


@pytest.mark.parametrize(
    ("line", "raw"),
    [
        ("Alarm acknowledged by operator Müller at panel 3", "Müller"),
        ("操作员：王伟 确认", "王伟"),
        ('{"operator":"j.doe","order":"PO-4711-22"}', "j.doe"),
        ("Auftrag PA6-2201 gestartet, Rezept Grau", "PA6-2201"),
    ],
)
def test_text_fields(offered: Offered, line: str, raw: str) -> None:
    profile = Profile(
        fields={
            "operator": FieldConfig(type="text", description="who acknowledged it, operator or 操作员"),
            "order": FieldConfig(type="text", description="production order, Auftrag"),
        }
    )
    assert raw in offered(line, FieldType.TEXT, profile)


def test_the_message_behind_the_head_is_a_text(offered: Offered) -> None:
    line = "2024-01-01 10:00:00 [ERROR] pump stopped by itself"
    assert "pump stopped by itself" in offered(line, FieldType.TEXT)


def test_no_text_is_offered_where_no_field_wants_it(offered: Offered) -> None:
    profile = Profile(fields={"device": FieldConfig(type="asset", description="machine")})
    assert offered('note="some words here"', FieldType.TEXT, profile) == {}


def test_a_codes_own_words_lead_to_it(offered: Offered) -> None:
    config = FieldConfig(type="code", description="Diagnosekennung der Steuerung")
    line = "Steuerung meldet Diagnosekennung: abbruch"
    assert "abbruch" in offered(line, FieldType.CODE, Profile(fields={"kennung": config}))


def test_blanks_in_text_are_made_one(berlin: Context) -> None:
    config = FieldConfig(type="text", description="note")
    assert normalise(" a \t b ", Span(0, 7), config, berlin).value == "a b"
