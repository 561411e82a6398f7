"""decode, second step: payloads as JSON, tolerant where devices err, exact about what was written.

Numbers keep the text they were written with (2**63, 1e400, 21.50). NaN and Infinity in any case are *bad*
values, not errors. Members of the same name are all kept.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


class Number(str):
    """A JSON number, as written."""


class Bad(str):
    """NaN or Infinity, as written."""


@dataclass(frozen=True, slots=True)
class Obj:
    """A JSON object: its members in order, repeated names included."""

    members: list[tuple[str, Node]]


Node = Obj | list["Node"] | Number | Bad | str | bool | None


class NotJson(ValueError):
    """Not JSON: it is text."""


class TooDeep(ValueError):
    """Nested deeper than `limits.json_depth`."""


# Outside of strings; a string is matched whole so that what it holds is left alone. The closing quote is
# optional, which keeps the search linear on cut payloads.
_STRING = r'"(?:[^"\\]|\\.)*"?'
_BRACKETS = re.compile(_STRING + r"|[\[\]{}]", re.DOTALL)
_COMMAS = re.compile(_STRING + r"|[\[\]{},]", re.DOTALL)
_BARE_NAN = re.compile(_STRING + r"|(?<![\w.])[-+]?(?:nan|inf(?:inity)?)(?![\w.])", re.DOTALL | re.IGNORECASE)
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL
)
_BROKEN = re.compile(r'\s*[{\[]\s*\{?\s*"[^"]*"\s*:')


def parse(text: str, depth: int) -> Node:
    """The document in `text`, which starts with a bracket. Raises NotJson, or TooDeep beyond `depth`."""
    if text.count("{") + text.count("[") > depth and _depth(text) > depth:
        raise TooDeep
    try:
        return _load(text, iter(()))
    except ValueError:
        pass
    words = [word for word in _BARE_NAN.findall(text) if not word.startswith('"')]
    if not words:
        raise NotJson
    try:
        return _load(_BARE_NAN.sub(_as_constant, text), iter(words))
    except ValueError as error:
        raise NotJson from error


def looks_broken(text: str) -> bool:
    """Whether text that is not JSON was meant to be: reading half a document would invent values."""
    return _BROKEN.match(text) is not None


def items(text: str) -> list[str]:
    """What stands between the commas of the JSON array that is all of `text`, without blanks around it."""
    found, level, start = [], 0, 0
    for match in _COMMAS.finditer(text):
        token = match[0]
        if token in "[{":
            level += 1
            start = match.end() if level == 1 else start
        elif token in "]}" or (token == "," and level == 1):
            if level == 1:
                found.append(text[start : match.start()].strip())
                start = match.end()
            level -= token != ","
    return found


def readable(text: str) -> str:
    """JSON text with its `\\uXXXX` escapes of printable characters decoded, so that words read as words."""
    return _ESCAPE.sub(_unescape, text) if "\\u" in text else text


def clean(text: str) -> str:
    """A JSON string's value without NULs and lone surrogates, which no store takes."""
    if "\0" in text:
        text = text.replace("\0", "")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _load(text: str, words: Iterator[str]) -> Node:
    node: Node = json.JSONDecoder(
        object_pairs_hook=Obj,
        parse_float=Number,
        parse_int=Number,
        parse_constant=lambda constant: Bad(next(words, constant)),
        strict=False,  # raw tabs and line feeds inside strings: devices write them
    ).decode(text)
    return node


def _as_constant(match: re.Match[str]) -> str:
    return match[0] if match[0].startswith('"') else "NaN"


def _depth(text: str) -> int:
    level = deepest = 0
    for token in _BRACKETS.findall(text):
        if token in "{[":
            level += 1
            deepest = max(deepest, level)
        elif token in "}]":
            level -= 1
    return deepest


def _unescape(match: re.Match[str]) -> str:
    if not match[0].startswith("\\u"):
        return match[0]
    character: Any = json.loads(f'"{match[0]}"')
    return character if character.isprintable() and character not in '"\\' else match[0]
