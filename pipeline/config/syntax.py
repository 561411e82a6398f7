"""YAML errors in words that help whoever edits the file.

Names from the file are left out on purpose: an unquoted password that starts with *, & or ! would be told.
"""

from __future__ import annotations

import re
from typing import Any, cast

import yaml
from yaml.reader import ReaderError

from pipeline.config.document import TOP, Position, printable
from schemas.errors import ConfigError, Issue

NO_TAGS = "tags (!...) are not used in a site file; quote the text if it starts with !"

# What is noticed late is told where it began: a missing ':' at its key, open quotes where they open.
_STARTED_EARLIER = r"could not find expected ':'|unexpected end of stream|scanning an? (tag|alias|anchor)"

# What PyYAML says, and what we say. The first that matches is used.
_WORDS = (
    (r"found character '\\t'", "a tab; indent with spaces"),
    (r"found character '(.)' that cannot start", "text cannot start with {}; put it in quotes"),
    (r"mapping values are not allowed", "a ':' where none fits; check the indentation, or quote the text"),
    (r"entries are not allowed", "a '-' where no list item fits; check the indentation"),
    (r"could not find expected ':'", "a key without ':' after it"),
    (r"undefined alias", "an alias (*name) that no anchor (&name) defines; quote text that starts with *"),
    (r"second occurrence", "an anchor (&name) that is defined already"),
    (r"scanning an (alias|anchor)", "text cannot start with & or *; put it in quotes"),
    (r"(scanning|parsing) a (tag|node)", NO_TAGS),
    (r"expected the node content", "a value is missing here"),
    (r"another document|document start", "a second document; remove the '---'"),
    (r"unexpected end of stream", "quotes that are never closed"),
    (r"expected ',' or '([\]}])'", "a ',' or the closing {} is missing"),
    (r"expected <block end>", "this line does not line up with those above it; check the indentation"),
    (r"escape", "an unknown \\ escape in double quotes; use single quotes for expressions"),
)


def refused(file: str, position: Position, message: str) -> ConfigError:
    """The one error of a file that cannot be read at all."""
    return ConfigError([Issue(TOP, printable(message), position.line, position.column, file)])


def place(mark: Any) -> Position:
    """A PyYAML mark (from 0) as a position (from 1)."""
    return Position(mark.line + 1, mark.column + 1)


def syntax_error(file: str, text: str, error: yaml.YAMLError) -> ConfigError:
    """`error`, met while `text` was composed, as a located ConfigError."""
    if isinstance(error, ReaderError):
        before = text[: cast(int, error.position)]
        position = Position(before.count("\n") + 1, len(before) - before.rfind("\n"))
        return refused(file, position, f"character U+{ord(text[len(before)]):04X} is not allowed in YAML")
    problem = f"{getattr(error, 'context', None) or ''} {getattr(error, 'problem', '')}".strip()
    mark = getattr(error, "problem_mark", None)
    if re.search(_STARTED_EARLIER, problem):
        mark = getattr(error, "context_mark", None) or mark
    return refused(file, place(mark) if mark else Position(), f"not valid YAML: {_words(problem)}")


def _words(problem: str) -> str:
    for pattern, words in _WORDS:
        match = re.search(pattern, problem)
        if match:
            return words.format(*match.groups())
    return re.sub(r"'[^']{2,}'", "...", problem) or "it cannot be read"
