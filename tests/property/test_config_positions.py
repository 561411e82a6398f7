"""Whatever is wrong in a site file, and however the file is laid out: the error points at it.

A valid document gets one mistake at a random place and is written in a random style; where the mistake then
stands is looked up with PyYAML alone. Random text and random YAML must never raise anything but ConfigError.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from pipeline.config import loads
from pipeline.config.compose import CORE_SCHEMA
from schemas.errors import ConfigError

Path = tuple[str | int, ...]

# Each example writes and reads a whole site file in pure Python, and the machines of CI are busy.
positions = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])

DOCUMENT: dict[str, Any] = {
    "site": "hall 2",
    "timezone": "Europe/Berlin",
    "store": {"path": "a.db", "free_floor_mb": 10},
    "retention": {"hours": 12.5, "bytes": 5_000_000},
    "limits": {"line_chars": 4096, "unread_max_wait_s": 5.0},
    "review": {"confidence_min": 0.9},
    "metrics": {"host": "127.0.0.1", "port": 9108},
    "sources": {
        "line7": {
            "type": "mqtt",
            "host": "broker",
            "port": 1883,
            "topics": ["plant/+/log", "plant/+/alarm"],
            "topic_template": "plant/{asset}/+",
            "qos": 1,
            "username": "u",
            "password": {"file": "secret"},
            "tls": {"ca": "ca.pem"},
            "profile": "press",
            "mode": "live",
        },
        "file": {
            "type": "file",
            "path": "plc.log",
            "follow": False,
            "framing": "multiline",
            "multiline": {"start": r"^\d", "max_lines": 20},
            "timezone": "Asia/Shanghai",
            "encoding": "gb18030",
        },
    },
    "profiles": {
        "press": {
            "fields": {
                "code": {
                    "type": "code",
                    "description": "alarm number",
                    "known": ["E1", "E2"],
                    "required": True,
                },
                "temp": {"type": "quantity", "description": "of the oil", "unit": "°C", "range": [0, 120.5]},
                "state": {"type": "choice", "description": "what it does", "choices": ["on", "off"]},
            }
        }
    },
    "severities": {"error": "it stands still"},
    "categories": {"jam": "stuck", "other": "none of these"},
    "actions": {"go": "go there"},
    "rules": [
        {
            "id": "hot",
            "when": {"metric": "t", "above": 80, "deadband": 2},
            "severity": "error",
            "action": "go",
        },
        {
            "id": "jam",
            "when": {"text": "jam(med)?", "source": "line7"},
            "category": "jam",
            "severity": "warning",
        },
        {"id": "free", "when": {"text": "free"}, "clears": "jam"},
        {"id": "tick", "when": {"topic": "plant/#", "text": "tick"}, "discard": True},
    ],
    "routes": [
        {"id": "jams", "sink": "desk", "sources": ["line7"], "categories": ["jam"], "ticket_from": "warning"},
        {"id": "rest", "sink": "board"},
    ],
    "sinks": {
        "desk": {
            "type": "http",
            "url": "https://desk/api",
            "headers": {"Accept": "application/json", "Authorization": {"credential": "token"}},
            "body": {"title": "{title}", "list": ["{key}", 1, {"deep": True}]},
            "find": {"url": "https://desk/api?q={key}", "reference": "/0/id"},
            "timeout_s": 5,
        }
    },
}

# Maps whose keys the writer of the file chooses: an unknown key there is a new entry, not a mistake.
OPEN = re.compile(
    r"(sources|profiles|categories|actions|sinks)|profiles/[^/]+/fields|sinks/[^/]+/(headers|body.*)"
)

REQUIRED: list[Path] = [
    ("sources", "line7", "type"),
    ("sources", "line7", "topics"),
    ("sources", "file", "path"),
    ("sources", "file", "multiline", "start"),
    ("profiles", "press", "fields"),
    ("profiles", "press", "fields", "code", "type"),
    ("profiles", "press", "fields", "temp", "description"),
    ("rules", 1, "id"),
    ("rules", 2, "when"),
    ("routes", 0, "sink"),
    ("routes", 1, "id"),
    ("sinks", "desk", "url"),
    ("sinks", "desk", "find", "url"),
]


def places(node: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value of the document with its path, the document itself left out."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield (*path, key), value
        yield from places(value, (*path, key))


def free(path: Path) -> bool:
    """Whether anything may stand at `path` (within a sink's body)."""
    return len(path) > 3 and path[0] == "sinks" and path[2] == "body"


CHECKED = [path for path, _ in places(DOCUMENT) if not free(path)]
MAPS: list[Path] = [(), *(path for path, value in places(DOCUMENT) if isinstance(value, dict))]
CLOSED = [path for path in MAPS if not OPEN.fullmatch("/".join(map(str, path)))]


class Dumper(yaml.SafeDumper):
    """Writes text in quotes exactly where YAML 1.2's core schema would take it for something else."""


Dumper.yaml_implicit_resolvers = {}
for tag, pattern, first in CORE_SCHEMA:
    Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"(?:{pattern})\\Z"), first)


