"""Errors of YAML itself: the exact place and words. The sign § marks where an error is to be pointed at."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Agrees = Callable[[tuple[str, ...]], None]
Told = Callable[[str], list[str]]

SYNTAX = [
    (
        "§",
        "(file): the file is empty; start with 'sources:'",
    ),
    (
        "§# nothing yet\n",
        "(file): the file is empty; start with 'sources:'",
    ),
    (
        "§- a",
        "(file): expected 'key: value' lines at the top, got a list",
    ),
    (
        "§hello",
        "(file): expected 'key: value' lines at the top, got text",
    ),
    (
        "a: [1, 2§",
        "(file): not valid YAML: a ',' or the closing ] is missing",
    ),
    (
        "a:\n§\tb: 1",
        "(file): not valid YAML: a tab; indent with spaces",
    ),
    (
        "a: b§: c",
        "(file): not valid YAML: a ':' where none fits; check the indentation, or quote the text",
    ),
    (
        "a: 1\n§foo\nb: 2",
        "(file): not valid YAML: a key without ':' after it",
    ),
    (
        "a: §'x\nb: 2\n",
        "(file): not valid YAML: quotes that are never closed",
    ),
    (
        "site: 'x'\n§---\nsite: y",
        "(file): not valid YAML: a second document; remove the '---'",
    ),
    (
        "a: §\x01",
        "(file): character U+0001 is not allowed in YAML",
    ),
    (
        'a: "\\§d"',
        "(file): not valid YAML: an unknown \\ escape in double quotes; use single quotes for expressions",
    ),
    (
        'a: "\\U§FFFFFFFF"',
        "(file): not valid YAML: a number or escape that is out of range",
    ),
    (
        'site: §"\\ud800"',
        "site: half a surrogate pair is not text",
    ),
    (
        "site: a\n§site: b",
        "site: key 'site' is given twice; first in line 1",
    ),
    (
        "? §[a]\n: 1",
        "(file): a key must be text",
    ),
    (
        "site: §!!python/name:os.system",
        "site: tags (!...) are not used in a site file; quote the text if it starts with !",
    ),
    (
        "limits: §&a {<<: *a}",
        "(file): endless nesting once aliases (*name) are expanded",
    ),
    (
        "limits: §&a\n  x: *a",
        "(file): endless nesting once aliases (*name) are expanded",
    ),
    (
        "<<: §3",
        "<<: '<<' merges mappings; this is none",
    ),
    (
        "a: [[[[[[[[[[[[[[[[[[[[[[[§[[[[[[[",
        "(file): not valid YAML: more than 24 levels of nesting",
    ),
]


@pytest.mark.parametrize("row", SYNTAX, ids=lambda row: row[0][:60])
def test_message(row: tuple[str, ...], agrees: Agrees) -> None:
    agrees(row)


def test_control_characters_do_not_reach_the_terminal(told: Told) -> None:
    (shown,) = told('timezone: "\\e[31m\\a"')
    assert "\\x1b[31m\\x07" in shown and shown.isprintable()
