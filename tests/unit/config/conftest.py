"""How the tests of the site file look at its errors."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable

import pytest

from pipeline.config import loads
from schemas.errors import ConfigError


def errors(text: str) -> list[str]:
    """Every error as shown, without the file's name; none for a valid text."""
    try:
        loads(textwrap.dedent(text).lstrip("\n"))
    except ConfigError as error:
        return [str(issue).removeprefix("site.yaml:") for issue in error.issues]
    return []


def marks(text: str) -> list[str]:
    """`line:column` of every § in the text, were the others not there."""
    before = [text[: match.start()].replace("§", "") for match in re.finditer("§", text)]
    return [f"{part.count(chr(10)) + 1}:{len(part) - part.rfind(chr(10))}" for part in before]


def compare(row: tuple[str, ...]) -> None:
    """A row is a text with a § where each of its errors is, then the errors in that order."""
    text, *messages = row
    places = marks(text) if len(messages) > 1 else marks(text)[:1]
    expected = [f"{place}: {message}" for place, message in zip(places, messages, strict=True)]
    assert errors(text.replace("§", "")) == expected


@pytest.fixture
def told() -> Callable[[str], list[str]]:
    return errors


@pytest.fixture
def agrees() -> Callable[[tuple[str, ...]], None]:
    return compare
