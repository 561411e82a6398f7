"""Equipment named by words: Fan 2 (class word and number), UPS rack2 (class word and name), 2号泵."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from pipeline.fields import lexicon
from pipeline.fields.line import Line

HAN = "㐀-鿿"
LATIN = "A-Za-zÀ-ÖØ-öø-ɏ"
WORD = rf"{LATIN}0-9_{HAN}"

Found = Iterator[tuple[int, int, str, float]]  # start, end, form, weight

QUANTITY = re.compile(r"[-+]?\d+(?:[.,]\d+)?[A-Za-z°%µ²³/]{0,5}")
VERSION = re.compile(r"[vV]?\d+(?:\.\d+)+[a-z]?")

_BETWEEN = re.compile(r"[\s,/:>]{1,2}")  # between the parts of a place: "pack 3 cell 11", "Group:1 Axis:6"
_NUMBER = r"(?:0x[0-9A-Fa-f]{1,8}|[A-Z]?\d{1,6}[A-Z]?(?:[-./]\d{1,4}){0,3}|(?-i:[A-Z])(?![A-Za-z'’²³]|-\d))"
_TAG = r"[A-Z]{1,5}[-_]?\d{1,5}[A-Z]?"
_END = rf"(?![{WORD}%°]|[.,:]\d|[-@/][{LATIN}_])"


@cache
def _numbered() -> re.Pattern[str]:
    lists = lexicon.load("assets")
    nouns, before = lexicon.alternatives(lists["nouns"]), lexicon.alternatives(lists["qualifiers"])
    compounds = lexicon.alternatives(lists["compound_endings"])
    noun = (
        rf"(?:(?:(?:{before})[\s\-]){{0,2}}(?:{nouns})s?(?:\s(?:{nouns}))?|[{LATIN}]{{2,20}}(?:{compounds}))"
    )
    return re.compile(
        rf"(?<![{LATIN}0-9_.\-@])(?P<all>{noun}(?:\s?(?:no|nr|id|num|number)(?![a-z])\.?)?(?:[\s_:\-]\s?[#№]?|[#№]|(?=\d))(?P<n>{_NUMBER}|(?P<tag>{_TAG}))){_END}",
        re.IGNORECASE,
    )


_NAMED = re.compile(
    rf"(?<![{LATIN}0-9_.\-@/])(?P<words>(?:[A-ZÀ-Þ][{LATIN}\-]{{2,24}}\s){{0,2}})(?P<word>[A-ZÀ-Þ][{LATIN}]{{2,24}})\s(?P<n>n°\s?\d{{1,3}}|{_TAG}|\d{{1,4}}(?:-\d{{1,4}})?){_END}"
)
_CELL = re.compile(rf"(?<=[|;\t])\s{{0,3}}(?P<name>[{WORD}][{WORD} .\-/#]{{1,32}})\s{{0,3}}(?=[|;\t]|$)")
CELLS_MIN = 2  # fewer marks are punctuation
CELLS_MAX = 6  # names stand in the first columns
_HASHED = re.compile(
    rf"(?<![{WORD}.\-@/])[A-Z][\w\-]{{0,20}}\s(?:[A-Z0-9][\w\-]{{0,20}}\s){{0,2}}[#№]\d{{1,4}}(?![{WORD}])"
)

# A maker and a model open the line: "HP LaserJet M607 [10.1.9.40] ...".
_MODEL = re.compile(
    rf"\W{{0,4}}(?P<name>(?:[A-Z][{LATIN}\-]{{1,20}}\s){{1,3}}(?=[A-Z\-]{{0,8}}\d)[A-Z0-9][A-Za-z0-9\-]{{1,12}})(?=\s?[\[(:|;,])"
)


def numbered(line: Line) -> Found:
    """A class word and a number: Fan 2, slave 12, CPU2; a capital word and a number or tag: Lathe 4."""
    parts: list[tuple[int, int]] = []
    for match in _numbered().finditer(line.text):
        if match.group("tag"):
            yield (*match.span("all"), "named_number", 0.45)
            continue
        parts.append(match.span("all"))
        yield (*match.span("all"), "class_number", 0.8)
        if len(match.group("n")) >= 3:
            yield (*match.span("n"), "class_number", 0.4)
    yield from _places(line.text, parts)
    for match in _NAMED.finditer(line.text):
        if _is_name(match.group("word")):
            yield match.start("word"), match.end(), "named_number", 0.4
            if match.group("words") and all(_is_name(word) for word in match.group("words").split()):
                yield (*match.span(), "named_number", 0.38)
    model = _MODEL.match(line.text, line.taken[0].end if line.taken and line.taken[0].start < 3 else 0)
    if model is not None and all(_is_name(word) for word in model.group("name").split()[:-1]):
        yield (*model.span("name"), "named_number", 0.5)
    for match in _HASHED.finditer(line.text):
        yield (*match.span(), "named_number", 0.6)


def _places(text: str, parts: list[tuple[int, int]]) -> Found:
    """Class numbers side by side are one place: pack 3 cell 11."""
    start = end = 0
    for begin, stop in parts:
        if not end or _BETWEEN.fullmatch(text, end, begin) is None:
            start = begin
        elif begin > start:
            yield start, stop, "place", 0.82
        end = stop


def _is_name(word: str) -> bool:
    """Whether a word before a number may name a machine: no level, no measured quantity, no error word."""
    lower = word.lower()
    return (
        lower not in lexicon.words("assets", "stop")
        and lower not in lexicon.words("codes", "words")
        and lower not in lexicon.level_words()
        and lexicon.dimension(word) is None
    )


@cache
def _called() -> re.Pattern[str]:
    nouns = lexicon.alternatives(
        noun.capitalize() for noun in lexicon.load("assets")["nouns"] if len(noun) > 2
    )
    name = rf"(?!(?:{nouns})(?![{LATIN}]))[A-ZÀ-Þ][a-zà-ÿ]{{2,20}}"
    return re.compile(rf"(?<![{LATIN}0-9_.\-@/])(?:{nouns})\s(?P<name>{name})(?![{WORD}])")


def called(line: Line) -> Found:
    """A class word and a name, both with a capital: Aufzug Nord, Tank West; not Motor Overload."""
    for match in _called().finditer(line.text):
        if _is_name(match.group("name")):
            yield (*match.span(), "called", 0.25)


@cache
def _led() -> re.Pattern[str]:
    lists = lexicon.load("assets")
    leads = lexicon.alternatives([*lists["leads"], *(noun for noun in lists["nouns"] if len(noun) > 2)])
    return re.compile(
        rf"(?<![{LATIN}\-])(?:{leads})[\s:]{{1,2}}(?:(?:is|the|a|an|der|die|das|dem|den)\s)?"
        rf"[\[\"'(<]?(?P<name>[/\\]?[{WORD}][{WORD}\-.@/:#\\]{{1,44}})",
        re.IGNORECASE,
    )


def led(line: Line) -> Found:
    """What follows a class word or a preposition: UPS rack2-eco, from cnc-gw-2, poll 700."""
    for match in _led().finditer(line.text):
        raw = match.group("name").rstrip(".:")
        start = match.start("name")
        if raw.isdigit():
            if len(raw) >= 3 and not line.text[start + len(raw) :].startswith((" times", " ms", " s ")):
                yield start, start + len(raw), "led", 0.3
            continue
        if QUANTITY.fullmatch(raw) or VERSION.fullmatch(raw):
            continue
        named = any(char.isdigit() or char in "_-@/\\" or ord(char) > 0x2E80 for char in raw)
        yield start, start + len(raw), "led", 0.6 if named else 0.35
        if ":" in raw:
            yield start, start + raw.index(":"), "led", 0.5


@cache
def _chinese() -> tuple[tuple[re.Pattern[str], float], ...]:
    lists = lexicon.load("assets")
    ends, nouns = lexicon.alternatives(lists["zh_endings"]), lexicon.alternatives(lists["zh_nouns"])
    bodies = (
        (
            rf"(?<![A-Za-z0-9.\-])(?:\d{{1,4}}(?:kV|千伏)\s?)?[A-Z0-9]{{1,6}}(?:段|号|#)?[{HAN}]{{0,8}}?"
            rf"(?:{ends})(?![{HAN}]{{0,2}}号)", 0.7
        ),
        (
            rf"(?<![A-Za-z0-9.\-])(?:[A-Z]?\d{{1,4}}(?:号|#|-\d{{1,3}})|[一二三四五六七八九十]{{1,3}}(?:号|车间|区|线))"
            rf"[{HAN}A-Z0-9#]{{0,12}}?(?:{ends})(?!号)", 0.7
        ),
        (rf"(?:{nouns})[\s#]?[A-Z]{{0,2}}\d{{1,4}}(?:号|#)?(?![\d.])", 0.7),
        (rf"[{HAN}A-Za-z0-9\-#]{{0,12}}[{HAN}](?:{ends})(?![{HAN}])", 0.55),
        (rf"(?<![0-9A-Za-z.])\d{{1,4}}(?:号|#)[{HAN}]{{2,8}}(?![{HAN}])", 0.6),
        (rf"(?<=[{HAN}])[A-Z]{{1,5}}-?\d{{1,5}}[A-Z]?(?=[{HAN}])", 0.5),
        (rf"(?<![{HAN}])[{HAN}]{{1,6}}\d{{1,4}}(?:号|#)", 0.55),
        (rf"[{HAN}]{{2,8}}[A-Z]{{1,3}}-?\d{{1,4}}[A-Z]?(?![A-Za-z0-9_.\-])", 0.5),
    )  # fmt: skip
    return tuple((re.compile(body), weight) for body, weight in bodies)


def chinese(line: Line) -> Found:
    """Chinese equipment: number and noun, noun and number, or a word that ends as equipment does."""
    if not any("㐀" <= char <= "鿿" for char in line.text):
        return
    for expression, weight in _chinese():
        for match in expression.finditer(line.text):
            yield (*match.span(), "han", weight)
            if " " in match.group():
                yield match.start() + match.group().index(" ") + 1, match.end(), "han", 0.4


@cache
def _subject() -> re.Pattern[str]:
    """Up to four words that open the message, up to a mark or a word of fault: "Cold Room 4 (AK) Alarm"."""
    lists = lexicon.load("codes")
    faults = lexicon.alternatives(word for word in lists["words"] if word[0].isalpha() and word[0] < "\u0400")
    word = rf"[{WORD}][{WORD}.\-/#]{{0,20}}"
    return re.compile(
        rf"[\s\])|>,;\-]{{0,4}}(?P<name>{word}(?:\s{word}){{1,3}}?)"
        rf"(?=\s?[:(\[|;,\t]|\s-\s|\s(?:{faults})(?![{LATIN}]))",
        re.IGNORECASE,
    )


def subject(line: Line) -> Found:
    """The words a message opens with, where they have a digit and a capital: they name what it is about."""
    start = line.taken[0].end if line.taken and line.taken[0].start < 3 else 0
    match = _subject().match(line.text, start)
    if match is None:
        return
    name = match.group("name")
    if any(char.isdigit() for char in name) and any(char.isupper() for char in name):
        first, last = name.split()[0].lower(), name.split()[-1].lower()
        if not {first, last} & (lexicon.level_words() | lexicon.words("assets", "stop")):
            yield (*match.span("name"), "subject", 0.26)


def cells(line: Line) -> Found:
    """Columns that hold a short name: "...;K;Kühlmittelpumpe P-204;Druck zu niedrig"."""
    found = list(_CELL.finditer(line.text))
    for match in found[:CELLS_MAX] if len(found) >= CELLS_MIN else ():
        if any(char.isalpha() for char in match.group("name")):
            yield (*match.span("name"), "cell", 0.25)
