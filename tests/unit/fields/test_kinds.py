"""Each kind of value as devices write it: found with its span, and worth what it says, or bad."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import recall

from pipeline.fields import Context, candidates, normalise
from pipeline.fields.quantity import fits
from schemas.extraction import Candidate, FieldType, Null

Offered = Callable[..., dict[str, Candidate]]
PROFILE = recall.machine_log()


@pytest.mark.parametrize(
    ("line", "span", "value"),
    [
        # one digit where two are usual
        ("2025-5-3 9:4:5 pump stopped", "2025-5-3 9:4:5", "2025-05-03T07:04:05Z"),
        ("2025/5/3 19:4:5 pump stopped", "2025/5/3 19:4:5", "2025-05-03T17:04:05Z"),
        # two pairs are one time
        ("date=2025-05-03 time=09:04:05 level=warn", "2025-05-03 time=09:04:05", "2025-05-03T07:04:05Z"),
        ('date="2025-05-03" time="09:04:05"', '2025-05-03" time="09:04:05', "2025-05-03T07:04:05Z"),
        # month and day behind the level's letter; a month with a stroke
        ("E0503 09:04:05.220193  1 x.go:1] y", "0503 09:04:05.220193", "2025-05-03T07:04:05.220193Z"),
        ("may/03 09:04:05 interface,info up", "may/03 09:04:05", "2025-05-03T07:04:05Z"),
        # ISO where an epoch is usual, and the other way round
        (
            '{"ts":"2025-05-03T07:04:05.5+00:00","v":1}',
            "2025-05-03T07:04:05.5+00:00",
            "2025-05-03T07:04:05.500Z",
        ),
        ('{"ts":1746255845,"v":1}', "1746255845", "2025-05-03T07:04:05Z"),
    ],
)
def test_times(line: str, span: str, value: str, berlin: Context) -> None:
    found = next(c for c in candidates(line, PROFILE) if c.span.of(line) == span)
    assert FieldType.TIMESTAMP in found.types
    assert normalise(line, found.span, PROFILE.fields["timestamp"], berlin).value == value


def test_a_clock_that_counts_from_another_year_is_bad(berlin: Context) -> None:
    line = '{"ts":228182400}'
    found = next(c for c in candidates(line, PROFILE) if c.span.of(line) == "228182400")
    given = normalise(line, found.span, PROFILE.fields["timestamp"], berlin)
    assert (given.null, given.problem) == (Null.BAD, "bad_time")


@pytest.mark.parametrize(
    ("line", "field", "span", "value"),
    [
        ("Kühlkörper 94,5 °C", "temperature", "94,5", 94.5),
        ("Druck: 1.234,5 mbar", "pressure", "1.234,5", 1.2345),
        ("T=-4.71 °C", "temperature", "-4.71", -4.71),
        ("Lager 1: 7,9 mm/s Schwingung", "vibration", "7,9", 7.9),
        # the unit stands in a neighbouring key
        ('{"temperature":{"value":71.6,"unit":"°F"}}', "temperature", "71.6", 22.0),
        ('{"name":"Udc","value":648,"uom":"V"}', "voltage", "648", 648.0),
        ('{"unit":"mA","name":"current","reading":"1500"}', "current", "1500", 1.5),
        # or at the end of its own
        ('{"supply_mv":3300}', "voltage", "3300", 3.3),
        ("2号循环泵 轴承温度 92℃", "temperature", "92", 92.0),
        ("Tist=1187;Tsoll=1190", "temperature", "1187", 1187.0),
    ],
)
def test_quantities(line: str, field: str, span: str, value: float, berlin: Context) -> None:
    config = PROFILE.fields[field]
    found = next(c for c in candidates(line, PROFILE) if c.span.of(line) == span)
    assert fits(found, field, config)
    context = Context(berlin.timezone, berlin.received_at, unit=found.unit)
    assert normalise(line, found.span, config, context).value == pytest.approx(value)


@pytest.mark.parametrize(
    ("line", "span"),
    [
        ('{"DHT11":{"Temperature":nan}}', "nan"),
        ('{"temperature":NaN}', "NaN"),
        ("temp=-127", "-127"),
        ("Temperatur: --- °C", "---"),
        ("Druck=**** bar", "****"),
        ("pressure: 655.35", "655.35"),
        ("temp=???", "???"),
        ("TankTemp raw=65535", "65535"),
        ("Vorlauf Temperatur = k.A.", "k.A."),
    ],
)
def test_what_stands_for_no_value_is_kept_as_bad(line: str, span: str) -> None:
    found = [c for c in candidates(line, PROFILE) if c.span.of(line) == span]
    assert found
    assert all(c.bad for c in found if FieldType.QUANTITY in c.types)


@pytest.mark.parametrize("line", ["raw_temp=2047", "adc: 811", '{"temp_adc":811}', "register 40012 raw 23"])
def test_raw_counts_are_marked(line: str) -> None:
    numbers = [
        c for c in candidates(line, PROFILE) if FieldType.QUANTITY in c.types and c.span.of(line) != "40012"
    ]
    assert all(c.form == "raw_count" for c in numbers)


@pytest.mark.parametrize(
    ("line", "span"),
    [
        # groups of letters and digits
        ("axis 5 AL.51.2 Overload", "AL.51.2"),
        ("[MY-012592] disk full", "MY-012592"),
        ("ALM-0714 servo", "ALM-0714"),
        ("FQXSPMA0007L: sensor", "FQXSPMA0007L"),
        ("13.B2.D1 paper jam", "13.B2.D1"),
        ("state f2041 reached", "f2041"),
        ("Inverter,18x6E,AC voltage", "18x6E"),
        ("alarm oL1 overload", "oL1"),
        # words of capitals behind a word of fault
        ("Umrichter Fehler OHF", "OHF"),
        ("drive fault SCF ground", "SCF"),
        ("故障 OCA", "OCA"),
        # glued to the word that failed
        ("operation timed out(60)", "60"),
        ("Response(131, 3, x)", "131"),
        ("%%01IFPDT/4/IF_STATE(l)[12]: down", "IFPDT/4/IF_STATE"),
        ("errorCode=GroundFailure vendorErrorCode=0x2003", "0x2003"),
    ],
)
def test_codes(offered: Offered, line: str, span: str) -> None:
    assert span in offered(line, FieldType.CODE)


@pytest.mark.parametrize(
    ("line", "span"),
    [
        ("报警\t2#循环水泵 轴承振动高", "2"),
        ("from C4:7D:0B:9A:51:F2 temp=2", "9A"),
        ("ERROR CLEAR", "CLEAR"),
        ("fault high", "high"),
    ],
)
def test_no_codes(offered: Offered, line: str, span: str) -> None:
    assert span not in offered(line, FieldType.CODE)


@pytest.mark.parametrize(
    ("line", "span"),
    [
        ("Cold Room 4 (AK-CC 550) Alarm: S5", "Cold Room 4"),
        ("HP LaserJet M607 [10.1.9.40] error", "HP LaserJet M607"),
        ("VRV outdoor unit 2 malfunction", "outdoor unit 2"),
        ("alarm of pump P-102 dry running", "P-102"),
        ("Lüfter Süd 3 gestört", "Süd 3"),
        ("Störung Kühlmittelpumpe 2", "Kühlmittelpumpe 2"),
        ("Mixer #3 stopped", "Mixer #3"),
        ("3号机械手 伺服报警", "3号机械手"),
        ("2#循环水泵 轴承振动高", "2#循环水泵"),
        ("温度传感器TE-103断线", "TE-103"),
        ("jam at photocell B12, motor stopped", "photocell B12"),
        ("[bus] 1.1.24 no acknowledge", "1.1.24"),
        ("2024/01/30,16:20:11,NPort 5150,Port 1,link down", "NPort 5150"),
        ("ruuvi C4:7D:0B:9A:51:F2 temp=-4.71", "C4:7D:0B:9A:51:F2"),
        ("Server mes/app02 is DOWN", "app02"),
    ],
)
def test_assets(offered: Offered, line: str, span: str) -> None:
    assert span in offered(line, FieldType.ASSET)


@pytest.mark.parametrize(
    ("line", "span"),
    [
        ("P-101A seal leak", "101"),
        ("node C4:7D:0B:9A:51:F2 up", "9"),
    ],
)
def test_digits_of_names_are_no_quantities(offered: Offered, line: str, span: str) -> None:
    assert span not in offered(line, FieldType.QUANTITY)


def test_the_t_of_a_time_names_no_temperature(offered: Offered) -> None:
    line = "2024-06-21T18:02:11Z CP-0231 connectorId=2"
    assert offered(line, FieldType.QUANTITY)["2"].named is None
