"""What lines say by their words: explicit levels, meaning, denials, return to normal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_fakes import LABELS

from pipeline.model.decisions import opinion
from pipeline.model.meaning import find_level, understand
from schemas.extraction import Severity, Transition


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("<187>12: sw1: link", Severity.ERROR),
        ("<6>[boot] ready", Severity.INFO),
        ("Nov 3 %PLATFORM-2-PEM_FAULT: power", Severity.CRITICAL),
        ("SW1 %%01IFNET/4/IF_STATE(l): down", Severity.WARNING),
        ("2024-01-01 00:00:00 ERROR pump 1", Severity.ERROR),
        ("2024-01-01 [ WARN] pump 1", Severity.WARNING),
        ("a - |ERROR| - b", Severity.ERROR),
        ('{"level":"fatal","msg":"x"}', Severity.CRITICAL),
        ("time=1 lvl=warn dev=2", Severity.WARNING),
        ("E (8812) adc: channel", Severity.ERROR),
        ("[10:00:00][W][x:1]: y", Severity.WARNING),
        ("2024-01-01T00:00:00Z E! [inputs] x", Severity.ERROR),
        ("error: no space", Severity.ERROR),
        ("10:00, Error, Service", Severity.ERROR),
        ("告警级别: 严重 泵", Severity.CRITICAL),
        ("pump 3 running", None),
        ("the error was corrected by hand", None),
        ("X-ERROR-LOG.txt written", None),
    ],
)
def test_explicit_levels(text: str, level: Severity | None) -> None:
    found = find_level(text)
    assert (found.severity if found else None) == level


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("axis 2 protective stop", "critical"),
        ("press 7: Not-Halt", "critical"),
        ("2号机 急停", "critical"),
        ("drive 4 overcurrent", "error"),
        ("Fühlerbruch Kessel 1", "error"),
        ("modbus timeout, retry 2", "warning"),
        ("INFO safety stop of cell 3", "critical"),  # max(level, meaning)
        ("ERROR pump ready", "error"),
        ("errors: 0", "info"),
        ("no error", "info"),
        ("fault=none alarm=off", "info"),
        ('{"ErrorCode":0,"alarm":false}', "info"),
        ("kein Fehler", "info"),
        ("无故障", "info"),
        ("fault on pump 3 cleared, back to normal", "info"),
        ("报警复位 3号泵", "info"),
        ("Störung behoben: Pumpe 2", "info"),
        ("speed 1480 rpm", "info"),
    ],
)
def test_severity_by_meaning(text: str, severity: str) -> None:
    assert opinion(understand(text), LABELS).severity.label == severity


@pytest.mark.parametrize(
    ("text", "transition"),
    [
        ("pump 3 overload", Transition.RAISE),
        ("pump 3 overload cleared", Transition.CLEAR),
        ("pump 3 overload not cleared", Transition.RAISE),
        ("pump 3 started", Transition.NONE),
        ("3号泵 过载 复归", Transition.CLEAR),
    ],
)
def test_transitions(text: str, transition: Transition) -> None:
    assert opinion(understand(text), LABELS).transition is transition


def test_a_sentinel_reading_is_a_sensor_fault() -> None:
    said = opinion(understand("tank 2 temp -127"), LABELS, sentinel=True)
    assert (said.severity.label, said.category.label) == ("error", "sensor_fault")


def test_a_code_alone_is_an_error_with_little_confidence() -> None:
    said = opinion(understand("SRVO-046"), LABELS, coded=True)
    assert said.severity.label == "error"
    assert said.severity.confidence < 0.6


@given(st.text(max_size=300))
def test_any_text_has_one_severity_and_one_transition(text: str) -> None:
    said = opinion(understand(text), LABELS)
    assert said.severity.label in {one.value for one in Severity}
    assert said.category.label is None or said.category.label in LABELS.categories
    assert 0 <= said.severity.confidence <= 1


@pytest.mark.parametrize(
    ("text", "severity", "category"),
    [
        # a part or a quantity is a place, no event
        ("bearing temp 54.0 C", "info", "other"),
        ("Fühler 3: 21,5 °C", "info", "other"),
        ("Spindel 1 Schwingung 3,4 mm/s", "info", "other"),
        ("certificate valid", "info", "other"),
        # and says whose work it is once something happened
        ("Fühler B4 defekt", "error", "sensor_fault"),
        ("encoder broken", "error", "hardware_fault"),
        ("probe missing", "error", "sensor_fault"),
        ("heartbeat failed", "error", "network_issue"),
        # a star inside an entry stands for the rest of a word
        ("configuration error in line", "error", "software_bug"),
        ("读取从站数据失败", "error", "network_issue"),
        # above a limit is no failure, a lost function is
        ("3号变 油温 86.3℃ 越限", "warning", "process_alarm"),
        ("Voralarm Windlast", "warning", "process_alarm"),
        # a wrong password is a warning, an intrusion is not
        ("failed password for root", "warning", "security"),
        ("tamper switch opened", "error", "security"),
    ],
)
def test_places_and_events(text: str, severity: str, category: str) -> None:
    said = opinion(understand(text), LABELS)
    assert (said.severity.label, said.category.label) == (severity, category)


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("WARNING 30034 something failed", "warning"),
        ("WARNING motor seized", "error"),
        ("WARNING emergency stop", "critical"),
        # the level before the last word is that of the alarm which is over
        ("CPU1 ERROR CLEAR", "info"),
        ("ALARM 12: tank empty, cleared.", "info"),
        ("printer ALERT: COVER OPEN CLEAR 2024-05-27 06:47:33", "info"),
        ("ERROR: alarm 3 not cleared", "error"),
        ("ERROR: could not be restored", "error"),
        ("ERROR buffer cleared by overflow", "error"),
    ],
)
def test_the_level_and_what_it_is_about(text: str, severity: str) -> None:
    assert opinion(understand(text), LABELS).severity.label == severity
