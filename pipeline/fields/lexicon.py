"""The word lists, loaded once from data/*.yaml, and the questions asked of them.

Words are compared without case: `word` is a whole word, `word*` its beginning, `*word*` stands anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Any

import yaml

from schemas.extraction import Severity, Span

LABEL_MAX = 64  # characters to the left of a value that can name it
STAR_MAX = 12  # characters of a word that a star inside an entry stands for; bounds the search


@cache
def load(name: str) -> Any:
    """The list in data/NAME.yaml. Every scalar is a string: `on`, `no` and `1` are words here."""
    text = resources.files(__package__).joinpath("data", f"{name}.yaml").read_text(encoding="utf-8")
    return yaml.load(text, Loader=yaml.BaseLoader)


@cache
def words(name: str, key: str) -> frozenset[str]:
    """One list as a set, in lower case."""
    return frozenset(word.lower() for word in load(name)[key])


_LETTER_BEFORE = r"(?<![^\W\d_])"
_LETTER_AFTER = r"(?![^\W\d_])"


def pattern(entries: Iterable[str]) -> re.Pattern[str]:
    """One expression for a word list: more words first, longer words first.

    A blank matches up to three, a star inside up to STAR_MAX characters of a word (`config* error`).

    What the words have in common stands once, before them, which takes a quarter of the time.
    """
    kinds: dict[tuple[int, bool, bool], set[str]] = {}
    for entry in entries:
        kind = (-entry.count(" "), entry.startswith("*"), entry.endswith("*"))
        kinds.setdefault(kind, set()).add(entry.strip("*"))
    parts = []
    for (_, open_left, open_right), bodies in sorted(kinds.items()):
        body = alternatives(bodies).replace(r"\ ", r"\s{1,3}").replace(r"\*", rf"\w{{0,{STAR_MAX}}}")
        left, right = "" if open_left else _LETTER_BEFORE, "" if open_right else _LETTER_AFTER
        parts.append(f"{left}(?:{body}){right}")
    return re.compile("|".join(parts) or r"(?!)", re.IGNORECASE)


def alternatives(entries: Iterable[str]) -> str:
    """The escaped alternation of plain words, longest first, for use inside a larger expression."""
    return "|".join(re.escape(entry) for entry in sorted(set(entries), key=len, reverse=True))


_HUMP = re.compile(r"(?<=[a-zà-ÿ0-9])(?=[A-ZÀ-Þ])|(?<=[A-Z])(?=[A-Z][a-z])|_")


def plain(text: str) -> str:
    """Keys as words: `APhaseTemperature`, `motor_speed` become `a phase temperature`, `motor speed`."""
    return _HUMP.sub(" ", text).lower()


class Meanings:
    """What single words mean, for lists asked too often for one expression: each word is worked out once."""

    def __init__(self, table: Mapping[str, Iterable[str]]) -> None:
        entries = [(entry.lower(), name) for name, listed in table.items() for entry in listed]
        self._whole = {entry: name for entry, name in reversed(entries) if "*" not in entry}
        self._starts = [(e[:-1], name) for e, name in entries if e.endswith("*") and not e.startswith("*")]
        self._inside = [(e.strip("*"), name) for e, name in entries if e.startswith("*")]
        self.of_word = lru_cache(maxsize=8192)(self._of_word)

    def _of_word(self, word: str) -> str | None:
        """The meaning of a word in lower case; of several in it the last (Druckraumtemperatur)."""
        if word in self._whole:
            return self._whole[word]
        best, found = (0, 0), None  # where it ends, and how long it is
        for part, name in self._inside:
            at = word.rfind(part)
            if at >= 0 and (at + len(part), len(part)) > best:
                best, found = (at + len(part), len(part)), name
        for part, name in self._starts:
            if word.startswith(part) and (len(part), len(part)) > best:
                best, found = (len(part), len(part)), name
        return found

    def all(self, text: str) -> list[str]:
        """The meanings of the words of `text`, in its order."""
        return [found for word in _WORD.findall(plain(text)) if (found := self.of_word(word)) is not None]


_WORD = re.compile(r"[^\W\d_]+")


@cache
def _dimensions() -> Meanings:
    return Meanings(load("dimensions"))


@cache
def _setpoints() -> Meanings:
    return Meanings({"setpoint": load("setpoints")["words"]})


@lru_cache(maxsize=4096)
def dimension(label: str) -> str | None:
    """What a value labelled so measures ("temperature", "pressure", ...), by the word nearest to its end.

    A machine is no measurement, though it may be called like one: `boiler 2: 92` is a temperature, but in
    `press 7 cycle complete 12.3` the press says nothing of the number, since other words stand between.
    """
    text = plain(label[-LABEL_MAX:])
    for match in reversed([*_WORD.finditer(text)]):
        found = _dimensions().of_word(match.group())
        if found is not None and (match.group() not in _machines() or not _WORD.search(text, match.end())):
            return found
    return None


@cache
def _machines() -> frozenset[str]:
    return frozenset(load("assets")["nouns"])


@lru_cache(maxsize=1024)
def described_dimension(description: str) -> str | None:
    """What a field described so measures: the first such word, since what follows tells it from others."""
    found = _dimensions().all(description)
    return found[0] if found else None


@lru_cache(maxsize=4096)
def is_setpoint(label: str) -> bool:
    """Whether the words before a number say that it is a setpoint, limit, rating or statistic (RULES Q1)."""
    return bool(_setpoints().all(label[-LABEL_MAX:]))


# --- levels and meaning


@cache
def level_words() -> frozenset[str]:
    """All explicit level words, in lower case."""
    return frozenset(word.lower() for severity in Severity for word in load("levels")[severity.value])


@cache
def _level_words() -> tuple[re.Pattern[str], dict[str, Severity]]:
    lists = load("levels")
    table = {word.lower(): severity for severity in Severity for word in lists[severity.value]}
    names = alternatives(table)
    keys = alternatives(lists["keys"])
    return re.compile(
        rf"(?:(?<![^\W_])(?:{keys})[\"']?\s?[:=：]\s?[\"']?|^[\W_]{{0,4}}|[\[|(<]\s{{0,3}}|\s-\s|[,;\t:]\s?|\d[\])]?[Z]?\s{{1,4}})"
        rf"(?P<level>{names})(?=[\]|)>:;,\"'\s]|!|\s?-|$)",
        re.IGNORECASE,
    ), table


_PRI = re.compile(r"^<(?P<digit>\d{1,3})>")
_MNEMONIC = re.compile(
    r"%[A-Z][A-Z0-9_]{1,40}(?:-[A-Z0-9_]{1,40})?-(?P<digit>[0-7])-[A-Z0-9_]|(?<![\w/])[A-Z][A-Z0-9_]{1,40}/(?P<slash>[0-7])/[A-Z0-9_]"
)
_LETTER = re.compile(
    r"(?:^|[\s\]|])\[(?P<a>[VDTINWEFCA])\](?=[\[\s:]|$)|^\W{0,2}(?P<b>[VDIWEF])(?=\s\(\d|/[A-Za-z])|\s(?P<c>[DIWE])!\s|[\]\d]\s(?P<d>[VDIWEF])/[A-Za-z]|\|\s?(?P<e>[VDIWEF])\s?\|"
)


def level(text: str) -> tuple[Severity, Span] | None:
    """The level that the logger states, and where: [E], <187>, %LINK-3-UPDOWN, level=warn; else None.

    Only words in a logger's place count (the start, brackets, between marks, `level=`): prose is `meaning`.
    """
    lists = load("levels")
    match = _MNEMONIC.search(text)
    if match is not None:
        group = "digit" if match.group("digit") else "slash"
        return Severity(lists["digits"][match.group(group)]), Span(*match.span(group))
    match = _LETTER.search(text[:160])
    if match is not None and match.lastgroup:
        return Severity(lists["letters"][match.group(match.lastgroup)]), Span(*match.span(match.lastgroup))
    expression, table = _level_words()
    match = expression.search(text[:400])
    if match is not None:
        return table[match.group("level").lower()], Span(*match.span("level"))
    match = _PRI.search(text)
    if match is not None:
        return Severity(lists["digits"][str(int(match.group("digit")) % 8)]), Span(*match.span("digit"))
    return None


@dataclass(frozen=True, slots=True)
class _Sense:
    severity: Severity | None
    category: str | None
    weight: float
    expression: re.Pattern[str]


@cache
def _senses() -> tuple[_Sense, ...]:
    return tuple(
        _Sense(
            Severity(entry["severity"]) if entry["severity"] != "null" else None,
            entry["category"] if entry["category"] != "null" else None,
            float(entry["weight"]),
            pattern(entry["words"]),
        )
        for entry in load("meaning")
    )


def meaning(text: str) -> list[tuple[Severity | None, str | None, float, Span]]:
    """What the prose says: (severity, category, weight 0..1, where) of every word, the weightiest first.

    The categories are those of the built-in labels; a profile with others maps or ignores them.
    """
    found = [
        (sense.severity, sense.category, sense.weight, Span(*match.span()))
        for sense in _senses()
        for match in sense.expression.finditer(text)
    ]
    return sorted(found, key=lambda item: (-item[2], item[3]))


@cache
def _clear_words() -> tuple[re.Pattern[str], re.Pattern[str]]:
    lists = load("clears")
    latin = alternatives(word for word in lists["not"] if word.isascii())
    han = alternatives(word for word in lists["not"] if not word.isascii())
    negation = rf"(?:{_LETTER_BEFORE}(?:{latin})\s{{1,3}}(?:[^\W\d_]{{1,8}}\s{{1,3}})?|(?:{han})\w{{0,2}})$"
    return pattern(lists["words"]), re.compile(negation, re.IGNORECASE)


def clears(text: str) -> bool:
    """Whether the line says that a condition has returned to normal, and does not deny it."""
    words_, negation = _clear_words()
    return any(
        negation.search(text[max(0, m.start() - 16) : m.start()]) is None for m in words_.finditer(text)
    )


@cache
def _opposites() -> Mapping[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    for one, other in load("opposites"):
        table.setdefault(one.lower(), set()).add(other.lower())
        table.setdefault(other.lower(), set()).add(one.lower())
    return {word: frozenset(others) for word, others in table.items()}


def opposites(word: str) -> frozenset[str]:
    """The words that mean the contrary of `word`; empty when the lists have none."""
    return _opposites().get(word.lower(), frozenset())
