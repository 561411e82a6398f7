"""Numbers with their units: beside them, in the key, in a neighbouring key; and what fits which field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from pipeline.fields import Context, FieldConfig, Profile, normalise, quantity, units
from schemas.extraction import Candidate, FieldType, Null, Span

Offered = Callable[..., dict[str, Candidate]]


@pytest.mark.parametrize(
    ("line", "raw", "unit", "dimension"),
    [
        ("coolant 21.5C", "21.5", "C", "temperature"),
        ("Temperature 48,5 °C wieder normal", "48,5", "°C", "temperature"),
        ("循环水泵 电流 86.5A 轴承温度 78℃", "78", "℃", "temperature"),
        ("循环水泵 电流 86.5A 轴承温度 78℃", "86.5", "A", "current"),
        ("present 18.4 degC", "18.4", "degC", "temperature"),
        ("Avionics Power low:   4.52 Volt", "4.52", "Volt", "voltage"),
        ("Drehzahl: 1340 U/min", "1340", "U/min", "speed"),
        ("主轴 2980转/分", "2980", "转/分", "speed"),
        ("热风压力0.382MPa", "0.382", "MPa", "pressure"),
        ("loss 5.2 bar(g)", "5.2", "bar(g)", "pressure"),
        ('{"temp_c": 72.4}', "72.4", "°C", "temperature"),
        ('{"Temperature_Celsius": 31}', "31", "°C", "temperature"),
        ('{"motorSpeedRpm":2910}', "2910", "rpm", "speed"),
        ("vibration_mm_s=7.3", "7.3", "mm/s", "vibration"),
        ('"UAC":{"Unit":"V","Value":258.4}', "258.4", "V", "voltage"),
        ('{"id":"PT01","type":"pressure","unit":"bar","value":6.91}', "6.91", "bar", "pressure"),
        ("v-RMS 4.7 mm/s", "4.7", "mm/s", "vibration"),
        ("TCP speed 250 mm/s", "250", "mm/s", "speed"),
        ("Temperature 58 min 20 max 90", "58", None, None),
        ('{"temp_in":31.2}', "31.2", None, None),
        ("Ibat=-62.5 t=1700454500", "-62.5", None, None),
        ("oil temperature 58 in zone 2", "58", None, None),
        # The clause ends behind it: no word of what follows.
        ("pressure test took 12.3 s", "12.3", "s", "duration"),
        ("pressure test 12.3 s, peak 170 bar", "12.3", "s", "duration"),
        ("pressure test (12.3 s) passed", "12.3", "s", "duration"),
        ("current ramp done after 4.1 s.", "4.1", "s", "duration"),
        ("pressure 12.3 s tarted", "12.3", None, None),
    ],
)
def test_unit_and_dimension(
    offered: Offered, line: str, raw: str, unit: str | None, dimension: str | None
) -> None:
    found = offered(line)[raw]
    assert (found.unit, found.dimension) == (unit, dimension)
    assert FieldType.QUANTITY in found.types


def test_a_neighbours_unit_is_not_borrowed(offered: Offered) -> None:
    line = '{"排气压力":"0.72","单位":"MPa","排气温度":94.1}'
    assert offered(line)["0.72"].unit == "MPa"
    assert (offered(line)["94.1"].unit, offered(line)["94.1"].named) == (None, "temperature")


@pytest.mark.parametrize(
    ("line", "raw", "named"),
    [
        ('{"VariableName":"APhaseTemperature","Value":"71"}', "71", "temperature"),
        ('{"temperature": {"value": 32.6}}', "32.6", "temperature"),
        ("Kesseltemperatur: 62.1", "62.1", "temperature"),
        ("Motorstrom 5.61", "5.61", "current"),
        ("母线电压 311", "311", "voltage"),
        ("Recv: T:34.12 /0.00", "34.12", "temperature"),
        ("volume flow temperature 12.5", "12.5", "temperature"),
    ],
)
def test_what_the_words_say(offered: Offered, line: str, raw: str, named: str) -> None:
    assert offered(line)[raw].named == named


MACHINES = ["press", "boiler", "nozzle", "spindle", "amplifier", "Kessel"]


@pytest.mark.parametrize("machine", MACHINES)
def test_a_machine_says_nothing_of_a_number_beyond_other_words(offered: Offered, machine: str) -> None:
    """Though it is called like something that is measured."""
    for line in (
        f"{machine}7 cycle complete 12.3 s",
        f"{machine} 7 cycle complete 12.3",
        f"INFO {machine}-04 ready after 12.3",
        f"{machine} started, cycle 12.3",
    ):
        found = offered(line)
        assert "12.3" not in found or (found["12.3"].named, found["12.3"].dimension) in (
            (None, None),
            (None, "duration"),
        )
    for line in (f"{machine} 12.3", f"{machine}: 12.3", f'{{"{machine}": 12.3}}'):
        assert offered(line)["12.3"].named is not None


def test_setpoints_weigh_less_than_what_is_measured(offered: Offered) -> None:
    line = "Operating value: 76.2 C, Threshold value: 75.0 C"
    assert offered(line)["76.2"].weight > offered(line)["75.0"].weight


@pytest.mark.parametrize(
    ("line", "raw", "form"),
    [
        ('{"Temperature":-127.0}', "-127.0", "sentinel"),
        ("pressure=65535", "65535", "sentinel"),
        ("temp: 655.35 °C", "655.35", "sentinel"),
        ('{"Temperature":nan,"x":1}', "nan", "sentinel_word"),
        ("Temperatur: ---- °C", "----", "sentinel_word"),
        ("raw_temperature=1832", "1832", "raw_count"),
    ],
)
def test_bad_values_are_flagged(offered: Offered, line: str, raw: str, form: str) -> None:
    found = {c.span.of(line): c for c in offered(line).values()} | offered(line)
    assert found[raw].bad
    assert found[raw].form == form


def test_the_raw_value_beside_a_score_is_a_value(offered: Offered) -> None:
    line = "194 Temperature_Celsius changed from 119 [Raw 31] to 120 [Raw 30]"
    assert not offered(line)["30"].bad


def test_numbers_of_names_versions_and_times_are_no_quantities(offered: Offered) -> None:
    line = "2024-05-05 10:00:00 IS620P-07 v1.2.3 10.0.0.7 0x1F 3rd"
    assert offered(line, FieldType.QUANTITY) == {}


def test_a_profile_drops_other_quantities_and_knows_its_own_units(offered: Offered) -> None:
    profile = Profile(
        fields={
            "temperature": FieldConfig(type="quantity", unit="°C", description="temperature"),
            "rate": FieldConfig(type="quantity", unit="Hübe/min", description="strokes of the press"),
        }
    )
    line = "Presse 5: 61,5 °C, 49.98 Hz, 12.5 Hübe/min"
    found = offered(line, FieldType.QUANTITY, profile)
    assert "61,5" in found
    assert found["12.5"].unit == "Hübe/min"
    temperature_only = Profile(fields={"temperature": profile.fields["temperature"]})
    assert "49.98" not in offered(line, FieldType.QUANTITY, temperature_only)


@pytest.mark.parametrize(
    ("unit", "fitting"),
    [("rpm", {"speed"}), ("mm/s", {"speed", "vibration"}), ("g", {"vibration"}), ("°F", {"temperature"})],
)
def test_fits(offered: Offered, unit: str, fitting: set[str]) -> None:
    fields = {
        "temperature": FieldConfig(type="quantity", unit="°C", description="temperature"),
        "speed": FieldConfig(type="quantity", description="speed, turning or moving; not a percentage"),
        "vibration": FieldConfig(type="quantity", description="vibration that was measured"),
    }
    candidate = offered(f"x 4.7 {unit}")["4.7"]
    assert {name for name, config in fields.items() if quantity.fits(candidate, name, config)} == fitting


CELSIUS = FieldConfig(type="quantity", description="temperature", unit="°C", range=[-50, 200])
BAR = FieldConfig(type="quantity", description="pressure", unit="bar")


@pytest.mark.parametrize(
    ("raw", "unit", "config", "value"),
    [
        ("98.6", "°F", CELSIUS, 37.0),
        ("300", "K", CELSIUS, 26.85),
        ("41200", "m°C", CELSIUS, 41.2),
        ("48,5", "°C", CELSIUS, 48.5),
        ("25", None, CELSIUS, 25.0),
        ("0,72", "MPa", BAR, 7.2),
        ("58.2", "psi", BAR, 4.0127),
        ("1008.4", "hPa", BAR, 1.0084),
    ],
)
def test_conversion(berlin: Context, raw: str, unit: str | None, config: FieldConfig, value: float) -> None:
    worth = normalise(raw, Span(0, len(raw)), config, replace(berlin, unit=unit))
    assert worth.value == pytest.approx(value, rel=1e-4)
    assert (worth.null, worth.problem) == (None, None)


@pytest.mark.parametrize(
    ("raw", "unit", "null", "problem"),
    [
        ("12", "bar", None, "wrong_unit"),
        ("12", "9**9**9", None, "wrong_unit"),
        ("250", "°C", None, "out_of_range"),
        ("-127", None, Null.BAD, "sentinel"),
        ("655.35", "°C", Null.BAD, "sentinel"),
        ("nan", None, Null.BAD, "sentinel"),
        ("1,234", "°C", Null.UNSURE, "ambiguous_number"),
    ],
)
def test_problems(berlin: Context, raw: str, unit: str | None, null: Null | None, problem: str) -> None:
    worth = normalise(raw, Span(0, len(raw)), CELSIUS, replace(berlin, unit=unit))
    assert (worth.null, worth.problem) == (null, problem)


def test_every_unit_of_the_table_converts_to_the_first_of_its_quantity() -> None:
    first: dict[str, str] = {}
    for symbol, unit in units.symbols().items():
        base = first.setdefault(unit.dimension, symbol)
        same_kind = unit.dimension in ("vibration", "flow", "level", "data", "ratio", "speed", "power")
        assert units.factors(symbol, base) is not None or same_kind, (symbol, base)


def test_units_that_only_pint_knows_may_be_a_fields_unit() -> None:
    assert units.dimension("millibar") == "pressure"
    assert units.factors("bar", "decibar") == pytest.approx((10.0, 0.0))
    assert units.dimension("no such unit") is None


@pytest.mark.parametrize("word", ["cats", "units", "u", "kK", "Hzs", "Tpsi", "mHg", "m/Zin", "dog"])
def test_not_every_word_is_a_unit(word: str) -> None:
    """Though pint takes most of these for one: centi technical atmospheres, micro nits, atomic masses."""
    assert units.dimension(word) is None


@pytest.mark.parametrize(
    ("unit", "dimension"),
    [
        ("furlong", "length"),
        ("parsecs", "length"),
        ("gigawatt", "power"),
        ("meters/hour", "speed"),
        ("J/s", "power"),
    ],
)
def test_units_in_full_and_quotients_are(unit: str, dimension: str) -> None:
    assert units.dimension(unit) == dimension
