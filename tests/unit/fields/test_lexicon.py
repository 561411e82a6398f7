"""Levels, meaning, returns to normal, opposites, what words measure."""

from __future__ import annotations

import pytest

from pipeline.fields import lexicon
from schemas.extraction import Severity

LEVELS = [
    ("2025-10-15 15:15:34 - |ERROR| - [x.py]", "error", "ERROR"),
    ("2022-10-14T20:23:38Z E! [inputs.modbus] x", "error", "E"),
    ("2022-05-09T13:50:02Z I! [agent] x", "info", "I"),
    ("[23:42:50][W][component:215]: x", "warning", "W"),
    ("E (48213) MB_MASTER: x", "error", "E"),
    ("[ WARN] [1723021908.68]: CMD", "warning", "WARN"),
    ('{"level":"info","message":"x"}', "info", "info"),
    ("level=error msg=x", "error", "error"),
    ("*Mar 23 13:59:43: %ENVMON-3-FAN_FAILED: x", "error", "3"),
    ("%SYS-0-PANIC: x", "critical", "0"),
    ("IFNET/4/LINK_STATE: x", "warning", "4"),
    ("<187>Nov 3 10:00:00 sw x", "error", "187"),
    ("<13>Nov 3 10:00:00 sw x", "info", "13"),
    ("INFO  [commander] LED open failed", "info", "INFO"),
    ("18.09.2023 14:07:45 Warnung Druck", "warning", "Warnung"),
    ("[2024-11-11 00:00:07] [报警] 2#注塑机", "error", "报警"),
    ("2020-01-01 10:00:00 FATAL x", "critical", "FATAL"),
]


@pytest.mark.parametrize(("line", "severity", "written"), LEVELS)
def test_level(line: str, severity: str, written: str) -> None:
    found = lexicon.level(line)
    assert found is not None
    assert (found[0], found[1].of(line)) == (Severity(severity), written)


@pytest.mark.parametrize(
    "line", ["the last error was fixed by hand", "T:34.12 /0.00", "", "pump error rate 3"]
)
def test_prose_states_no_level(line: str) -> None:
    assert lexicon.level(line) is None


@pytest.mark.parametrize(
    ("line", "severity", "category"),
    [
        ("Thermal Runaway, system stopped!", "critical", "hardware_fault"),
        ("Not-Halt aktiviert", "critical", "process_alarm"),
        ("操作面板紧急停止", "critical", "process_alarm"),
        ("Interface changed state to down", "warning", "network_issue"),
        ("read tcp: i/o timeout", "error", "network_issue"),
        ("通讯故障 动作", "error", "network_issue"),
        ("Login failed [user: root]", "warning", "security"),
        ("Fühlerbruch an Zone 2", "error", "sensor_fault"),
        ("Traceback: NullPointerException parse error", "error", "software_bug"),
        ("Lagerschaden Pumpe 3", "error", "hardware_fault"),
    ],
)
def test_meaning(line: str, severity: str, category: str) -> None:
    said = lexicon.meaning(line)
    assert (Severity(severity), category) in {(found[0], found[1]) for found in said}
    assert [found[2] for found in said] == sorted((found[2] for found in said), reverse=True)
    assert all(found[3].of(line) for found in said)


@pytest.mark.parametrize(
    "line",
    [
        "Temperature normal",
        "链路恢复",
        "SF6气压低 复归",
        "Störung behoben",
        "Alarm gegangen",
        "link is up",
        "RTN",
    ],
)
def test_clears(line: str) -> None:
    assert lexicon.clears(line)


@pytest.mark.parametrize(
    "line",
    [
        "not recovered",
        "未恢复",
        "nicht behoben",
        "abnormal exit",
        "异常",
        "alarm raised",
        "cannot be cleared",
        "",
    ],
)
def test_does_not_clear(line: str) -> None:
    assert not lexicon.clears(line)


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("on", "off"),
        ("OFF", "on"),
        ("gekommen", "gegangen"),
        ("动作", "复归"),
        ("合闸", "分闸"),
        ("ok", "fault"),
    ],
)
def test_opposites(word: str, other: str) -> None:
    assert other in lexicon.opposites(word)
    assert lexicon.opposites("pump") == frozenset()


@pytest.mark.parametrize(
    ("label", "dimension"),
    [  # the nearest word wins
        ("APhaseTemperature", "temperature"), ("Kesseltemperatur", "temperature"),
        ("排气温度", "temperature"), ("temp_in", "temperature"),
        ("T0", "temperature"), ("Wasserdruck", "pressure"), ("压力", "pressure"),
        ("vibration_rms", "vibration"), ("UAC", "voltage"), ("母线电压", "voltage"),
        ("Motorstrom", "current"),
        ("A相电流", "current"), ("motor_speed", "speed"), ("Drehzahl", "speed"), ("转速", "speed"),
        ("Volumenstrom", "flow"), ("Drehmoment", "torque"), ("humidity", "ratio"), ("pump", None), ("", None),
        ("pressure of the temperature", "temperature"),
    ],
)  # fmt: skip
def test_dimension(label: str, dimension: str | None) -> None:
    assert lexicon.dimension(label) == dimension


def test_all_lists_hold_words() -> None:
    for name in (
        "levels",
        "clears",
        "opposites",
        "meaning",
        "assets",
        "codes",
        "setpoints",
        "times",
        "units",
    ):
        assert lexicon.load(name)


def test_the_longer_word_wins() -> None:
    expression = lexicon.pattern(["fan", "fan fail*", "*泵*"])
    assert [match.group() for match in expression.finditer("fan  failure of 水泵, infant")] == [
        "fan  fail",
        "泵",
    ]
