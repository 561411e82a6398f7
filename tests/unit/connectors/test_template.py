"""Templates: ticket fields and fixed text, nothing else, whatever stands in them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from connectors.http import HttpSinkConfig
from connectors.template import check_template, render
from schemas.extraction import Severity
from schemas.ticket import Ticket

TICKET = Ticket(
    key="k-1",
    title='press "7" {title} hot',
    body="line\nnext",
    severity=Severity.ERROR,
    asset="press7",
    cause="F30002",
    occurrences=3,
    fields={"temperature": "92", "odd name": "x"},
    evidence={"line": "T 92", "spans": [1, 2]},
)


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("{title}", 'press "7" {title} hot'),
        ("[{severity}] {asset}: {cause}", "[error] press7: F30002"),
        ("{occurrences}", 3),
        ("seen {occurrences} times", "seen 3 times"),
        ("{fields.temperature} C", "92 C"),
        ("{fields.odd name}", "x"),
        ("{fields.pressure}", None),
        ("p={fields.pressure}.", "p=."),
        ("{category}", None),
        ("category {category}", "category "),
        ("{{title}}", "{title}"),
        ("{{{title}}}", '{press "7" {title} hot}'),
        ("{evidence}", {"line": "T 92", "spans": [1, 2]}),
        ("{fields}", {"temperature": "92", "odd name": "x"}),
        ("plain", "plain"),
        (7, 7),
        (None, None),
        (True, True),
        ({"a": ["{key}", {"b": "{asset}"}]}, {"a": ["k-1", {"b": "press7"}]}),
        ({"{title}": "x"}, {"{title}": "x"}),
    ],
)
def test_rendering(template: Any, value: Any) -> None:
    assert check_template(template) == []
    rendered = render(template, TICKET)
    assert rendered == value
    assert type(rendered) is type(value)


@pytest.mark.parametrize(
    "template",
    [
        "{nonsense}",
        "{}",
        "{0}",
        "{title.upper}",
        "{title.__class__}",
        "{title!r}",
        "{title:>100000000}",
        "{ title }",
        "{fields}x",
        "x{evidence}",
        "{fields.}",
        "{fields[temperature]}",
        "{title",
        "title}",
        "{",
        "{title}}",
        "{{title}",
        {"a": ["fine", "{nonsense}"]},
    ],
    ids=str,
)
def test_what_is_refused(template: Any) -> None:
    assert check_template(template)


def test_problems_say_where() -> None:
    assert check_template({"a": ["fine", "{nonsense}"]})[0].startswith("/a/1: ")


def test_fields_are_checked_against_the_profile() -> None:
    assert check_template("{fields.temperature}", {"temperature"}) == []
    (problem,) = check_template("{fields.temprature}", {"temperature", "device"})
    assert "'temprature'" in problem
    assert "device, temperature" in problem


def test_the_site_file_is_told() -> None:
    with pytest.raises(ValidationError, match="/name: a ticket has no 'nonsense'"):
        HttpSinkConfig.model_validate({"type": "http", "url": "http://h/", "body": {"name": "{nonsense}"}})


@given(st.text(), st.text())
def test_log_text_stays_text(title: str, line: str) -> None:
    """Nothing in a value is read as a template, breaks out of its string, or fails to be written."""
    ticket = replace(TICKET, title=title, line=line)
    template: Any = {"title": "{title}", "text": "T: {title} L: {line}"}
    written = json.loads(json.dumps(render(template, ticket)))
    assert written == {"title": title, "text": f"T: {title} L: {line}"}


@given(st.recursive(st.text("{}.ab fieldstitle"), lambda inner: st.lists(inner, max_size=3), max_leaves=5))
def test_what_passes_the_check_can_be_rendered(template: Any) -> None:
    if not check_template(template):
        render(template, TICKET)