@dataclass(frozen=True)
class Style:
    """How a document is written."""

    indent: int
    width: int
    flow: bool | None
    sort: bool
    break_: str
    comments: bool

    def write(self, data: Any) -> str:
        text = yaml.dump(
            data,
            Dumper=Dumper,
            indent=self.indent,
            width=self.width,
            default_flow_style=self.flow,
            sort_keys=self.sort,
            allow_unicode=True,
            line_break=self.break_,
        )
        return "# a remark\n\n" + text if self.comments else text


STYLES = st.builds(
    Style,
    indent=st.integers(2, 8),
    width=st.sampled_from([20, 60, 100_000]),
    flow=st.sampled_from([True, False, None]),
    sort=st.booleans(),
    break_=st.sampled_from(["\n", "\r\n"]),
    comments=st.booleans(),
)


def node_at(text: str, path: Path, key: bool = False) -> tuple[int, int]:
    """Line and column of the value (or key) at `path`, by PyYAML alone."""
    node: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    mark = node.start_mark
    for number, part in enumerate(path):
        if isinstance(part, int):
            node = node.value[part]
            mark = node.start_mark
        else:
            name, node = next(pair for pair in node.value if pair[0].value == part)
            mark = name.start_mark if key and number == len(path) - 1 else node.start_mark
    return mark.line + 1, mark.column + 1


def changed(path: Path, value: Any) -> dict[str, Any]:
    data = copy.deepcopy(DOCUMENT)
    parent: Any = data
    for part in path[:-1]:
        parent = parent[part]
    parent[path[-1]] = value
    return data


def told(text: str) -> list[tuple[int, int]]:
    with pytest.raises(ConfigError) as caught:
        loads(text, "site.yaml")
    issues = caught.value.issues
    places = [(issue.line, issue.column) for issue in issues]
    assert places == sorted(places) and len(set(issues)) == len(issues)
    return places


@positions
@given(STYLES)
def test_the_document_is_valid_however_it_is_written(style: Style) -> None:
    site = loads(style.write(DOCUMENT))
    assert site.sources["line7"].model_dump()["topics"] == DOCUMENT["sources"]["line7"]["topics"]


# Of no kind that any key takes: a list of a list, or a mapping with one strange key.
WRONG = st.sampled_from([[["no"]], {"no such key": 1}])


@positions
@given(st.sampled_from(CHECKED), WRONG, STYLES)
def test_a_value_of_the_wrong_kind_is_pointed_at(path: Path, wrong: Any, style: Style) -> None:
    value = dict(places(DOCUMENT))[path]
    # A strange key in a mapping and a strange item in a list are told where they stand: inside.
    assume(type(value) is not type(wrong))
    assume(not (isinstance(wrong, dict) and path[-1] in ("password", "known", "Authorization", "Accept")))
    assume(not (isinstance(wrong, list) and path[-1] == "known"))
    text = style.write(changed(path, wrong))
    assert node_at(text, path) in told(text)


@positions
@given(st.sampled_from(CHECKED), STYLES)
def test_nothing_where_something_is_wanted_is_pointed_at(path: Path, style: Style) -> None:
    optional = {"topic_template", "username", "password", "tls", "timezone", "encoding", "multiline", "port"}
    optional |= {"known", "unit", "range", "choices", "severity", "category", "action", "clears", "sources"}
    optional |= {"categories", "source", "text", "metric", "topic", "above", "ca", "file", "credential"}
    optional |= {"find", "body"}
    assume(path[-1] not in optional or len(path) < 2)
    text = style.write(changed(path, None))
    assert node_at(text, path) in told(text)


@positions
@given(st.sampled_from(CLOSED), st.sampled_from(["zzz", "tpye", "descripton", "a b", "é"]), STYLES)
def test_an_unknown_key_is_pointed_at(where: Path, name: str, style: Style) -> None:
    assume(where[-1:] != ("severities",) or name != "error")
    path = (*where, name)
    text = style.write(changed(path, "x"))
    # A secret is refused as a whole, so that what was written into it is not repeated.
    secret = where[-1:] in (("password",), ("Authorization",))
    assert (node_at(text, where) if secret else node_at(text, path, key=True)) in told(text)


