"""The list of candidates as a whole: few, in order, never crossing, and quickly found in hostile lines."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from pipeline.fields import CANDIDATES_MAX, FieldConfig, Profile, candidates, lexicon
from schemas.extraction import Candidate, FieldType

Offered = Callable[..., dict[str, Candidate]]


def test_equal_spans_are_one_candidate_with_all_types(offered: Offered) -> None:
    found = offered("error 0042")["0042"]
    assert {FieldType.CODE, FieldType.NUMBER} <= found.types


def test_a_line_of_many_numbers_gives_the_strongest() -> None:
    line = " ".join(f"{n}" for n in range(400)) + " temperature=21.5"
    found = candidates(line)
    assert len(found) == CANDIDATES_MAX
    assert "21.5" in {candidate.span.of(line) for candidate in found}


def test_only_what_the_profile_asks_for() -> None:
    profile = Profile(fields={"code": FieldConfig(type="code", description="fault")})
    found = candidates("2024-01-01 10:00:00 Fan 2 error 38, 21.5 °C", profile)
    assert found
    assert all(FieldType.CODE in candidate.types for candidate in found)


def test_a_weak_time_does_not_borrow_another_readings_weight(offered: Offered) -> None:
    found = offered('{"print_error":1174732840}')["1174732840"]
    assert FieldType.CODE in found.types
    assert FieldType.TIMESTAMP not in found.types


HOSTILE = [
    "1", "1.", "1,", "1:", "0x", "a", "A", "_", "-", "/", "\\", "'", '"', "{", '{"a":', "=", "a:", "a=1 ",
    '"a":1,', "1 V ", "温", "1月", "A1-", "error ", "error:", "fan 2 ", "12:", "12:34:56 ", " ", "\t", "1e",
    "a.b.", "20240101", "-1 ", "%A-1-", "a/", "@", "E", "unit 1 ", "1号", "上午", "Jan 1 ", "Mon ", "16# ",
    "\ud800", "\x00", "SPN 1 ", "error QQ=f1: ", "to a ", "AB_", "A:1 ", "BadAbc", "Main feed ", "(1)", "1-1",
    "x;", "|1|", "a-b_c.", "Aa ", "Aaa 1 ", "A1 Aaa ", "Fehler AB ", "a(1,", "12.AB.34 ",
    "date=2024-01-02 time=",
    "C4:7D:0B:9A:51:F2 ", "温度A-1", "1#水泵 ", "k.A. ", "T=**** ",
]  # fmt: skip
SHORT, LONG = 1_024, 8_192
LONGEST = 16_384  # the longest line that is read at all


def _seconds(text: str) -> float:
    """CPU time of one look at the text."""
    began = time.process_time()
    candidates(text)
    lexicon.level(text)
    lexicon.meaning(text)
    lexicon.clears(text)
    return time.process_time() - began


@pytest.mark.parametrize("seed", HOSTILE)
def test_eight_times_the_length_takes_nowhere_near_sixty_four_times_as_long(seed: str) -> None:
    """Quadratic work would take 64 times as long; the bound leaves room for a busy machine."""
    short, long = ((seed * length)[:length] for length in (SHORT, LONG))
    candidates(short)
    floor = 0.003  # seconds; below it the clock's own grain and the caches decide
    assert _seconds(long) < 30 * max(_seconds(short), floor)


def test_the_longest_line_of_everything_hostile() -> None:
    line = ("".join(HOSTILE) * 100)[:LONGEST]
    found = candidates(line)
    assert 0 < len(found) <= CANDIDATES_MAX
