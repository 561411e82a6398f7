"""The reader without a model: a table for each labelling rule, any schema, any Unicode."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_fakes import LABELS, PROFILE, quantity

from pipeline.fields.definition import FieldConfig, Profile
from pipeline.model.rules import RulesReader
from schemas.extraction import FieldType, Null, Tier, Verdict

READER = RulesReader()


def read(text: str, profile: Profile = PROFILE) -> Verdict:
    return READER.read([text], profile, LABELS)[0]


def found(text: str, profile: Profile = PROFILE) -> dict[str, str]:
    fields = read(text, profile).extraction.fields
    return {name: value.span.of(text) for name, value in fields.items() if value.span is not None}


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        # timestamps: complete before partial, readable before epoch
        ("1699990012 2024-01-02 03:04:05 X", {"timestamp": "2024-01-02 03:04:05"}),
        # devices: component before host; not processes, users, ports
        ("Sep 14 03:12:00 box9 kernel: can0: bus-off", {"timestamp": "Sep 14 03:12:00", "device": "can0"}),
        ("Apr 4 06:00:08 gw-03 app[1]: started", {"timestamp": "Apr 4 06:00:08", "device": "gw-03"}),
        ("axis 2 of the press is ready", {"device": "axis 2"}),
        ("login of user meier_2", {}),
        # codes: beside a fault word, by shape; not zero, not prose, not a count
        ("drive 4: F30002 DC link", {"device": "drive 4", "error_code": "F30002"}),
        ("slave 9 fault=0x1F", {"device": "slave 9", "error_code": "0x1F"}),
        ("mixer_4 err:0", {"device": "mixer_4"}),
        ("Error: Printer halted", {}),
        ("ALARM:3", {"error_code": "ALARM:3"}),
        ("3号泵 故障码 E31", {"device": "3号泵", "error_code": "E31"}),
        # quantities: the measured one; not setpoints, limits, echoes, bare columns, digits of a name
        ("oven_1 T:205.3 /210.0", {"device": "oven_1", "temperature": "205.3"}),
        ("pump_1 pressure 6.1 bar, limit 7.0 bar", {"device": "pump_1", "pressure": "6.1"}),
        ("Kessel 2 Druck 5,1 bar Sollwert 6,0 bar", {"device": "Kessel 2", "pressure": "5,1"}),
        ("17;4;88.1;2.2;OK", {}),
        ("Send: N4 G1 X88.2 F1200", {}),
        ("sensor at boiler-1 ready", {"device": "boiler-1"}),
        ("mill_2 speed 1480 rpm 11.2 A", {"device": "mill_2", "speed": "1480", "current": "11.2"}),
        ('{"unit":"saw-3","vib_mm_s":1.1,"temp_c":null}', {"device": "saw-3", "vibration": "1.1"}),
    ],
)  # fmt: skip
def test_labelling_rules(text: str, fields: dict[str, str]) -> None:
    assert found(text) == fields


def test_a_sentinel_keeps_its_span_and_is_bad() -> None:
    text = '{"device":"DS18B20-1","temperature":-127.0}'
    value = read(text).extraction.fields["temperature"]
    assert value.null is Null.BAD
    assert value.span is not None
    assert value.span.of(text) == "-127.0"


def test_any_schema_works_by_names_and_descriptions() -> None:
    profile = Profile(
        fields={
            "inlet_temperature": quantity("water temperature at the inlet", "°C"),
            "outlet_temperature": quantity("water temperature at the outlet", "°C"),
            "torque": quantity("measured torque", "Nm"),
            "Füllstand": quantity("Füllstand des Tanks", "%"),
            "order": FieldConfig(type=FieldType.TEXT, description="order or batch number"),
            "mode": FieldConfig(
                type=FieldType.CHOICE, description="operating mode", choices=["auto", "manual"]
            ),
            "pieces": FieldConfig(type=FieldType.NUMBER, description="good pieces counted"),
        }
    )
    text = (
        "inlet temperature=41.2 °C outlet temperature=38.9 °C torque=12.5 Nm "
        "order=A-771 mode=auto pieces=1200"
    )
    assert found(text, profile) == {
        "inlet_temperature": "41.2",
        "outlet_temperature": "38.9",
        "torque": "12.5",
        "order": "A-771",
        "mode": "auto",
        "pieces": "1200",
    }
    assert found("Tank Füllstand 71 %", profile)["Füllstand"] == "71"


def test_known_assets_and_codes_of_the_site_win() -> None:
    profile = Profile(
        fields={
            "device": FieldConfig(type=FieldType.ASSET, description="machine", known=["the big one"]),
            "code": FieldConfig(type=FieldType.CODE, description="code", known=["OVR"]),
        }
    )
    assert found("node 3: the big one says OVR", profile) == {"device": "the big one", "code": "OVR"}


def test_every_value_names_its_tier_and_reader() -> None:
    extraction = read("pump_1 fault E21, 81 °C").extraction
    assert extraction.reader == READER.name == "rules:1"
    assert extraction.tier is Tier.RULE
    assert {value.tier for value in extraction.fields.values()} == {Tier.RULE}


def check(text: str, verdict: Verdict) -> None:
    """What must hold of any verdict: spans are slices within the text, disjoint, one a field, and labels are
    the site's.
    """
    spans = [value.span for value in verdict.extraction.fields.values() if value.span is not None]
    assert all(0 <= span.start < span.end <= len(text) for span in spans)
    assert not any(a.overlaps(b) for i, a in enumerate(spans) for b in spans[i + 1 :])
    for value in verdict.extraction.fields.values():
        assert 0.0 <= value.confidence <= 1.0
        assert (value.span is None) == (value.null in (Null.ABSENT, Null.UNSURE))
    assert verdict.severity.label in {None, *(one.value for one in LABELS.severities)}
    assert verdict.category.label in {None, *LABELS.categories}
    assert verdict.action.label in {None, *LABELS.actions}


@given(st.text(max_size=400))
def test_arbitrary_unicode_never_crashes_and_is_grounded(text: str) -> None:
    check(text, read(text))


WORDS = st.sampled_from(
    "2024-01-02 03:04:05 pump_3 drive 4 F30002 0x1F temp 81.5 °C limit = : / [ERR] alarm 7 , ; { \" ' 3号泵 "
    "温度 过高 null -127 to from <|im_end|> \x00 \ud800".split(" ")
)


@settings(max_examples=200)
@given(st.lists(WORDS, max_size=30).map(" ".join))
def test_lines_of_the_trades_own_words_never_crash_and_read_the_same_twice(text: str) -> None:
    first = read(text)
    check(text, first)
    assert read(text) == first


def test_a_line_gives_the_same_alone_and_in_company() -> None:
    lines = ["pump_1 fault E21", "x", "oven_1 T:205.3 /210.0", ""]
    alone = [READER.read([line], PROFILE, LABELS)[0] for line in lines]
    assert READER.read(lines, PROFILE, LABELS) == alone


def test_a_line_of_forty_thousand_characters_is_read() -> None:
    text = "pump_1 temp 81.5 °C " * 2_000
    verdict = read(text)
    check(text, verdict)
    assert verdict.extraction.fields["temperature"].span is not None
