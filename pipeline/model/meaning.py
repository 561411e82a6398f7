"""What a line says of severity, category and course, by its level words and its meaning words alone (no
model).

Severity is max(explicit level, meaning): a logger's INFO does not make a safety stop routine. Words that are
denied ("no error", "errors: 0") say nothing; words of return to normal make the meaning routine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

import yaml

from pipeline.fields import lexicon
from schemas.extraction import Severity, Span

# A level word stands in a line's header; further on it is prose. Logger headers with thread and class names
# are long.
HEADER_CHARS = 160
SEARCH_CHARS = (
    2_000  # what a line means is said in its first words; bounds the work on lines of 16 KB and more
)

PART_COUNT = 2  # "Fühler B4 defekt": the part tells more than "port" does, and less than what happened


@dataclass(frozen=True, slots=True)
class Level:
    """An explicit level: a logger's, a syslog priority's or a mnemonic's."""

    severity: Severity
    span: Span


@dataclass(frozen=True, slots=True)
class Term:
    """A word of meaning found in the line, not denied. `concept` is a built-in category, None for "something
    failed".
    """

    severity: Severity
    concept: str | None
    weight: float
    span: Span


@dataclass(frozen=True, slots=True)
class Meaning:
    """All that was found. `clear` tells that the line reports a return to normal.

    `ended` tells that its last words do, so that the level before them is that of the alarm which is over
    ("ALARM 12: PAPER OUT CLEAR").

    `hints` counts, for each concept, the different words that speak of its place (a disk, a bus, a script); a
    word for the part itself (a probe, an encoder) counts PART_COUNT.
    """

    level: Level | None = None
    terms: tuple[Term, ...] = ()
    clear: bool = False
    ended: bool = False
    hints: Mapping[str, int] = field(default_factory=dict)


def understand(text: str) -> Meaning:
    """Reads `text` for levels and meaning; linear in its length, never raises."""
    seen = _spaced(text[:SEARCH_CHARS])
    clear = _clears(seen)
    return Meaning(find_level(text), _terms(seen), clear, clear and _ends_clear(seen), _hints(seen))


# ---- explicit level

_PRIORITY = re.compile(r"<(\d{1,3})>")
_MNEMONIC = re.compile(
    r"%{1,2}(?:\d\d)?[A-Z][A-Z0-9_]*(?:-[A-Z0-9_]+)?[-/]([0-7])[-/][A-Z]|\b[A-Z][A-Z0-9_]+/([0-7])/[A-Z]"
)
_LETTER = re.compile(
    r"(?:^|[\s\[|(])\[?([A-Z])(?:!|\]| \(\d+\)|/(?=[a-z])|(?=\d{4} \d\d:)|(?<=^.)(?= \d|  ))"
)


@cache
def _level_words() -> dict[str, Severity]:
    return {
        word.lower(): severity for severity in Severity for word in lexicon.load("levels")[severity.value]
    }


@cache
def _level_expressions() -> tuple[re.Pattern[str], ...]:
    """Ways a level is written, from the surest on. Group 1 is the word."""
    latin = [word for word in _level_words() if word.isascii() or word[0].isascii()]
    loud = lexicon.alternatives(word.upper() for word in latin if len(word) > 2)
    words = lexicon.alternatives(word for word in latin if len(word) > 2)
    all_words = lexicon.alternatives(_level_words())
    keys = lexicon.alternatives(lexicon.load("levels")["keys"])
    return (
        re.compile(
            rf"(?<![^\W_])(?:{keys})[\"']?\s{{0,2}}[=:：]\s{{0,2}}[\"']?({all_words})(?!\w)", re.IGNORECASE
        ),
        re.compile(rf"[\[|(<{{]\s{{0,3}}({words})\s{{0,3}}[\]|)>}}]", re.IGNORECASE),
        re.compile(rf"(?<![\w.%-])({loud})(?![\w%])(?!\.\w)"),
        re.compile(rf"(?:^|[\]\s,;|])({words})(?=:(?!\d)|\s?[,;|]\s|!\s)", re.IGNORECASE),
    )


def find_level(text: str) -> Level | None:
    """The explicit level, or None. Of several, the surest form counts; equal forms joined by commas, the
    highest.
    """
    header = text[:HEADER_CHARS]
    for expression in (_PRIORITY, _MNEMONIC):
        match = expression.match(header) if expression is _PRIORITY else expression.search(header)
        if match is not None:
            digit = int(match.group(match.lastindex or 1)) % 8
            return Level(Severity(lexicon.load("levels")["digits"][str(digit)]), Span(*match.span()))
    for expression in _level_expressions():
        match = expression.search(header)
        if match is not None:
            return Level(_level_words()[match.group(1).lower()], Span(*match.span(1)))
    letter = _LETTER.search(header[:64])
    named = lexicon.load("levels")["letters"].get(letter.group(1)) if letter else None
    return Level(Severity(named), Span(*letter.span(1))) if letter and named else None


