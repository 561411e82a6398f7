"""Codes: what a fault is called in the manual. Numbers by an error word, hex, mnemonics, constants."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache

from pipeline.fields import lexicon
from pipeline.fields.definition import FieldConfig, Profile
from pipeline.fields.line import Line
from pipeline.fields.values import Context, Normalised
from schemas.extraction import Candidate, FieldType, Span

CODE_MAX = 32  # a longer value is prose

_TYPES = frozenset({FieldType.CODE})
_SYMBOL = re.compile(r"[A-Z][A-Za-z0-9]{0,24}(?:[_\-][A-Za-z0-9]{1,24}){1,4}|(?:[A-Z][a-z]{1,20}){2,5}")
_BEFORE = r"(?<![A-Za-z0-9_.\-/])"
_AFTER = r"(?![A-Za-z0-9_])"

# form, weight, expression; the group "code" is the span where there is one.
_FORMS: tuple[tuple[str, float, str], ...] = (
    ("mnemonic", 0.95, r"%[A-Z][A-Z0-9_]{1,40}(?:-[A-Z0-9_]{1,40})?-[0-7]-[A-Z0-9_]{2,60}"),
    ("mnemonic", 0.9, r"(?:" + _BEFORE + r"|(?<=%%\d\d))[A-Z][A-Z0-9_]{1,40}/[0-7]/[A-Z0-9_]{2,60}" + _AFTER),
    (
        "class_number",
        0.9,
        r"(?<![A-Za-z0-9_])(?i:alarm|error|err|fault|warning|warn|trip|fehler|event):\d{1,6}(?![\w.])",
    ),
    (
        "spn_fmi",
        0.95,
        r"(?<![A-Za-z0-9])(?i:SPN)[\s:=]{0,2}\d{1,6}[\s,;/]{1,3}(?i:FMI)[\s:=]{0,2}\d{1,2}" + _AFTER,
    ),
    ("hex", 0.6, _BEFORE + r"0[xX][0-9A-Fa-f]{1,16}" + _AFTER),
    ("hex", 0.6, r"(?<![A-Za-z0-9_.#])16#\s?[0-9A-Fa-f_]{1,16}" + _AFTER),
    ("hex", 0.5, _BEFORE + r"(?=[0-9A-F]{0,8}\d)[0-9A-F]{2,8}[hH]" + _AFTER),
    ("hex_pair", 0.4, r"(?<![\w:.\-])[0-9A-Fa-f]{4}:[0-9A-Fa-f]{4}(?![\w:])"),
    ("status_name", 0.6, _BEFORE + r"(?:Bad|Uncertain)(?:[A-Z][a-z]{1,20}){1,6}" + _AFTER),
    ("errno_name", 0.6, _BEFORE + r"E[A-Z]{4,14}\d?" + _AFTER),
    ("constant", 0.5, _BEFORE + r"[A-Z][A-Z0-9]{0,20}(?:_[A-Z0-9]{1,20}){1,8}" + _AFTER),
    (
        "letters_digits",
        0.6,
        _BEFORE + r"[A-Z]{1,8}-?\d{1,6}(?:[.\-]\d{1,4}){0,2}[A-Z]?\d?" + r"(?![A-Za-z0-9_\-]|\.\d)",
    ),
    ("letters_digits", 0.5, _BEFORE + r"[A-Z][A-Za-z]{0,4}(?:\.\d{1,4}){1,3}" + r"(?![\w\-.])"),
    ("letters_digits", 0.55, _BEFORE + r"[A-Z]\d{2,4}[A-Z]\d{1,3}" + _AFTER),
    ("digits_dashed", 0.35, _BEFORE + r"\d{2,6}-[0-9A-F]{1,6}" + r"(?![\w\-.:])"),
    # Three groups of two, with a letter or words behind them: "13.B2.D1 paper jam"; not the version 1.02.03.
    ("dotted", 0.33, r"(?<![\w.:,\-/])\d\d\.[0-9A-F]{2}\.[0-9A-F]{2}(?=\s[A-Za-z])"),
    # Glued to the word that failed: "timed out(60)", "Response(131, 3)".
    ("parenthesised", 0.32, r"(?<=[a-z])\((?P<code>-?\d{1,6})(?=[,)])"),
    ("parenthesised", 0.4, r"\((?P<code>-?\d{1,6})\)(?=\W{0,4}$|\))"),
    ("leading", 0.45, r"^\s{0,4}(?P<code>\d{1,6})(?=\s?[|;]\s?\D)"),
    ("leading_caps", 0.4, r"^\W{0,3}(?P<code>[A-Z]{4,12})(?=\s\d{6})"),
    ("http_status", 0.5, r"(?:HTTP/?[\d.]{0,3}\"?\s|status[=:\s]{1,2}|\"\s)(?P<code>[45]\d\d)(?![\w.])"),
    ("negative", 0.4, r"(?:[=:]\s?|\s)(?P<code>-\d{1,5})(?=$|[\s,;)\]])"),
    # A number of its own before the words it stands for: "25201 Axis Z1 drive fault", "700016 [NCK] ...".
    ("event_number", 0.31, r"(?<![\w.,:=\-/+()])(?P<code>\d{4,7})(?=\s{1,2}[\[A-Za-zÀ-ɏ㐀-鿿][^\W\d_]{2})"),
    ("event_number", 0.31, r"(?<![\w.,:=\-/+()])(?P<code>\d{2,3})(?=\s[A-Z]{4})"),
    ("short_tag", 0.3, r"(?<![A-Za-z0-9_.\-/:#])[A-Za-z]{1,3}\d{1,3}(?![\w.\-:/#])"),
    # Letters and digits in any order: f2041, oL1, 18x6E.
    (
        "mixed",
        0.28,
        _BEFORE
        + r"(?:[a-z]\d{3,5}|\d{1,3}[A-Za-z]\d{1,3}[A-Z]?|[A-Za-z]{1,4}\d{1,4}[A-Za-z]?)(?![\w\-/:#]|\.\w)",
    ),
    # A column of its own, behind one of words or with a leading zero: "Alarm;4711;K", ",0213,".
    (
        "column",
        0.4,
        r"(?:(?<=[A-Za-zäöü])\s?[;|,\t]\s?(?P<code>\d{2,7})|(?<=\d)[;|,\t](?P<padded>0\d{2,5}))(?=\s?[;|,\t])",
    ),
)


@cache
def _compiled() -> tuple[tuple[str, float, re.Pattern[str]], ...]:
    return tuple((form, weight, re.compile(body)) for form, weight, body in _FORMS)


@cache
def _labelled() -> re.Pattern[str]:
    """An error word, at most two label words, and a value."""
    lists = lexicon.load("codes")
    latin = lexicon.alternatives(
        word for word in lists["words"] if word.isascii() or word[0].isascii() or word[0] in "äöüß"
    )
    han = lexicon.alternatives(
        word for word in lists["words"] if not word.isascii() and ord(word[0]) > 0x2E80
    )
    suffixes = lexicon.alternatives(lists["suffixes"])
    labels = lexicon.alternatives(lists["labels"])
    gap = r"[\s\"'=:：#([{.,\-_/>;|]{0,4}?"
    between = r"(?:\w{1,8}[=:]\w{1,8}[:\s]{1,2})??"  # one attribute may stand between: "error QQ=f1: 701"
    return re.compile(
        rf"(?:(?<![a-zäöü])(?:{latin})|(?<=[a-zäöü])(?:{suffixes})|(?:{han}))s?(?:{gap}(?:{labels})\.?(?![a-z])){{0,2}}{gap}{between}"
        r"(?<![A-Za-z0-9_.])(?P<code>16#\s?[0-9A-F]{1,8}|-?\d{1,10}(?!\w*[.:]\d)|[A-Za-z]{0,8}[-_.:]?\d[\w\-.:]{0,24})(?![A-Za-z0-9_%°#号])",
        re.IGNORECASE,
    )


@cache
def _lettered() -> re.Pattern[str]:
    """A fault word in small letters, and a short code of capitals behind it: "Fehler OHF", "fault SCF"."""
    nouns = "[Ff]ault|[Tt]rip|[Aa]larm|[Ee]rror|[Cc]ode|[Ff]ehler|[Ss]törung|[Ww]arnung|[Mm]eldung|故障|报警"
    return re.compile(
        rf"(?:{nouns})(?:\s(?:code|no\.?|nr\.?))?[\s:]{{1,2}}(?P<code>[A-Z]{{2,4}}(?![A-Za-z0-9_\-/.]))"
    )


def recognise(line: Line, profile: Profile | None = None) -> Iterator[Candidate]:
    """Everything that is written as codes are, and whatever stands beside an error word."""
    for form, weight, expression in _compiled():
        for match in expression.finditer(line.text):
            yield from _found(line, *match.span(match.lastgroup or 0), form, weight)
    for match in _labelled().finditer(line.text):
        yield from _found(line, *match.span("code"), "labelled", 0.75)
    for match in _lettered().finditer(line.text):
        yield from _found(line, *match.span("code"), "lettered", 0.33)
    yield from _keyed(line)
    yield from _known(line, profile)


def _keyed(line: Line) -> Iterator[Candidate]:
    """Values of keys that say code or fault: any in quotes, else names of several parts (Bad_Timeout)."""
    for pair in line.pairs:
        raw = pair.value.of(line.text)
        if pair.last_word not in lexicon.words("codes", "words") or len(raw) > CODE_MAX:
            continue
        if pair.quoted:
            yield from _found(line, pair.value.start, pair.value.end, "labelled", 0.6)
        elif _SYMBOL.fullmatch(raw) and pair.last_word in lexicon.words("codes", "suffixes"):
            yield from _found(line, pair.value.start, pair.value.end, "labelled", 0.4)


def _found(line: Line, start: int, end: int, form: str, weight: float) -> Iterator[Candidate]:
    span = line.trim(start, end)
    if span is None or line.is_taken(span.start, span.end):
        return
    raw = span.of(line.text)
    if raw.lower() in lexicon.words("codes", "stop") or not any(char.isalnum() for char in raw):
        return
    bad = raw.lower() in lexicon.words("sentinels", "hex")
    yield Candidate(span, _TYPES, bad=bad, weight=weight, form=form)


def _known(line: Line, profile: Profile | None) -> Iterator[Candidate]:
    expression = known_pattern(profile, FieldType.CODE)
    if expression is not None:
        for match in expression.finditer(line.text):
            if not line.is_taken(*match.span()):
                yield Candidate(Span(*match.span()), _TYPES, weight=1.0, form="known")


def known_pattern(profile: Profile | None, kind: FieldType) -> re.Pattern[str] | None:
    """One expression for the known values of all fields of a type."""
    if profile is None:
        return None
    return _pattern_of(
        tuple(sorted({w for c in profile.fields.values() if c.type is kind for w in c.known_values}))
    )


@lru_cache(maxsize=64)
def _pattern_of(values: tuple[str, ...]) -> re.Pattern[str] | None:
    if not values:
        return None
    return re.compile(rf"(?<![A-Za-z0-9_])(?:{lexicon.alternatives(values)})(?![A-Za-z0-9_])")


def normalise(raw: str, config: FieldConfig, context: Context) -> Normalised:
    """The code as written. Against a known list it must be one of it, with its case."""
    if config.known is not None and raw not in config.known_values:
        return Normalised(raw, None, "unknown_code")
    return Normalised(raw)
