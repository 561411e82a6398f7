"""Exact binomial bounds: against values worked out by hand, by exact fractions, and from printed tables."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.model import bounds


def exact_tail(errors: int, trials: int, rate: Fraction) -> Fraction:
    return sum(
        (math.comb(trials, k) * rate**k * (1 - rate) ** (trials - k) for k in range(errors + 1)),
        Fraction(0),
    )


@pytest.mark.parametrize(
    ("errors", "trials", "confidence", "expected"),
    [
        (0, 10, 0.95, 0.2588655),  # 1 - 0.05 ** (1/10)
        (0, 299, 0.95, 0.0099692),
        (1, 10, 0.975, 0.4450161),  # the two-sided 95 % interval's upper end, as printed in tables
        (5, 10, 0.975, 0.8129138),
        (2, 100, 0.95, 0.0616192),  # solved in exact fractions
        (9, 10, 0.95, 0.9948838),  # 0.95 ** (1/10)
    ],
)
def test_known_upper_bounds(errors: int, trials: int, confidence: float, expected: float) -> None:
    assert bounds.upper(errors, trials, confidence) == pytest.approx(expected, abs=1e-6)


counts = st.integers(1, 120).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(counts, st.integers(0, 200))
def test_the_tail_is_that_of_exact_fractions(count: tuple[int, int], of_200: int) -> None:
    rate = Fraction(of_200, 200)
    assert bounds.tail(*count, float(rate)) == pytest.approx(float(exact_tail(*count, rate)), abs=1e-10)


@given(counts, st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_the_upper_bound_is_where_the_tail_is_the_doubt(count: tuple[int, int], confidence: float) -> None:
    errors, trials = count
    found = bounds.upper(errors, trials, confidence)
    assert errors / trials <= found <= 1
    if errors < trials:
        assert bounds.tail(errors, trials, found) == pytest.approx(1 - confidence, abs=1e-9)


def test_more_errors_more_doubt_more_trials_less() -> None:
    by_errors = [bounds.upper(errors, 50, 0.95) for errors in range(51)]
    by_trials = [bounds.upper(3, trials, 0.95) for trials in range(3, 300)]
    by_confidence = [bounds.upper(3, 50, confidence) for confidence in (0.5, 0.8, 0.95, 0.999)]
    assert all(a < b for a, b in pairwise(by_errors))
    assert all(a > b for a, b in pairwise(by_trials))
    assert all(a < b for a, b in pairwise(by_confidence))


def test_nothing_tried_proves_nothing() -> None:
    assert bounds.upper(0, 0, 0.95) == 1.0
    assert bounds.tail(0, 0, 0.5) == 1.0


@pytest.mark.parametrize("count", [(1, 0), (-1, 5), (6, 5)])
def test_impossible_counts_are_refused(count: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="impossible"):
        bounds.upper(*count, 0.95)


def test_large_counts_neither_overflow_nor_lose_the_answer() -> None:
    # For many trials the bound nears the normal one, errors + 1.645 standard deviations.
    assert bounds.upper(1_000, 100_000, 0.95) == pytest.approx(
        0.01 + 1.645 * math.sqrt(0.0099 / 1e5), rel=0.01
    )
    assert bounds.tail(1_000, 100_000, 0.5) == 0.0


@pytest.mark.parametrize(
    ("rate", "confidence", "lines"),
    [(0.01, 0.95, 299), (0.05, 0.95, 59), (0.1, 0.9, 22), (0.001, 0.95, 2995)],
)
def test_lines_needed_without_an_error(rate: float, confidence: float, lines: int) -> None:
    assert bounds.needed(rate, confidence) == lines
    assert lines == math.ceil(math.log(1 - confidence) / math.log(1 - rate))


@given(st.integers(0, 20), st.sampled_from([0.01, 0.05, 0.2]), st.sampled_from([0.8, 0.95, 0.99]))
def test_the_lines_needed_are_enough_and_one_fewer_is_not(
    errors: int, rate: float, confidence: float
) -> None:
    lines = bounds.needed(rate, confidence, errors)
    assert lines is not None
    assert bounds.upper(errors, lines, confidence) <= rate
    assert lines - 1 < errors or bounds.upper(errors, lines - 1, confidence) > rate


def test_no_number_of_lines_proves_perfection() -> None:
    assert bounds.needed(0.0, 0.95) is None