# ---- meaning

# "no error", "0 errors", "without fault", "kein Fehler", "无故障": what follows did not happen.
_DENIED_BEFORE = re.compile(
    r"(?:\b(?:no|not|without|zero|0|never|ohne|keine?|nicht)\s{1,2}(?:\w{1,12}\s)?|[无未没])$", re.IGNORECASE
)
# "error: 0", "fault=none", "ErrorCode":0, "alarm: off": nothing is the matter.
_DENIED_AFTER = re.compile(
    r"[\w \-]{0,16}[\"']?\s{0,2}[=:：]\s{0,2}[\"'\[]?"
    r"(?:0x0+|0+(?:\.0+)?|none|null|false|no|ok|off|normal|ready|-+|\[?\]|无)(?![\w.])(?!:)",
    re.IGNORECASE,
)
# "error count", "alarm limit", "fault reset": a name, a setting or a command, not an event.
_NAME_AFTER = re.compile(
    r"\s(?:count(?:er)?s?|limit(?:ing|s)?|threshold|log|handler|handling|history|rate|level|list|mask)\b",
    re.IGNORECASE,
)
_CONTEXT = 24  # characters left of a word in which it can be denied


@cache
def own_list(name: str) -> Any:
    """The word list in pipeline/model/data/NAME.yaml."""
    text = resources.files(__package__).joinpath("data", f"{name}.yaml").read_text(encoding="utf-8")
    return yaml.load(text, Loader=yaml.BaseLoader)


@cache
def concepts() -> dict[str, re.Pattern[str]]:
    """The built-in categories, each with the words by which a site's own label is taken for it."""
    return {
        concept: lexicon.pattern([concept.replace("_", " "), *words["names"]])
        for concept, words in own_list("hints").items()
    }


@cache
def _places() -> tuple[tuple[str, re.Pattern[str], int], ...]:
    """Concept, words and what each of them counts."""
    counts = {"places": 1, "parts": PART_COUNT}
    return tuple(
        (concept, lexicon.pattern(words[key]), count)
        for concept, words in own_list("hints").items()
        for key, count in counts.items()
        if words.get(key)
    )


@cache
def _entries() -> tuple[tuple[re.Pattern[str], Severity, str | None, float], ...]:
    return tuple(
        (
            lexicon.pattern(entry["words"]),
            Severity(entry["severity"]),
            entry["category"] if entry["category"] not in ("null", "") else None,
            float(entry["weight"]),
        )
        for entry in [*lexicon.load("meaning"), *own_list("terms")]
    )


def _spaced(text: str) -> str:
    return text.replace("_", " ")


def _terms(text: str) -> tuple[Term, ...]:
    """The words found, in order; a word inside a longer one does not count ("failed password")."""
    found = [
        Term(severity, concept, weight, Span(*match.span()))
        for expression, severity, concept, weight in _entries()
        for match in expression.finditer(text)
        if not _denied(text, match.start(), match.end())
    ]
    found.sort(key=lambda term: (term.span.start, -term.span.end, -term.weight))
    kept: list[Term] = []
    for term in found:
        if not kept or term.span.end > kept[-1].span.end:
            kept.append(term)
    return tuple(kept)


def _denied(text: str, start: int, end: int) -> bool:
    return (
        _DENIED_BEFORE.search(text[max(0, start - _CONTEXT) : start]) is not None
        or _DENIED_AFTER.match(text, end) is not None
        or _NAME_AFTER.match(text, end) is not None
    )


def _hints(text: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for concept, expression, count in _places():
        words = {match.group().lower() for match in expression.finditer(text)}
        if words:
            counts[concept] = counts.get(concept, 0) + count * len(words)
    return counts


@cache
def _clear_expressions() -> tuple[re.Pattern[str], re.Pattern[str]]:
    lists = lexicon.load("clears")
    negation = rf"(?:{lexicon.alternatives(lists['not'])})\W{{0,2}}\w{{0,3}}\W?$"
    return lexicon.pattern(lists["words"]), re.compile(negation, re.IGNORECASE)


def _clears(text: str) -> bool:
    words, negations = _clear_expressions()
    return any(
        negations.search(text[max(0, match.start() - 16) : match.start()]) is None
        for match in words.finditer(text)
    )


# "ERROR: could not restore to normal" ends like a return to normal and is none.
_NOT_DONE = re.compile(
    r"\b(?:not|cannot|unable|fail(?:s|ed|ure)?|never|before|until|nicht|ohne)\b|n't\b|[未不无]|失败",
    re.IGNORECASE,
)


def _ends_clear(text: str) -> bool:
    """Whether the last letters of the line are a word of return to normal, and nothing in it denies that."""
    words, _ = _clear_expressions()
    last = max((match.end() for match in words.finditer(text)), default=len(text))
    return not any(char.isalpha() for char in text[last:]) and _NOT_DONE.search(text) is None
