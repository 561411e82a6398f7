"""From scores to values: the likelier of candidate and null, and no span twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipeline.model.scene import Option
from pipeline.model.settle import settle
from schemas.extraction import Candidate, FieldType, Null, Span, Tier

TEXT = "alpha beta gamma delta epsilon"


def option(start: int, end: int, score: float, bad: bool = False) -> Option:
    return Option(Candidate(Span(start, end), frozenset({FieldType.TEXT}), bad=bad), score)


def test_the_best_pair_goes_first_and_the_other_field_takes_what_is_left() -> None:
    table = {"a": [option(0, 5, 2.0), option(6, 10, 1.0)], "b": [option(0, 5, 3.0)]}
    values = settle(TEXT, table, Tier.RULE)
    assert values["b"].span == Span(0, 5)
    assert values["a"].span == Span(6, 10)


def test_below_even_odds_it_is_null_near_them_unsure() -> None:
    values = settle(TEXT, {"far": [option(0, 5, -4.0)], "near": [option(6, 10, -0.2)], "none": []}, Tier.RULE)
    assert (values["far"].null, values["near"].null, values["none"].null) == (
        Null.ABSENT,
        Null.UNSURE,
        Null.ABSENT,
    )
    assert values["none"].confidence == 1.0
    assert values["far"].confidence > 0.95 > values["near"].confidence


def test_a_rival_lowers_the_confidence_but_the_same_name_twice_does_not() -> None:
    text = "pump1 pump2 pump1"
    alone = settle(text, {"f": [option(0, 5, 2.0)]}, Tier.MODEL)["f"]
    twice = settle(text, {"f": [option(0, 5, 2.0), option(12, 17, 2.0)]}, Tier.MODEL)["f"]
    rival = settle(text, {"f": [option(0, 5, 2.0), option(6, 11, 1.9)]}, Tier.MODEL)["f"]
    assert alone.confidence == twice.confidence > rival.confidence
    assert twice.span == Span(0, 5)


def test_a_sentinel_is_bad_and_keeps_its_span() -> None:
    value = settle(TEXT, {"f": [option(0, 5, 3.0, bad=True)]}, Tier.RULE)["f"]
    assert (value.null, value.span) == (Null.BAD, Span(0, 5))


SCORES = st.floats(min_value=-50, max_value=50, allow_nan=False)
OPTIONS = st.lists(
    st.tuples(st.integers(0, 25), st.integers(1, 5), SCORES).map(lambda t: option(t[0], t[0] + t[1], t[2])),
    max_size=6,
)


@given(st.dictionaries(st.sampled_from("abcde"), OPTIONS, max_size=5))
def test_spans_never_overlap_and_confidence_is_a_probability(table: dict[str, list[Option]]) -> None:
    values = settle(TEXT, table, Tier.RULE)
    assert set(values) == set(table)
    spans = [value.span for value in values.values() if value.span is not None]
    assert not any(a.overlaps(b) for i, a in enumerate(spans) for b in spans[i + 1 :])
    assert all(0.0 <= value.confidence <= 1.0 for value in values.values())
