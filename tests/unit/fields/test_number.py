"""Written numbers: decimal commas, grouping, signs, hex, sentinels."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.fields import Context, FieldConfig, number
from schemas.extraction import Null


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("21.5", 21.5), ("-3.4", -3.4), ("+7", 7.0), ("0", 0.0), ("12,5", 12.5), ("-0,02", -0.02),
        ("1.234,5", 1234.5), ("1,234.5", 1234.5), ("1,234,567", 1234567.0), ("1.234.567", 1234567.0),
        ("1 455", 1455.0), ("12'500", 12500.0), ("1.2e-3", 0.0012), ("1,5E+02", 150.0), (".5", 0.5),
        ("−5", -5.0), ("0x1F", 31.0), ("16#1F", 31.0), ("398.400000", 398.4), ("37.80000", 37.8),
    ],
)  # fmt: skip
def test_value(raw: str, value: float) -> None:
    assert number.parse(raw).value == value


@pytest.mark.parametrize(
    "raw",
    ["nan", "NaN", "null", "---", "****", "-", "--.-", "N/A", "-inf", "???", "0xFFFF", "16#FFFF", "无效"],
)
def test_sentinel_words_are_bad(raw: str) -> None:
    read = number.parse(raw)
    assert (read.value, read.null, read.problem) == (None, Null.BAD, "sentinel")


@pytest.mark.parametrize("raw", ["", "abc", "1-2", "1.2.3.4x", "12 34", "0x", "\udcff"])
def test_no_number(raw: str) -> None:
    assert number.parse(raw).problem == "bad_number"


@pytest.mark.parametrize("value", [65535.0, 655.35, 6553.5, 32767.0, -32768.0, 4294967295.0, -999.0, 99999.0])
def test_sentinel_numbers(value: float) -> None:
    assert number.is_sentinel(value)


def test_minus_127_is_a_sentinel_of_temperatures_only() -> None:
    assert number.is_sentinel(-127.0, "temperature")
    assert not number.is_sentinel(-127.0, "current")
    assert not number.is_sentinel(-127.2, "temperature")


def test_one_comma_and_three_digits_read_two_ways() -> None:
    read = number.parse("1,234")
    assert (read.value, read.null, read.problem) == (None, Null.UNSURE, "ambiguous_number")


@pytest.mark.parametrize(
    ("raw", "text", "value"),
    [
        ("1,234", "p=1,234 bar T=21,5 °C", 1.234),
        ("1,234", "p=1,234 mbar T=21.5 °C", 1234.0),
        ("2.910", "4,35 bar, 2.910 rpm", 2910.0),
        ("2.910", "4.35 bar, 2.910 A", 2.91),
    ],
)
def test_the_other_numbers_of_the_line_tell(raw: str, text: str, value: float) -> None:
    assert number.parse(raw, None, text).value == value


def test_a_learnt_mark_settles_it(berlin: Context) -> None:
    config = FieldConfig(type="number", description="count", range=[0, 2000])
    assert number.normalise("1,234", config, replace(berlin, convention="comma")).value == 1.234
    assert number.normalise("1,234", config, replace(berlin, convention="point")).value == 1234.0
    assert number.learn_mark(["a 1,5", "b 1,234"]) == "comma"
    assert number.learn_mark(["a 1.5"]) == "point"
    assert number.learn_mark(["a 1.5, 1,5"]) is None


def test_range(berlin: Context) -> None:
    config = FieldConfig(type="number", description="count", range=[0, 10])
    assert number.normalise("10", config, berlin).problem is None
    outside = number.normalise("10.5", config, berlin)
    assert (outside.value, outside.null, outside.problem) == (10.5, None, "out_of_range")
