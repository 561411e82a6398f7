"""A plan learnt from one line reads the others of its pattern: places, units, nulls, stale fields."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from pipeline.fields import Context, Profile
from pipeline.patterns.plan import Plan, learn
from pipeline.patterns.signature import sign
from schemas.extraction import Extraction, FieldValue, Null, Span, Tier

Extract = Callable[..., Extraction]
Read = Callable[..., dict[str, object]]


@pytest.fixture
def teach(profile: Profile, extraction: Extract) -> Callable[..., Plan]:
    """The plan learnt from a line, after a trip through JSON."""

    def make(text: str, **written: str | Null | None) -> Plan:
        plan = learn(text, sign(text), extraction(text, **written), profile)
        assert plan is not None
        again = Plan.from_json(json.loads(json.dumps(plan.to_json())))
        assert again == plan
        return again

    return make


@pytest.fixture
def read(profile: Profile, context: Context) -> Read:
    """What a plan finds: field -> written text, or the Null."""

    def make(plan: Plan, text: str) -> dict[str, object]:
        fields = plan.read(text, sign(text), profile, context).fields
        assert set(fields) == set(profile.fields)
        return {
            name: value.span.of(text) if value.null is None and value.span else value.null
            for name, value in fields.items()
            if value.null is not Null.ABSENT
        }

    return make


PLACES = [
    # (taught line, what was read there, another line of its pattern, what must be read there)
    (
        "2026-01-05 08:00:01 Pump 3 bearing 92.5 °C",
        {"timestamp": "2026-01-05 08:00:01", "device": "Pump 3", "temperature": "92.5"},
        "2026-01-06 10:00:01   Pump   14 bearing  101 °C",
        {"timestamp": "2026-01-06 10:00:01", "device": "Pump   14", "temperature": "101"},
    ),
    (
        "11/15/2019 | 18:50:40 | Kessel 2 zu heiß",
        {"timestamp": "11/15/2019 | 18:50:40", "device": "Kessel 2"},
        "11/16/2019 | 08:50:40 | Kessel 7 zu heiß",
        {"timestamp": "11/16/2019 | 08:50:40", "device": "Kessel 7"},
    ),
    ("SRVO-062 alarm (Group:1 Axis:3)", {"device": "Group:1 Axis:3", "error_code": "SRVO-062"},
     "SRVO-062 alarm (Group:2 Axis:11)", {"device": "Group:2 Axis:11", "error_code": "SRVO-062"}),
    ("Device 二车间3号空压机 lost", {"device": "二车间3号空压机"},
     "Device 二车间12号空压机 lost", {"device": "二车间12号空压机"}),
    ("ALARM:1", {"error_code": "ALARM:1"}, "ALARM:1", {"error_code": "ALARM:1"}),
    ("Kessel_Keller Kesseltemperatur: 62.1", {"device": "Kessel_Keller", "temperature": "62.1"},
     "Kessel_Keller Kesseltemperatur: -3", {"device": "Kessel_Keller", "temperature": "-3"}),
    ("Temp T-3.4 at 5", {"temperature": "-3.4"}, "Temp T-12 at 5", {"temperature": "-12"}),
    ("topic 'z2m/Halle 1', t 5", {"device": "Halle 1"}, "topic 'z2m/Werk 22', t 5", {"device": "Werk 22"}),
    ("Pump 1 and Pump 2 stop", {"device": "Pump 2"}, "Pump 1 and Pump 9 stop", {"device": "Pump 9"}),
]  # fmt: skip


@pytest.mark.parametrize(("line", "taught", "other", "expected"), PLACES)
def test_values_are_found_again(
    teach: Callable[..., Plan],
    read: Read,
    line: str,
    taught: dict[str, str],
    other: str,
    expected: dict[str, str],
) -> None:
    plan = teach(line, **taught)
    assert read(plan, line) == taught
    assert sign(other).text == sign(line).text
    assert read(plan, other) == expected


def test_a_part_of_a_slot_is_taken_only_where_the_slot_is_built_the_same(
    teach: Callable[..., Plan], read: Read
) -> None:
    plan = teach("topic 'z2m/Halle 1', t 5", device="Halle 1")
    for topic in ("z2m/Halle 1/battery 2", "home/sensor/x 1", "z2m"):
        line = f"topic '{topic}', t 5"
        if sign(line).text == sign("topic 'z2m/Halle 1', t 5").text:
            assert read(plan, line) == {"device": Null.UNSURE}


def test_half_a_number_is_never_cut_from_another(teach: Callable[..., Plan], read: Read) -> None:
    plan = teach("T=92.51 x", temperature="92.5")
    assert read(plan, "T=92.51 x") == {"temperature": "92.5"}
    assert read(plan, "T=14.77 x") == {"temperature": Null.UNSURE}


def test_units_and_conventions_are_learnt_with_the_place(
    teach: Callable[..., Plan], profile: Profile, context: Context, extraction: Extract
) -> None:
    line = "oil 500 mbar, 122 °F, 25.03.2025 10:00:00"
    plan = teach(line, pressure="500", temperature="122", timestamp="25.03.2025 10:00:00")
    other = "oil 1500 mbar, 212 °F, 03.04.2025 10:00:00"
    fields = plan.read(other, sign(other), profile, context).fields
    assert fields["pressure"].normalised == pytest.approx(1.5)
    assert fields["temperature"].normalised == pytest.approx(100)
    assert fields["timestamp"].normalised == "2025-04-03T10:00:00Z"
    assert {value.tier for value in fields.values()} == {Tier.PLAN}
    assert fields["pressure"].confidence == 0.9


def test_the_order_of_day_and_month_is_learnt_from_other_lines(
    profile: Profile, context: Context, extraction: Extract
) -> None:
    lines = ["at 03/04/2025 10:00:00 x", "at 03/25/2025 10:00:00 x"]
    first = extraction(lines[0], timestamp="03/04/2025 10:00:00")
    alone = learn(lines[0], sign(lines[0]), first, profile)
    both = learn(lines[0], sign(lines[0]), first, profile, [(lines[1], sign(lines[1]))])
    assert alone is not None and both is not None
    assert alone.read(lines[0], sign(lines[0]), profile, context).fields["timestamp"].null is Null.UNSURE
    value = both.read(lines[0], sign(lines[0]), profile, context).fields["timestamp"]
    assert value.normalised == "2025-03-04T10:00:00Z"


def test_a_unit_with_a_digit_must_stand_there_again(
    profile: Profile, context: Context, extraction: Extract
) -> None:
    flow = profile.model_copy(
        update={"fields": {"speed": profile.fields["pressure"].model_copy(update={"unit": "1/min"})}}
    )
    line, other = "n 900 min-1 ok", "n 900 min-2 ok"
    plan = learn(line, sign(line), extraction(line, speed="900"), flow)
    assert plan is not None and sign(line).text == sign(other).text
    assert plan.read(line, sign(line), flow, context).fields["speed"].normalised == 900
    assert plan.read(other, sign(other), flow, context).fields["speed"].null is Null.UNSURE


def test_a_sentinel_is_bad_and_the_next_value_is_not(
    profile: Profile, context: Context, extraction: Extract
) -> None:
    line, other = "temp -127 °C", "temp 21.5 °C"
    found = extraction(line, temperature="-127")
    bad = replace(found, fields={"temperature": replace(found.fields["temperature"], null=Null.BAD)})
    plan = learn(line, sign(line), bad, profile)
    assert plan is not None
    assert plan.read(line, sign(line), profile, context).fields["temperature"].null is Null.BAD
    assert plan.read(line, sign(line), profile, context).fields["temperature"].span == Span(5, 9)
    assert plan.read(other, sign(other), profile, context).fields["temperature"].normalised == 21.5


def test_what_a_pattern_never_carries_stays_bad(
    profile: Profile, context: Context, extraction: Extract
) -> None:
    line, other = "temp raw 512", "temp raw 498"
    found = extraction(line, temperature="512")
    bad = replace(found, fields={"temperature": replace(found.fields["temperature"], null=Null.BAD)})
    plan = learn(line, sign(line), bad, profile)
    assert plan is not None
    value = plan.read(other, sign(other), profile, context).fields["temperature"]
    assert (value.null, value.span) == (Null.BAD, Span(9, 12))


def test_a_sentinel_after_a_good_value_is_bad(teach: Callable[..., Plan], read: Read) -> None:
    plan = teach("temp 21.5 °C", temperature="21.5")
    assert read(plan, "temp -127 °C") == {"temperature": Null.BAD}


def test_a_value_out_of_range_is_kept_for_the_checks(
    teach: Callable[..., Plan], profile: Profile, context: Context
) -> None:
    plan = teach("temp 21.5 °C", temperature="21.5")
    value = plan.read("temp 900 °C", sign("temp 900 °C"), profile, context).fields["temperature"]
    assert (value.null, value.normalised) == (None, 900.0)


def test_unsure_stays_unsure(teach: Callable[..., Plan], read: Read) -> None:
    plan = teach("Pump 3 at 5", device=Null.UNSURE, temperature="5")
    assert read(plan, "Pump 4 at 6") == {"device": Null.UNSURE, "temperature": "6"}


def test_a_time_in_another_form_is_read_by_its_own(
    teach: Callable[..., Plan], profile: Profile, context: Context
) -> None:
    plan = teach("2026-01-05 08:00:01 x", timestamp="2026-01-05 08:00:01")
    for line, expected in (
        ("05.01.2026 09:00:00 x", "2026-01-05T09:00:00Z"),
        ("2026-01-05T09:00:00+01:00 x", "2026-01-05T08:00:00Z"),
    ):
        assert plan.read(line, sign(line), profile, context).fields["timestamp"].normalised == expected


def test_a_changed_field_makes_only_itself_stale(
    teach: Callable[..., Plan], profile: Profile, context: Context
) -> None:
    line = "Pump 3 at 5 °C"
    plan = teach(line, device="Pump 3", temperature="5")
    fields = dict(profile.fields)
    fields["temperature"] = fields["temperature"].model_copy(update={"unit": "°F"})
    fields["voltage"] = fields["pressure"].model_copy(update={"unit": "V"})
    del fields["error_code"]
    changed = Profile(fields=fields)
    assert plan.stale_fields(profile) == frozenset()
    assert plan.stale_fields(changed) == {"temperature", "voltage"}
    values = plan.read(line, sign(line), changed, context).fields
    assert {name for name, value in values.items() if value.null is Null.UNSURE} == {"temperature", "voltage"}
    assert values["device"].span == Span(0, 6)
    assert "error_code" not in values


def test_a_line_of_another_pattern_is_refused(
    teach: Callable[..., Plan], profile: Profile, context: Context
) -> None:
    with pytest.raises(ValueError, match="slots"):
        teach("Pump 3", device="Pump 3").read("Pump 3 4", sign("Pump 3 4"), profile, context)


@pytest.mark.parametrize("span", [Span(0, 99), Span(3, 3), Span(4, 6), Span(3, 5), Span(-1, 2)])
def test_no_plan_from_a_span_that_is_none(profile: Profile, span: Span) -> None:
    line = "Pump 3 x"
    assert learn(line, sign(line), Extraction({"device": FieldValue(span, None)}), profile) is None


def test_what_came_from_elsewhere_is_not_looked_for_in_the_text(profile: Profile, context: Context) -> None:
    line = "bearing 5 hot"
    topic = FieldValue(None, None, "press-7", origin="topic")
    plan = learn(line, sign(line), Extraction({"device": topic}), profile)
    assert plan is not None
    assert plan.read(line, sign(line), profile, context).fields["device"].null is Null.ABSENT
