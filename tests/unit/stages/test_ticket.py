"""What a ticket says: text of machines is shown, never obeyed, and none of it is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import Plant, change, line

from pipeline.stages.facts import Facts
from pipeline.stages.ticket import TITLE_CHARS
from schemas.ticket import Ticket

PLANT = Plant()


def ticket(text: str, component: str | None = None, topic: str = "plant/p7/log") -> Ticket:
    plant = PLANT.reset()
    plant.apply(change(line(text, topic=topic), facts=Facts("press", True, component)))
    (made,) = plant.tickets()
    return made


@pytest.mark.parametrize(
    ("text", "title", "body"),
    [
        ("\x1b[2Jpump 3 hot\x07", "\\x1b[2Jpump 3 hot\\x07", "\\x1b[2Jpump 3 hot\\x07"),
        ("\u202egnp.exe\u2066 hot", "\\u202egnp.exe\\u2066 hot", "\\u202egnp.exe\\u2066 hot"),
        ("hot\u2028Severity: info", "hot Severity: info", "hot\\u2028Severity: info"),
        ("20\xa0°C 温\u3000度", "20 °C 温 度", "20\xa0°C 温\u3000度"),
        ("ERROR a\n\tat b.c(D.java:1)", "ERROR a at b.c(D.java:1)", "ERROR a\n        at b.c(D.java:1)"),
        (
            "hot\nSeverity: info\nAction: none",
            "hot Severity: info Action: none",
            "hot\n    Severity: info\n    ",
        ),
    ],
)
def test_text_of_machines_is_shown_and_not_obeyed(text: str, title: str, body: str) -> None:
    made = ticket(text)
    assert made.title.endswith(title)
    assert f"What: {body}" in made.body
    assert made.line == text, "the evidence is as it came"


def test_every_row_is_clean(plant: Plant = PLANT) -> None:
    made = ticket("hot", component="Fan\x1b[0m", topic="plant/\u202ep7")
    assert "Where: press/Fan\\x1b[0m" in made.body
    assert "plant/\\u202ep7" in made.body
    assert made.title.startswith("ERROR press/Fan\\x1b[0m:")


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_a_ticket_holds_nothing_but_printable_text_and_its_own_rows(text: str) -> None:
    made = ticket(text)
    plain = ticket("x")
    assert made.title.replace("\xa0", " ").isprintable() and len(made.title) <= TITLE_CHARS
    rows = [row.partition(": ")[0] for row in made.body.split("\n") if not row.startswith(" ")]
    assert rows == [row.partition(": ")[0] for row in plain.body.split("\n")]
    assert not any(control in made.body for control in "\x1b\x00\x07\r\x85\u2028\u202e\u2066")
