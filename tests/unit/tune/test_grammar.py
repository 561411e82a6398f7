"""Format files: what may be written in them, and that the shipped ones are right and many."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.tune.grammar import CATEGORIES, Slot, load, parse
from pipeline.tune.values import TIME_FORMS
from schemas.errors import AndonError
from schemas.extraction import Severity

FORMATS_MIN = 200


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("a {device} b", ("a ", Slot("device"), " b")),
        ("{temperature kPa}", (Slot("temperature", True, "kPa"),)),
        ("{temperature #}", (Slot("temperature", True, "#"),)),
        ("{~pressure}/{~number}", (Slot("pressure", False), "/", Slot("number", False))),
        ("{@device}", (Slot("device", again=True),)),
        ("{on|off}", (Slot(words=("on", "off")),)),
        ('{{"a": 1}}', ("{", '"a": 1', "}")),
        ("{LEVEL}", (Slot("level"),)),
    ],
)
def test_slots(text: str, pieces: tuple[str | Slot, ...]) -> None:
    assert parse(text) == pieces


@pytest.mark.parametrize(
    "text", ["{colour}", "{~level_word}", "{~time zone|}x{nothing}", "{Temperature}", "{~user }x{9}"]
)
def test_an_unknown_slot_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="no slot"):
        parse(text)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ('lines: ["{time} no place"]', "needs {message}"),
        ('lines: ["{message} {colour}"]', "no slot {colour}"),
        ("lines: []", "lines"),
        ('lines: ["{message}"]\n  colour: red', "colour"),
    ],
)
def test_a_wrong_format_is_named_with_its_file(tmp_path: Path, fault: str, said: str) -> None:
    text = f'- name: "odd"\n  {fault}\n  messages: [{{text: "x", severity: info, category: other}}]\n'
    (tmp_path / "some.yaml").write_text(text, "utf-8")
    with pytest.raises(AndonError, match=r"some\.yaml: odd") as caught:
        load(tmp_path)
    assert said in str(caught.value)


def test_a_name_is_used_once(tmp_path: Path) -> None:
    one = '- {name: "a", lines: ["{message}"], messages: [{text: "x", severity: info, category: other}]}\n'
    (tmp_path / "some.yaml").write_text(one + one, "utf-8")
    with pytest.raises(AndonError, match="used twice: a"):
        load(tmp_path)


def test_the_shipped_formats_are_many_and_of_every_kind() -> None:
    formats = load()
    messages = [message for one in formats for message in one.messages]
    assert len(formats) >= FORMATS_MIN
    assert {form for one in formats for form in one.time} <= TIME_FORMS
    for severity in Severity:
        assert sum(message.severity is severity for message in messages) >= len(messages) / 20
    for category in CATEGORIES:
        assert sum(message.category == category for message in messages) >= 20
