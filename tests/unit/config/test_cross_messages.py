"""Errors between parts, and of what values mean. The sign § marks where an error is to be pointed at."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Agrees = Callable[[tuple[str, ...]], None]
Told = Callable[[str], list[str]]

REFERENCES: list[tuple[str, ...]] = [
    (
        "sources: {a: {type: mqtt, topics: [x], profile: §machinelog}}",
        "sources.a.profile: unknown profile 'machinelog'; did you mean 'machine-log'?",
    ),
    (
        "routes: [{id: r, sink: §bord}]",
        "routes[0].sink: unknown sink 'bord'; did you mean 'board'?",
    ),
    (
        "routes: [{id: r, sink: board, sources: [§zz]}]",
        "routes[0].sources[0]: unknown source 'zz'",
    ),
    (
        "categories: {jam: stuck}\nroutes: [{id: r, sink: board, categories: [jam, §jamm]}]",
        "routes[0].categories[1]: unknown category 'jamm'; did you mean 'jam'?",
    ),
    (
        "rules: [{id: r, when: {text: x}, category: §hardware}]",
        "rules[0].category: unknown category 'hardware'; did you mean 'hardware_fault'?",
    ),
    (
        "actions: {go: go there}\nrules: [{id: r, when: {text: x}, action: §stop}]",
        "rules[0].action: unknown action 'stop'; known: go",
    ),
    (
        "rules: [{id: r, severity: error, when: {source: §b, text: x}}]",
        "rules[0].when.source: unknown source 'b'",
    ),
    (
        "rules: [{id: r, when: {text: x}, discard: true}, {id: §r, when: {text: y}, discard: true}]",
        "rules[1].id: id 'r' is used already by rules[0]",
    ),
    (
        "routes: [{id: r, sink: board, sources: []}, {id: §r, sink: board}]",
        "routes[1].id: id 'r' is used already by routes[0]",
    ),
    (
        "rules: [{id: r, when: {text: x}, clears: §r}]",
        "rules[0].clears: a rule cannot clear its own alarm; name the rule or code that raises it",
    ),
    (
        "rules: [{id: hot, when: {text: x}, severity: error}, {id: r, when: {text: y}, clears: §nope}]",
        "rules[1].clears: unknown rule 'nope'; known: hot; if it is a code, name it in "
        "`when: {code: [nope]}` of a rule, too",
    ),
    (
        "profiles: {machine-log: {fields: {c: {type: text, description: x}}}}\n"
        "rules: [{id: r, when: {text: y}, clears: §E207}]",
        "rules[0].clears: unknown rule or code 'E207'; known: r",
    ),
    (
        "profiles: {machine-log: {fields: {c: {type: code, description: x, known: [E1]}}}}\n"
        "rules: [{id: r, when: {code: [E1, §E2]}, clears: §q}]",
        "rules[0].when.code[1]: unknown code 'E2'; known: E1",
        "rules[0].clears: unknown rule or code 'q'; known: E1, r",
    ),
    (
        "rules: [{id: r, severity: error, when: {field: §temp, above: 3}}]",
        "rules[0].when.field: unknown field 'temp'; did you mean 'temperature'?",
    ),
    (
        "rules: [{id: r, severity: error, when: {field: §device, above: 3}}]",
        "rules[0].when.field: 'device' is of type asset; above and below need a quantity or number",
    ),
]

MEANINGS: list[tuple[str, ...]] = [
    (
        "timezone: §Europe/Berln",
        "timezone: unknown time zone 'Europe/Berln'; did you mean 'Europe/Berlin'?",
    ),
    (
        "timezone: §Shanghai",
        "timezone: unknown time zone 'Shanghai'; did you mean 'Asia/Shanghai'?",
    ),
    (
        "sources: {a: {type: mqtt, topics: [x], timezone: §../../etc/passwd}}",
        "sources.a.timezone: unknown time zone '../../etc/passwd'; write it like "
        "Europe/Berlin or Asia/Shanghai",
    ),
    (
        "sources: {a: {type: mqtt, topics: [x], encoding: §utf9}}",
        "sources.a.encoding: unknown text encoding 'utf9'; did you mean 'utf-8'?",
    ),
    (
        "sources: {a: {type: mqtt, topics: [x], encoding: §base64}}",
        "sources.a.encoding: unknown text encoding 'base64'; leave it out to have it found",
    ),
    (
        "sources: {a: {type: mqtt, topics: [x], framing: §multiline}}",
        "sources.a.framing: framing multiline needs the key multiline, with start",
    ),
    (
        "sources: {a: {type: mqtt, topics: [x], §multiline: {start: x}}}",
        "sources.a.multiline: multiline belongs to framing: multiline",
    ),
    (
        "sources: {a: {type: mqtt, topics: [x], framing: multiline, multiline: {start: §'(?=a)'}}}",
        "sources.a.multiline.start: no valid RE2 expression: invalid perl operator: (?=",
    ),
    (
        "rules: [{id: r, severity: error, when: {text: §'a(b'}}]",
        "rules[0].when.text: no valid RE2 expression: missing ): a(b",
    ),
    (
        "rules: [{id: r, severity: error, when: {topic: §a/#/b}}]",
        "rules[0].when.topic: # stands for all the rest, so it comes last",
    ),
    (
        "rules: [{id: r, severity: error, when: {topic: §a/b+}}]",
        "rules[0].when.topic: + stands for one whole level; 'b+' mixes it with text",
    ),
    (
        "sources: {a: {type: mqtt, topics: [§'p/{asset}']}}",
        "sources.a.topics[0]: names in braces belong to topic_template; write + here",
    ),
    (
        "sources: {a: {type: mqtt, topics: [x, y, §x]}}",
        "sources.a.topics[2]: topic 'x' stands there twice",
    ),
    (
        "sources: {a: {type: mqtt, topics: [p/+/log], topic_template: §'p/{asset}'}}",
        "sources.a.topic_template: has 2 levels, topic 'p/+/log' has 3",
    ),
    (
        "sources: {a: {type: mqtt, topics: [p/+/log], topic_template: §'q/{asset}/log'}}",
        "sources.a.topic_template: has 'q' where topic 'p/+/log' has 'p'",
    ),
    (
        "sources: {a: {type: mqtt, topics: [p/+/log], topic_template: §'p/{machine}/log'}}",
        "sources.a.topic_template: '{machine}': a level is {asset}, {metric}, +, # or fixed text",
    ),
    (
        "profiles: {p: {fields: {f: {description: x, type: quantity, unit: §barr}}}}",
        "profiles.p.fields.f.unit: unknown unit 'barr'; did you mean 'bar'?",
    ),
    (
        "profiles: {p: {fields: {f: {description: x, type: quantity, unit: §9**9**9**9}}}}",
        "profiles.p.fields.f.unit: unknown unit '9**9**9**9'; "
        "write it as in °C, bar, mm/s, rpm, or in full as in gigawatt, or leave unit out",
    ),
    (
        "profiles: {p: {fields: {f: {description: x, type: quantity, unit: §cats}}}}",
        "profiles.p.fields.f.unit: unknown unit 'cats'; did you mean 'Watts'?",
    ),
    (
        "profiles: {p: {fields: {f: {description: x, type: quantity, unit: §deg.C}}}}",
        "profiles.p.fields.f.unit: unknown unit 'deg.C'; did you mean 'deg. C'?",
    ),
    (
        "profiles: {p: {fields: {temperature: {type: quantity, description: x, unit: §bar}}}}",
        "profiles.p.fields.temperature.unit: 'bar' is a unit of pressure, the field is called temperature",
    ),
    (
        "profiles: {p: {fields: {§'a.b': {type: text, description: x}}}}",
        "profiles.p.fields.a.b: 'a.b' is no field name: letters, digits, _ and -, starting with a letter",
    ),
    (
        "profiles: {p: {fields: {f: {description: x, type: code, known: §[]}}}}",
        "profiles.p.fields.f.known: must not be empty; leave it out to allow every value",
    ),
    (
        "rules: [{id: r, severity: error, when: {text: x, deadband: §2}}]",
        "rules[0].when.deadband: deadband belongs to above or below",
    ),
    (
        "rules: [{id: r, severity: error, when: {metric: t, above: 80, below: §20}}]",
        "rules[0].when.below: no value is above and below these; for both sides of a band write two rules",
    ),
    (
        "rules: [{id: r, severity: error, when: {metric: t, text: §x}}]",
        "rules[0].when.text: text looks at lines and metric at readings: never both",
    ),
    (
        "sources: {a: {type: stdin}, b: {type: §stdin}}",
        "sources.b.type: standard input is used already by source 'a'",
    ),
    (
        "sources: {a: {type: mqtt, topics: [x], client_id: g}, b: {type: mqtt, topics: [y], client_id: §g}}",
        "sources.b.client_id: client id 'g' at this broker is used already by source 'a'",
    ),
    (
        "sources: {a: {type: mqtt, topics: [x], tls: §{cert: c.pem}}}",
        "sources.a.tls: cert and key go together: the client certificate and its private key",
    ),
    (
        "sinks: {h: {type: http, url: §'ftp://x'}}",
        "sinks.h.url: expected a URL that starts with https:// or http:// and names a host",
    ),
    (
        "sinks: {h: {type: http, url: 'https://x/y', find: {url: §'https://x'}}}",
        "sinks.h.find.url: needs {key} where the ticket's key goes",
    ),
    (
        "sinks: {h: {type: http, url: 'https://x/y', reference: §id}}",
        "sinks.h.reference: not a JSON pointer (like /id or /issue/key): 'id'",
    ),
    (
        "sinks: {h: {type: http, url: 'https://x/y', headers: {§'a b': c}}}",
        "sinks.h.headers.a b: 'a b' is no HTTP header name",
    ),
    (
        "sinks: {h: {type: http, url: 'https://x/y', headers: {a: §\"b\\nc\"}}}",
        "sinks.h.headers.a: an HTTP header holds one line of ASCII text",
    ),
    (
        "sinks: {h: {type: http, url: 'https://x/y', body: {a: [x, §'{fields.temp}']}}}",
        "sinks.h.body.a[1]: no field 'temp' in the profile; there are: current, device, "
        "error_code, pressure, speed, temperature, timestamp, vibration, voltage",
    ),
]


@pytest.mark.parametrize("row", REFERENCES + MEANINGS, ids=lambda row: row[0][:60])
def test_message(row: tuple[str, ...], agrees: Agrees) -> None:
    agrees(row)


def test_everything_at_once_in_file_order(told: Told) -> None:
    text = """
        timezone: Mars
        sources:
          b: {type: mqtt, topics: [x], port: 0, profile: no, colour: red}
          a: {type: file}
        sinks:
          h: {type: http, url: nowhere, headers: {Token: x}, timeout_s: -1}
        rules:
          - id: r
            when: {text: "("}
            severity: worst
            category: nope
    """
    assert [line.split(": ")[1] for line in told(text)] == [
        "timezone",
        "sources.b.port",
        "sources.b.profile",
        "sources.b.colour",
        "sources.a",
        "sinks.h.url",
        "sinks.h.headers.Token",
        "sinks.h.timeout_s",
        "rules[0].when.text",
        "rules[0].severity",
        "rules[0].category",
    ]
