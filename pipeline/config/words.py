"""Small helpers for messages: the nearest known name, what was found, what was expected."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any

SHOWN_MAX = 40  # characters of a wrong value that an error repeats
LISTED_MAX = 12  # names that an error lists

# Words that mark what must not stand in a site file, nor be repeated in an error.
SECRET = re.compile(
    r"authori[sz]ation|auth\b|token|secret|passw|passphrase|passcode|\bpwd|cookie|credential|session|apikey|(?<![a-z])key",
    re.IGNORECASE,
)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name that `word` was most likely meant to be, if any is near."""
    names = sorted(known)
    begun = [name for name in names if len(word) > 2 and name.casefold().startswith(word.casefold())]
    if len(begun) == 1:
        return begun[0]
    match = difflib.get_close_matches(word.casefold(), sorted({name.casefold() for name in names}), n=1)
    same = [name for name in names if match and name.casefold() == match[0]]
    return max(same, key=lambda name: difflib.SequenceMatcher(None, word, name).ratio(), default=None)


def unknown(what: str, word: str, known: Iterable[str]) -> str:
    """`unknown profile 'x'; did you mean 'y'?`, or the names that are known."""
    names = sorted(known)
    guess = nearest(word, names)
    if guess is not None:
        return f"unknown {what} {quoted(word)}; did you mean '{guess}'?"
    return (
        f"unknown {what} {quoted(word)}; known: {listed(names)}"
        if names
        else f"unknown {what} {quoted(word)}"
    )


def listed(names: Sequence[str]) -> str:
    """`a, b, c`; long lists end in how many more there are."""
    more = len(names) - LISTED_MAX
    return ", ".join(names[:LISTED_MAX]) + (f" and {more} more" if more > 0 else "")


def either(names: Sequence[str]) -> str:
    """`a, b or c`."""
    return " or ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def quoted(text: str) -> str:
    return f"'{text if len(text) <= SHOWN_MAX else text[: SHOWN_MAX - 3] + '...'}'"


def got(value: Any, hide: bool = False) -> str:
    """What stands there: `the number 12`, `text 'abc'`; with `hide` only its kind."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return "a number" if hide else f"the number {value}"
    if isinstance(value, str):
        return "text" if hide else f"text {quoted(value)}"
    return "a list" if isinstance(value, list) else "a mapping"
