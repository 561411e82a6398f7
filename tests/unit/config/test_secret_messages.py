"""Secrets in the site file are refused and never repeated. The sign § marks where the error belongs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Agrees = Callable[[tuple[str, ...]], None]
Told = Callable[[str], list[str]]

SECRETS = [
    (
        "sources: {a: {type: mqtt, topics: [x], username: u, password: §hunter2}}",
        "sources.a.password: a secret never stands in the site file; use {file: /path} or {credential: name}",
    ),
    (
        "sources: {a: {type: mqtt, topics: [x], username: u, password: §4711}}",
        "sources.a.password: a secret never stands in the site file; use {file: /path} or {credential: name}",
    ),
    (
        "sources: {a: {type: mqtt, topics: [x], username: u, password: §[hunter2]}}",
        "sources.a.password: a secret never stands in the site file; use {file: /path} or {credential: name}",
    ),
    (
        "sources: {a: {type: mqtt, topics: [x], username: u, password: §{value: hunter2}}}",
        "sources.a.password: a secret is given as {file: /path} or {credential: name}",
    ),
    (
        "sources: {a: {type: mqtt, topics: [x], username: u, password: §{hunter2}}}",
        "sources.a.password: a secret is given as {file: /path} or {credential: name}",
    ),
    (
        "sources: {a: {type: mqtt, topics: [x], username: u, password: {file: §[hunter2]}}}",
        "sources.a.password.file: expected text, got a list",
    ),
    (
        "sources: {a: {type: mqtt, topics: [x], username: u, password: {file: §4711}}}",
        "sources.a.password.file: expected text, got a number",
    ),
    (
        "sinks: {h: {type: http, url: 'https://x/y', headers: {Authorization: §Bearer hunter2}}}",
        "sinks.h.headers.Authorization: a secret never stands in the site file; use {file: "
        "/path} or {credential: name}",
    ),
    (
        "sinks: {h: {type: http, url: 'https://x/y', headers: {X-Api-Key: §hunter2}}}",
        "sinks.h.headers.X-Api-Key: a secret never stands in the site file; use {file: "
        "/path} or {credential: name}",
    ),
    (
        "sinks: {h: {type: http, url: 'https://x/y', headers: {Cookie: §s=hunter2}}}",
        "sinks.h.headers.Cookie: a secret never stands in the site file; use {file: /path} "
        "or {credential: name}",
    ),
    (
        "sinks: {h: {type: http, url: 'https://x/y', headers: {PRIVATE-TOKEN: §hunter2}}}",
        "sinks.h.headers.PRIVATE-TOKEN: a secret never stands in the site file; use {file: "
        "/path} or {credential: name}",
    ),
    (
        "sinks: {h: {type: http, url: 'https://x/y', headers: {x_password: §4711}}}",
        "sinks.h.headers.x_password: expected text or {file: /path} or {credential: name}, got a number",
    ),
    (
        "sinks: {h: {type: http, url: §'https://me:hunter2@x/y'}}",
        "sinks.h.url: a password never stands in a URL; send it as a header given as {file: /path}",
    ),
    (
        "sinks: {h: {type: http, url: §'https://x/y?api_token=hunter2'}}",
        "sinks.h.url: a secret never stands in a URL; send it as a header given as {file: /path}",
    ),
    (
        "sources: {a: {type: mqtt, topics: [x], password: §*hunter2}}",
        "(file): not valid YAML: an alias (*name) that no anchor (&name) defines; quote text "
        "that starts with *",
    ),
    (
        "sources: {a: {type: mqtt, topics: [x], username: u, password: §!hunter2}}",
        "(file): not valid YAML: tags (!...) are not used in a site file; quote the text if it starts with !",
    ),
    (
        "sources: {a: {type: mqtt, topics: [x], password: §!hunter2!x y}}",
        "(file): not valid YAML: tags (!...) are not used in a site file; quote the text if it starts with !",
    ),
    (
        "sources: {a: {type: mqtt, topics: [x], password: §@hunter2}}",
        "(file): not valid YAML: text cannot start with @; put it in quotes",
    ),
]


@pytest.mark.parametrize("row", SECRETS, ids=lambda row: row[0][:60])
def test_message(row: tuple[str, ...], agrees: Agrees) -> None:
    agrees(row)


@pytest.mark.parametrize("row", SECRETS, ids=lambda row: row[0][:60])
def test_a_secret_is_never_repeated(row: tuple[str, ...], told: Told) -> None:
    shown = "\n".join(told(row[0].replace("§", "")))
    assert shown and "hunter2" not in shown and "4711" not in shown
