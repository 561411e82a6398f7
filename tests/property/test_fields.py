"""What holds for every line: candidates are slices that never cross, nothing crashes, values come back."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.fields import (
    CANDIDATES_MAX,
    Context,
    FieldConfig,
    Profile,
    candidates,
    lexicon,
    normalise,
    number,
    timestamp,
    units,
)
from schemas.extraction import FieldType, Null, Span

NOW = datetime(2025, 6, 1, 12, 0, tzinfo=UTC)
CONTEXT = Context(ZoneInfo("Europe/Berlin"), NOW)
CONFIGS = [
    FieldConfig(type="timestamp", description="when"),
    FieldConfig(type="quantity", description="temperature", unit="°C", range=[-50, 900]),
    FieldConfig(type="number", description="count", range=[0, 10]),
    FieldConfig(type="code", description="fault code", known=["E1", "E2"]),
    FieldConfig(type="asset", description="machine", known=["Pump 1"]),
    FieldConfig(type="choice", description="mode", choices=["auto", "manual"]),
    FieldConfig(type="text", description="operator who acknowledged"),
]
PROFILE = Profile(fields={config.type.value: config for config in CONFIGS})

# Any text at all: NUL, lone surrogates, right-to-left, combining marks; and text made of what machines write.
ANYTHING = st.text(st.characters(), max_size=200)
PIECES = st.sampled_from(
    "2024-01-02 10:20:30|Mar  3 11:15:10|1718362912|[ 48.45]|Fan 2|温度|℃|21,5|°C|error|0xFFFF|E207|host=|"
    '{"|":|"}|\'|=|: |;|,| - |[|]|(|)|\t|\n|1.234,5|-127|nan|---|#|%LINK-3-UP|2号泵|\u202e|\ud800|'
    "\x00|ß|İ|ſep|٣|\u0301|年|月|日|10 |V|a/b/c|10.0.0.1:80|Temp|unit|value|🔥|Ω|" .split("|")
)  # fmt: skip
MACHINE = st.lists(PIECES, max_size=30).map("".join)
LINES = st.one_of(ANYTHING, MACHINE)
PROFILES = st.sampled_from([None, PROFILE])


@given(LINES, PROFILES)
@example("İ" * 40 + "fan 2", None)
@example("ſep 12 10:00:00", None)
@example("\ud800 T=21.5 \udfff", PROFILE)
@example("٣٤٥ ١٢:٣٠:٠٠", None)
def test_candidates_are_trimmed_slices_in_order_few_and_never_crossing(
    line: str, profile: Profile | None
) -> None:
    found = candidates(line, profile)
    assert len(found) <= CANDIDATES_MAX
    assert [c.span for c in found] == sorted({c.span for c in found})
    for candidate in found:
        span = candidate.span
        assert 0 <= span.start < span.end <= len(line)
        assert span.of(line).strip() == span.of(line)
        assert candidate.types
        assert 0 <= candidate.weight <= 1
    for one in found:
        for other in found:
            inside = _holds(one.span, other.span) or _holds(other.span, one.span)
            assert inside or not one.span.overlaps(other.span)


def _holds(outer: Span, inner: Span) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end


@given(LINES, PROFILES)
def test_candidates_are_the_same_every_time(line: str, profile: Profile | None) -> None:
    assert candidates(line, profile) == candidates(line, profile)


@given(LINES)
def test_words_are_looked_for_in_any_text(line: str) -> None:
    stated = lexicon.level(line)
    assert stated is None or stated[1].of(line)
    assert all(0 < weight <= 1 and span.of(line) for _, _, weight, span in lexicon.meaning(line))
    assert lexicon.clears(line) in (True, False)
    lexicon.dimension(line)
    lexicon.opposites(line)
    units.of_key(line)


@given(LINES, st.sampled_from(CONFIGS), st.sampled_from([None, "°F", "bar", "x", ""]), st.text(max_size=8))
def test_anything_can_be_normalised(line: str, config: FieldConfig, unit: str | None, form: str) -> None:
    spans = [Span(0, len(line)), *(candidate.span for candidate in candidates(line))]
    for span in spans:
        worth = normalise(line, span, config, replace(CONTEXT, unit=unit, form=form))
        assert worth.value is None or worth.null is None
        assert worth.value is not None or worth.problem is not None
        if isinstance(worth.value, float):
            assert math.isfinite(worth.value)
        if worth.null is Null.ABSENT:
            pytest.fail("a span that was written is not absent")


@given(LINES)
def test_a_value_is_made_of_what_the_line_says(line: str) -> None:
    """Codes and names come out as they stand; a listed spelling only replaces an equal one."""
    free = FieldConfig(type="code", description="fault code")
    for candidate in candidates(line):
        if FieldType.CODE in candidate.types:
            assert normalise(line, candidate.span, free, CONTEXT).value == candidate.span.of(line)


# --- what is written comes back

MOMENTS = st.datetimes(datetime(2001, 10, 1), datetime(2025, 5, 30))
ZONES = st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-8))])


@given(MOMENTS, ZONES, st.sampled_from(["%Y-%m-%dT%H:%M:%S.%f%z", "%Y-%m-%d %H:%M:%S,%f %z"]))
def test_times_with_a_zone_come_back(moment: datetime, zone: timezone, layout: str) -> None:
    aware = moment.replace(tzinfo=zone)
    worth = timestamp.normalise(aware.strftime(layout), CONTEXT)
    assert datetime.fromisoformat(str(worth.value)) == aware


LAYOUTS = [
    "%Y-%m-%d %H:%M:%S", "%Y/%m/%d %H:%M:%S", "%Y.%m.%d %H:%M:%S", "%Y-%m-%d_%H:%M:%S", "%Y-%m-%d-%H.%M.%S",
    "%Y%m%d-%H:%M:%S", "%Y%m%dT%H%M%S", "%Y%m%d%H%M%S", "%d.%m.%Y %H:%M:%S", "%d.%m.%Y;%H:%M:%S",
    "%d %b %Y %H:%M:%S", "%d-%b-%Y %H:%M:%S", "%b %d %Y %H:%M:%S", "%b-%d-%Y %H:%M:%S",
    "%a %b %d %H:%M:%S %Y", "%Y年%m月%d日 %H:%M:%S", "%Y年%m月%d日 %H时%M分%S秒",
    "%H:%M:%S %d.%m.%Y", "%H:%M:%S %Y-%m-%d",
    "%d/%b/%Y:%H:%M:%S", "%Y-%m-%d %I:%M:%S %p",
]  # fmt: skip


@given(MOMENTS.map(lambda moment: moment.replace(microsecond=0)), st.sampled_from(LAYOUTS))
def test_times_of_the_sources_zone_come_back_and_are_found(moment: datetime, layout: str) -> None:
    context = replace(CONTEXT, timezone=UTC)
    raw = moment.strftime(layout)
    worth = timestamp.normalise(raw, context)
    assert datetime.fromisoformat(str(worth.value)) == moment.replace(tzinfo=UTC)
    assert timestamp.normalise(raw, replace(context, form=timestamp.form_of(raw))) == worth
    line = f"x {raw} pump stopped"
    picked = timestamp.pick(line, candidates(line))
    assert picked is not None
    assert picked.span.of(line) == raw
    assert timestamp.normalise(raw, replace(context, form=picked.form)) == worth


@given(MOMENTS.map(lambda moment: moment.replace(microsecond=0)), st.sampled_from(["dmy", "mdy"]))
def test_dates_of_a_learnt_order_come_back(moment: datetime, order: str) -> None:
    layout = {"dmy": "%d/%m/%Y %H:%M:%S", "mdy": "%m/%d/%Y %H:%M:%S"}[order]
    worth = timestamp.normalise(moment.strftime(layout), replace(CONTEXT, timezone=UTC, convention=order))
    assert datetime.fromisoformat(str(worth.value)) == moment.replace(tzinfo=UTC)


@given(
    st.datetimes(datetime(2024, 6, 2, 13), datetime(2025, 6, 1, 11)).map(lambda m: m.replace(microsecond=0))
)
def test_times_without_a_year_come_back_within_a_year(moment: datetime) -> None:
    worth = timestamp.normalise(moment.strftime("%b %d %H:%M:%S"), replace(CONTEXT, timezone=UTC))
    assert datetime.fromisoformat(str(worth.value)) == moment.replace(tzinfo=UTC)


@given(
    st.datetimes(datetime(2024, 1, 1), datetime(2026, 1, 1)),
    st.times().map(lambda clock: clock.replace(microsecond=0)),
    st.sampled_from(["Europe/Berlin", "Asia/Shanghai", "Pacific/Auckland", "America/St_Johns"]),
)
def test_a_time_of_day_is_the_last_that_has_been(arrived: datetime, clock: time, zone: str) -> None:
    received, here = arrived.replace(tzinfo=UTC), ZoneInfo(zone)
    worth = timestamp.normalise(clock.isoformat(), Context(here, received))
    moment = datetime.fromisoformat(str(worth.value))
    assert moment <= received + timedelta(hours=1)
    assert received - moment < timedelta(hours=25)  # a day has at most 25 hours
    before = (moment - timedelta(hours=2)).astimezone(here)
    shown = moment.astimezone(here)
    assert shown.time() == clock or shown.utcoffset() != before.utcoffset()  # the hour that was left out


@given(st.integers(1_000_000_000, 1_748_000_000), st.sampled_from([1, 1_000, 1_000_000, 1_000_000_000]))
def test_epochs_come_back(seconds: int, scale: int) -> None:
    worth = timestamp.normalise(str(seconds * scale), CONTEXT)
    assert datetime.fromisoformat(str(worth.value)) == datetime.fromtimestamp(seconds, UTC)


DECIMALS = st.decimals(-999_999, 999_999, places=2, allow_nan=False)


@given(DECIMALS)
def test_numbers_come_back_in_every_notation(value: object) -> None:
    point = f"{value:.2f}"
    expected = float(point)
    assert number.parse(point).value == expected
    assert number.parse(point.replace(".", ",")).value == expected
    assert number.parse(f"{float(point):,.2f}").value == expected
    swapped = f"{float(point):,.2f}".translate(str.maketrans(",.", ".,"))
    assert number.parse(swapped).value == expected


@given(st.floats(-200, 800), st.sampled_from(["°F", "K", "°C", "m°C"]))
def test_units_convert_there_and_back(value: float, unit: str) -> None:
    there, back = units.factors("°C", unit), units.factors(unit, "°C")
    assert there is not None
    assert back is not None
    assert (value * there[0] + there[1]) * back[0] + back[1] == pytest.approx(value, abs=1e-6)


@given(
    st.floats(-1e6, 1e6).map(lambda value: round(value, 3)), st.sampled_from(["V", "bar", "A", "°C", "rpm"])
)
def test_a_value_and_its_unit_are_found_in_json(value: float, unit: str) -> None:
    line = json.dumps({"sensor": "PT-1", "unit": unit, "value": value}, ensure_ascii=False)
    raw = json.dumps(value)
    found = {candidate.span.of(line): candidate for candidate in candidates(line)}
    assert found[raw].unit == unit


HEX = st.integers(0, 255).map("{:02X}".format)


@given(MACHINE, st.lists(HEX, min_size=6, max_size=6).map(":".join), MACHINE)
def test_a_hardware_address_is_one_name_and_holds_no_value(left: str, address: str, right: str) -> None:
    line = f"{left} {address} {right}"
    start = len(left) + 1
    for candidate in candidates(line):
        span = candidate.span
        inside = start <= span.start and span.end <= start + len(address)
        assert not inside or span == Span(start, start + len(address))


@given(st.sampled_from(["A", "V", "C", "K"]), st.integers(10, 999), st.sampled_from(["P", "TIC", "AB"]))
def test_digits_of_a_tag_measure_nothing(unit: str, digits: int, letters: str) -> None:
    line = f"{letters}-{digits}{unit} stopped"
    assert not any(FieldType.QUANTITY in candidate.types for candidate in candidates(line))


@given(
    st.sampled_from(["nan", "---", "????", "****", "k.A.", "n/a", "-127"]),
    st.sampled_from(["=", ": ", " = "]),
)
def test_what_stands_for_no_value_is_never_one(raw: str, mark: str) -> None:
    line = f"pump_2 temperature{mark}{raw} ok"
    found = [c for c in candidates(line) if c.span.of(line) == raw and FieldType.QUANTITY in c.types]
    assert found
    assert all(c.bad for c in found)
    context = replace(CONTEXT, unit="°C")
    assert all(normalise(line, c.span, CONFIGS[1], context).null is Null.BAD for c in found)
