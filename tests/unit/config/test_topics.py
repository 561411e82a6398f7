"""Topic filters and templates, against what MQTT says a filter matches."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.topics import filter_problem, mismatch, overlap, template_problem

LEVELS = st.sampled_from(["a", "b", "+"])
FILTERS = st.builds(
    lambda levels, rest: "/".join([*levels, *(["#"] if rest else [])]),
    st.lists(LEVELS, min_size=1, max_size=4),
    st.booleans(),
)
TOPICS = [
    "/".join(levels) for size in range(1, 6) for levels in itertools.product(["a", "b", "c"], repeat=size)
]


def matches(topic_filter: str, topic: str) -> bool:
    """MQTT 5.0, 4.7, as a regular expression."""
    body = topic_filter.removesuffix("/#")
    pattern = "/".join("[^/]*" if level == "+" else re.escape(level) for level in body.split("/"))
    rest = "(/.*)?" if topic_filter.endswith("/#") else ""
    return re.fullmatch(pattern + rest, topic) is not None


@given(FILTERS, FILTERS)
def test_two_filters_overlap_when_a_topic_matches_both(one: str, other: str) -> None:
    both = any(matches(one, topic) and matches(other, topic) for topic in TOPICS)
    assert overlap(one, other) == both == overlap(other, one)


@given(FILTERS, FILTERS)
def test_a_template_fits_when_a_topic_matches_both(template: str, topic: str) -> None:
    named = template.replace("+", "{asset}", 1)
    assert (mismatch(named, topic) is None) == overlap(template, topic)


@pytest.mark.parametrize(
    "text", ["a", "/", "+", "#", "a/+/b", "a/#", "/a//b", "$share/g/a/+", "$SYS/#", "温度/+"]
)
def test_valid_filters(text: str) -> None:
    assert filter_problem(text) is None


@pytest.mark.parametrize(
    "text", ["", "a+", "a/b#", "#/a", "a/#/b", "a\0b", "x" * 65_536, "a/{asset}", "$share/g/a#"]
)
def test_invalid_filters(text: str) -> None:
    assert filter_problem(text)


@pytest.mark.parametrize("text", ["{asset}", "a/{asset}/+/{metric}", "{metric}/#"])
def test_valid_templates(text: str) -> None:
    assert template_problem(text) is None


@pytest.mark.parametrize(
    "text", ["a/+", "", "{asset}/{asset}", "{asset", "x{asset}", "{{asset}}", "{site}", "{asset}/#/a"]
)
def test_invalid_templates(text: str) -> None:
    assert template_problem(text)
