"""The site's own labels are understood by their names and descriptions; none is named in the code."""

from __future__ import annotations

import pytest
from model_fakes import LABELS

from pipeline.fields.definition import Labels
from pipeline.model.decisions import choose_action, label_concepts, nearest, opinion
from pipeline.model.meaning import understand
from schemas.extraction import Choice, Severity

GERMAN = Labels(
    severities={
        Severity.INFO: "Betrieb",
        Severity.ERROR: "Funktion gestört",
        Severity.CRITICAL: "Anlage steht",
    },
    categories={
        "Mechanik": "ein Bauteil ist defekt",
        "Netz": "Verbindung, Kommunikation",
        "Prozess": "Prozesswert außerhalb der Grenzen",
        "Sonstiges": "alles andere",
    },
    actions={"instandhaltung": "Mechanik kommt zur Anlage", "it": "Netz prüfen"},
)


def test_labels_stand_for_concepts() -> None:
    assert label_concepts(tuple(GERMAN.categories.items())) == {
        "Mechanik": "hardware_fault",
        "Netz": "network_issue",
        "Prozess": "process_alarm",
        "Sonstiges": "other",
    }


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("Lager der Pumpe 3 defekt", "Mechanik"),
        ("SPS-04: keine Antwort, Verbindung unterbrochen", "Netz"),
        ("Ofen 2: Überdruck", "Prozess"),
        ("Pumpe 3 läuft", "Sonstiges"),
    ],
)
def test_a_german_site_gets_its_own_categories(text: str, category: str) -> None:
    assert opinion(understand(text), GERMAN).category.label == category


def test_a_severity_that_the_site_lacks_is_raised_never_lowered() -> None:
    assert nearest(Severity.WARNING, GERMAN) is Severity.ERROR
    assert (
        nearest(Severity.CRITICAL, Labels(severities={Severity.INFO: "x"}, categories={}, actions={})) is None
    )
    assert opinion(understand("modbus timeout"), GERMAN).severity.label == "error"


def test_no_labels_no_decisions() -> None:
    said = opinion(understand("pump 3 overload"), Labels(severities={}, categories={}, actions={}))
    assert said.severity.label is None
    assert said.category.label is None


def test_an_action_is_chosen_only_when_one_fits() -> None:
    assert choose_action(Choice("network_issue", 0.9), LABELS).label == "check_network"
    assert choose_action(Choice("hardware_fault", 0.9), LABELS).label == "call_mechanic"
    assert choose_action(Choice("security", 0.9), LABELS).label is None
    assert choose_action(Choice(None, 0.0), LABELS).label is None
    twice = LABELS.model_copy(update={"actions": {**LABELS.actions, "fix": "repair the broken part"}})
    assert choose_action(Choice("hardware_fault", 0.9), twice).label is None
