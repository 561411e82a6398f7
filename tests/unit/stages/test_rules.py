"""The rules about a line's words: found in one pass, and the same ones as when each is searched alone."""

from __future__ import annotations

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st
from making import PROFILE, line, reading

from pipeline.stages.rules import RuleConfig, Rules, Texts, When
from schemas.extraction import Severity

EXPRESSIONS = [
    "PH-31 gone",
    r"\bE\d{2}\b",
    "(?i)Überdruck",
    "^online$|,heartbeat$",
    "级别",
    "(?P<a>x)y",
    "(?P<a>y)",
    "",
]
NUMBERED = [(f"r{n}", expression) for n, expression in enumerate(EXPRESSIONS)]

texts = st.one_of(
    st.text(max_size=40),
    st.lists(
        st.sampled_from(["PH-31 gone", "E17", "ÜBERDRUCK", "online", ",heartbeat", "级别", "xy", " "]),
        max_size=5,
    ).map("".join),
)


def alone(text: str) -> set[int]:
    return {n for n, expression in enumerate(EXPRESSIONS) if re2.search(expression, text) is not None}


@given(texts)
def test_one_pass_finds_what_single_searches_find(text: str) -> None:
    assert Texts(NUMBERED).found(text) == alone(text)


@given(texts)
def test_expressions_too_large_for_one_automaton_are_searched_one_by_one(text: str) -> None:
    assert Texts(NUMBERED, memory_bytes=1000).found(text) == alone(text)


def test_what_is_remembered_is_the_line_at_hand() -> None:
    found = Texts([("a", "hot"), ("b", "cold")])
    hot, cold = "bearing hot", "bearing cold"
    assert [found.found(text) for text in (hot, hot, cold, hot)] == [{0}, {0}, {1}, {0}]


def test_an_expression_that_is_none_names_its_rule() -> None:
    with pytest.raises(ValueError, match=r"rule b: .*not an RE2 expression"):
        Texts([("a", "x"), ("b", "(")])


def rule(id_: str, **when: object) -> RuleConfig:
    return RuleConfig(id=id_, when=When.model_validate(when), severity=Severity.ERROR)


def about(*configs: RuleConfig, text: str = "") -> list[str]:
    event = line(text) if text else reading()
    return [found.config.id for found in Rules(configs).about(event)]


def test_rules_about_other_words_are_left_out_and_order_is_kept() -> None:
    rules = (
        rule("cold", text="cold"),
        rule("topic", topic="plant/#"),
        rule("hot", text="hot"),
        rule("metric", metric="temp"),
    )
    assert about(*rules, text="bearing hot") == ["topic", "hot"]
    assert about(*rules, text="bearing dry") == ["topic"]
    assert about(*rules) == ["metric"]


def test_a_rule_about_a_line_says_nothing_of_readings_unless_it_discards() -> None:
    discard = RuleConfig(id="quiet", when=When(topic="plant/#"), discard=True)
    assert about(rule("topic", topic="plant/#"), discard) == ["quiet"]


def test_the_fields_that_rules_look_at() -> None:
    assert (
        Rules([rule("words", text="hot"), rule("metric", metric="temp", above=3)]).look_at(PROFILE) == set()
    )
    assert Rules([rule("code", code=["E1"])]).look_at(PROFILE) == {"error_code"}
    assert Rules([rule("asset", asset="fan*")]).look_at(PROFILE) == {"device"}
    assert Rules([rule("high", field="temperature", above=3)]).look_at(PROFILE) == {"temperature"}