@positions
@given(st.sampled_from(REQUIRED), STYLES)
def test_a_missing_key_is_told_at_its_mapping(path: Path, style: Style) -> None:
    data = copy.deepcopy(DOCUMENT)
    parent: Any = data
    for part in path[:-1]:
        parent = parent[part]
    del parent[path[-1]]
    text = style.write(data)
    with pytest.raises(ConfigError) as caught:
        loads(text)
    at_parent = [
        issue for issue in caught.value.issues if (issue.line, issue.column) == node_at(text, path[:-1])
    ]
    assert any(f"missing key '{path[-1]}'" in issue.message for issue in at_parent)


# Values that are of the right kind, and mean nothing.
MEANINGLESS: list[tuple[Path, Any]] = [
    (("timezone",), "Mars/Olympus"),
    (("sources", "line7", "profile"), "pres"),
    (("sources", "line7", "topics", 1), "plant/#/x"),
    (("sources", "line7", "topic_template"), "other/{asset}/+"),
    (("sources", "line7", "qos"), 2),
    (("sources", "line7", "password"), "hunter2"),
    (("sources", "line7", "mode"), "lively"),
    (("sources", "file", "encoding"), "klingon"),
    (("sources", "file", "timezone"), "Berlin/Europe"),
    (("sources", "file", "multiline", "start"), "(?<=x)"),
    (("profiles", "press", "fields", "temp", "unit"), "furlong per"),
    (("profiles", "press", "fields", "temp", "range"), [5, 1]),
    (("profiles", "press", "fields", "state", "choices"), []),
    (("severities", "error"), ""),
    (("rules", 0, "when", "above"), "80"),
    (("rules", 0, "action"), "goo"),
    (("rules", 1, "id"), "hot"),
    (("rules", 1, "category"), "jem"),
    (("rules", 1, "when", "text"), "a(b"),
    (("rules", 1, "when", "source"), "line8"),
    (("rules", 2, "clears"), "free"),
    (("rules", 3, "when", "topic"), "a/#/b"),
    (("routes", 0, "sink"), "dsk"),
    (("routes", 0, "sources", 0), "line8"),
    (("routes", 0, "categories", 0), "jamb"),
    (("routes", 1, "id"), "jams"),
    (("sinks", "desk", "url"), "https://u:hunter2@desk"),
    (("sinks", "desk", "headers", "Authorization"), "Bearer hunter2"),
    (("sinks", "desk", "body", "list", 0), "{kee}"),
    (("sinks", "desk", "find", "url"), "https://desk"),
    (("sinks", "desk", "timeout_s"), 0),
]


@positions
@given(st.lists(st.sampled_from(MEANINGLESS), min_size=1, max_size=4, unique_by=lambda item: item[0]), STYLES)
def test_all_mistakes_are_told_at_once(mistakes: list[tuple[Path, Any]], style: Style) -> None:
    data = copy.deepcopy(DOCUMENT)
    for path, value in mistakes:
        parent: Any = data
        for part in path[:-1]:
            parent = parent[part]
        parent[path[-1]] = value
    text = style.write(data)
    shown = told(text)
    # Of two equal ids the second is the mistake, and both mistakes here may be about the same pair.
    for path, _ in mistakes:
        assert node_at(text, path) in shown


def only_config_errors(text: str) -> None:
    try:
        loads(text)
    except ConfigError as error:
        assert error.issues
        for issue in error.issues:
            assert issue.line >= 1 and issue.column >= 1 and issue.line <= len(text.splitlines()) + 1
            str(issue).encode()
            assert str(issue).isprintable()


@positions
@given(st.text(max_size=200))
def test_random_text_raises_nothing_but_config_errors(text: str) -> None:
    only_config_errors(text)


@positions
@given(st.text(alphabet="ab:-?![]{}&*#|>'\"%@`\\,\n\t <=~.01\ufeff\x85\u2028", max_size=60))
def test_random_yaml_signs_raise_nothing_but_config_errors(text: str) -> None:
    only_config_errors(text)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
KEYS = st.sampled_from([str(part) for path in CHECKED for part in path]) | st.text(max_size=4)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@positions
@given(st.dictionaries(st.sampled_from(list(DOCUMENT)), TREES, max_size=5), STYLES)
def test_random_trees_raise_nothing_but_config_errors(data: dict[str, Any], style: Style) -> None:
    only_config_errors(style.write(data))


@positions
@given(st.sampled_from([path for path, _ in places(DOCUMENT)]), TREES, STYLES)
def test_random_values_anywhere_raise_nothing_but_config_errors(path: Path, tree: Any, style: Style) -> None:
    only_config_errors(style.write(changed(path, tree)))


@positions
@given(st.integers(0, 4000), st.integers(0, 3), st.text(max_size=3), STYLES)
def test_a_damaged_file_raises_nothing_but_config_errors(at: int, cut: int, put: str, style: Style) -> None:
    text = style.write(DOCUMENT)
    only_config_errors(text[:at] + put + text[at + cut :])
