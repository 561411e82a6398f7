"""Topic filters and templates (MQTT 5.0, 4.7)."""

from __future__ import annotations

import pytest

from pipeline.stages.topics import Levels, TopicTemplate, filter_pattern, glob_pattern


@pytest.mark.parametrize(
    ("topic_filter", "topic", "matches"),
    [
        ("plant/+/log", "plant/p7/log", True),
        ("plant/+/log", "plant/p7/x/log", False),
        ("plant/#", "plant", True),
        ("plant/#", "plant/a/b", True),
        ("plant/#", "planta", False),
        ("#", "a/b", True),
        ("+/+", "/finance", True),
        ("a.c", "abc", False),
        ("a/+", "a/", True),
    ],
)
def test_filters(topic_filter: str, topic: str, matches: bool) -> None:
    assert (filter_pattern(topic_filter).fullmatch(topic) is not None) == matches


@pytest.mark.parametrize(
    ("template", "topic", "levels"),
    [
        ("plant/{asset}/log", "plant/p7/log", Levels("p7")),
        ("plant/{asset}/+/{metric}", "plant/p7/x/temp", Levels("p7", "temp")),
        ("plant/{asset}/#", "plant/p7/a/b", Levels("p7")),
        ("plant/{asset}/log", "other/p7/log", Levels()),
        ("plant/{asset}/log", "plant//log", Levels()),
    ],
)
def test_templates(template: str, topic: str, levels: Levels) -> None:
    assert TopicTemplate(template).levels(topic) == levels


@pytest.mark.parametrize("template", ["plant/{machine}", "plant/x{asset}", "{asset"])
def test_templates_that_name_nothing_known(template: str) -> None:
    with pytest.raises(ValueError, match="a level is"):
        TopicTemplate(template)


def test_globs_know_the_asterisk_only() -> None:
    assert glob_pattern("press-*").fullmatch("press-7")
    assert not glob_pattern("press-?").fullmatch("press-7")
    assert glob_pattern("a[1]").fullmatch("a[1]")
