"""Errors of shape and value. The sign § marks where an error is to be pointed at."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Agrees = Callable[[tuple[str, ...]], None]
Told = Callable[[str], list[str]]

SHAPES = [
    (
        "site: §3",
        'site: expected text, got the number 3; to mean it as text write "3"',
    ),
    (
        "limits:§",
        "limits: expected a mapping (key: value lines), got nothing; give it a value or remove the key",
    ),
    (
        "sources: §[]",
        "sources: expected a mapping (key: value lines), got a list",
    ),
    (
        "rules: §{}",
        "rules: expected a list, got a mapping",
    ),
    (
        "rules: [§x]",
        "rules[0]: expected a mapping with id and when, got text 'x'",
    ),
    (
        "sources: {a: §5}",
        "sources.a: expected a mapping with type, got the number 5",
    ),
    (
        "sources: {a: §{topics: [x]}}",
        "sources.a: missing key 'type'; it is mqtt, file or stdin",
    ),
    (
        "sources: {a: {type: §mqt}}",
        "sources.a.type: unknown type 'mqt'; known: mqtt, file, stdin; did you mean 'mqtt'?",
    ),
    (
        "sources: {a: {type: §opcua}}",
        "sources.a.type: unknown type 'opcua'; known: mqtt, file, stdin",
    ),
    (
        "sources: {a: {type: §3}}",
        "sources.a.type: expected mqtt, file or stdin, got the number 3",
    ),
    (
        "sinks: {a: {type: §bord}}",
        "sinks.a.type: unknown type 'bord'; known: http, board; did you mean 'board'?",
    ),
    (
        "sources: {a: §{type: file}}",
        "sources.a: missing key 'path'",
    ),
    (
        "sources: {a: §{type: mqtt}}",
        "sources.a: missing key 'topics'",
    ),
    (
        "sources: {a: {type: mqtt, §topcs: [x]}}",
        "sources.a.topcs: unknown key 'topcs'; did you mean 'topics'?",
    ),
    (
        "§routs: []",
        "routs: unknown key 'routs'; did you mean 'routes'?",
    ),
    (
        "metrics: {§zzz: 1}",
        "metrics.zzz: unknown key 'zzz'; known here: host, port",
    ),
    (
        "sources: {a: {type: file, path: x, §file: y}}",
        "sources.a.file: unknown key 'file'; did you mean 'profile'?",
    ),
    (
        "sources: {§'a b': {type: stdin}}",
        "sources.a b: expected a name of at most 64 characters, without spaces and any of / "
        "\\ + # : , { } [ ] < > & \" ' |, got 'a b'",
    ),
]

VALUES = [
    (
        "sources: {a: {type: mqtt, topics: [x], port: §70000}}",
        "sources.a.port: must be at most 65535, got the number 70000",
    ),
    (
        "sources: {a: {type: mqtt, topics: [x], port: §'1883'}}",
        "sources.a.port: expected a whole number, got text '1883'",
    ),
    (
        "sources: {a: {type: mqtt, topics: [x], port: §true}}",
        "sources.a.port: expected a whole number, got true",
    ),
    (
        "sources: {a: {type: mqtt, topics: [x], keepalive_s: §7.5}}",
        "sources.a.keepalive_s: expected a whole number, got the number 7.5",
    ),
    (
        "sources: {a: {type: mqtt, topics: [x], mode: §life}}",
        "sources.a.mode: expected observe or live, got text 'life'; did you mean 'live'?",
    ),
    (
        "sources: {a: {type: mqtt, topics: [x], protocol: §5}}",
        'sources.a.protocol: expected 5 or 3.1.1, got the number 5; to mean it as text write "5"',
    ),
    (
        "sources: {a: {type: mqtt, topics: [x], protocol: §4}}",
        "sources.a.protocol: expected 5 or 3.1.1, got the number 4",
    ),
    (
        "sources: {a: {type: mqtt, topics: §[]}}",
        "sources.a.topics: must not be empty",
    ),
    (
        "sources: {a: {type: file, path: x, follow: §yes}}",
        "sources.a.follow: expected true or false, got text 'yes'",
    ),
    (
        "rules: [{id: r, severity: error, when: {code: [§0012]}}]",
        'rules[0].when.code[0]: expected text, got the number 12; to mean it as text write "0012"',
    ),
    (
        "rules: [{id: r, severity: error, when: {metric: t, above: §.inf}}]",
        "rules[0].when.above: infinity and nan mean nothing here; write a number",
    ),
    (
        "rules: [{id: r, severity: error, when: {metric: t, above: §1e999}}]",
        "rules[0].when.above: infinity and nan mean nothing here; write a number",
    ),
    (
        "profiles: {p: {fields: {f: {description: x, type: quantity, range: §[1]}}}}",
        "profiles.p.fields.f.range: needs at least 2 items, has 1",
    ),
    (
        "profiles: {p: {fields: {f: {description: x, type: quantity, range: §[1, 2, 3]}}}}",
        "profiles.p.fields.f.range: needs at most 2 items, has 3",
    ),
    (
        "profiles: {p: {fields: {f: {description: x, type: number, range: §[3, 1]}}}}",
        "profiles.p.fields.f.range: range is [low, high] with low < high",
    ),
    (
        "profiles: {p: {fields: {f: {description: x, type: text, unit: §bar}}}}",
        "profiles.p.fields.f.unit: unit belongs to type quantity; remove it or change the type",
    ),
    (
        "profiles: {p: {fields: {f: §{description: x, type: choice}}}}",
        "profiles.p.fields.f: choices belongs to type choice, which needs it",
    ),
    (
        "profiles: {p: {fields: {f: {description: x, type: code, known: §3}}}}",
        "profiles.p.fields.f.known: expected a list or a mapping with csv, got the number 3",
    ),
    (
        "profiles: {p: {fields: {f: {description: x, type: code, known: [A, §7]}}}}",
        'profiles.p.fields.f.known[1]: expected text, got the number 7; to mean it as text write "7"',
    ),
    (
        "profiles: {p: {fields: {f: {description: x, type: code, known: {§cvs: x}}}}}",
        "profiles.p.fields.f.known.cvs: unknown key 'cvs'; did you mean 'csv'?",
    ),
    (
        "review: {confidence_min: §2}",
        "review.confidence_min: must be at most 1, got the number 2",
    ),
    (
        "limits: {unread_max_wait_s: §0}",
        "limits.unread_max_wait_s: must be more than 0, got the number 0",
    ),
    (
        "severities: {§warn: x}",
        "severities.warn: unknown key 'warn'; did you mean 'warning'?",
    ),
    (
        "severities: {info: §''}",
        "severities.info: must not be empty",
    ),
    (
        "rules: [{id: §'b c', when: {text: x}, discard: true}]",
        "rules[0].id: expected an id of letters, digits, _ . - that starts with a letter or "
        "digit, got text 'b c'",
    ),
    (
        "rules: [§{id: r, when: {text: x}}]",
        "rules[0]: a rule states severity, category, action, clears or discard",
    ),
    (
        "rules: [{id: r, severity: error, when: §{}}]",
        "rules[0].when: state at least one condition (text, code, metric, topic, ...)",
    ),
]


@pytest.mark.parametrize("row", SHAPES + VALUES, ids=lambda row: row[0][:60])
def test_message(row: tuple[str, ...], agrees: Agrees) -> None:
    agrees(row)


def test_one_mistake_is_told_once(told: Told) -> None:
    """A misspelt required key is not missed as well, a union's other members are not mentioned."""
    assert len(told("sources: {a: {type: mqtt, topis: [x]}}")) == 1
    assert len(told("profiles: {p: {fields: {f: {type: code, description: x, known: {csv: 3}}}}}")) == 1


def test_a_wrong_value_behind_an_alias_is_pointed_at_where_it_is_used(told: Told) -> None:
    text = """
        timezone: &zone Europe/Berlin
        sources:
          a: {type: mqtt, topics: [x], port: *zone}
    """
    assert told(text) == ["3:38: sources.a.port: expected a whole number, got text 'Europe/Berlin'"]
