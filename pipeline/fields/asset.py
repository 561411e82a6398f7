"""Assets: the named equipment a line is about. Names are found by their key, their class word, their place, their shape."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from pipeline.fields import code, lexicon
from pipeline.fields.definition import FieldConfig, Profile, fold
from pipeline.fields.line import Line, Pair
from pipeline.fields.values import Context, Normalised
from schemas.extraction import Candidate, FieldType, Span

NAME_MAX = 60  # a longer name is prose
HAN = "㐀-鿿"
WORD = rf"A-Za-z0-9_À-ɏ{HAN}"

_TYPES = frozenset({FieldType.ASSET})
_QUANTITY = re.compile(r"[-+]?\d+(?:[.,]\d+)?[A-Za-z°%µ²³/]{0,5}")
_VERSION = re.compile(r"[vV]?\d+(?:\.\d+)+[a-z]?")
_IP = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])")
_MAC = re.compile(r"(?<![0-9A-Za-z:])(?:[0-9A-Fa-f]{2}[:\-]){5,7}[0-9A-Fa-f]{2}(?![0-9A-Za-z:])")
_DEV_PATH = re.compile(r"/dev/[\w/\-.]{1,60}")
_FILE = re.compile(
    r".*\.(?:py|c|h|cc|cpp|pm|js|ts|go|rs|java|rrd|exs?|exe|dll|so|log|cfg|conf|ini|xml|json|yaml|yml|txt|csv|sh|rb|lua|nc|mpf|dat|db|bin|zip)",
    re.IGNORECASE,
)
_MODULE = re.compile(r"[a-z_]+(?:\.[a-zA-Z_]+){2,}")
_HOST = re.compile(
    rf"(?P<host>[A-Za-z0-9][{WORD}.\-]{{0,40}})(?=\s[\w.\-/()@]{{1,40}}(?:\[\d{{1,10}}\])?:|:?\s%|\s[|])"
)
_PLACE = re.compile(
    rf"[A-Za-z{HAN}]{{1,10}}[:：#]\s?\d{{1,5}}(?:[\s,/]{{1,2}}[A-Za-z{HAN}]{{1,10}}[:：#]\s?\d{{1,5}}){{1,4}}"
)
_LAST = re.compile(r"\s[:\-]\s(?P<name>[A-Z][\w\-]{1,24})\.?$")
_ADDRESS = re.compile(r"\((?P<name>[A-Za-z][\w\-.]{1,30})\)\s{0,3}$")


def recognise(line: Line, profile: Profile | None = None) -> Iterator[Candidate]:
    """Every name of equipment, most of them several ways; `merge` keeps the strongest reading of each span."""
    for start, end, form, weight in _all(line):
        candidate = _candidate(line, start, end, form, weight)
        if candidate is not None:
            yield candidate
    expression = code.known_pattern(profile, FieldType.ASSET)
    if expression is not None:
        for match in expression.finditer(line.text):
            if not line.is_taken(*match.span()):
                yield Candidate(Span(*match.span()), _TYPES, weight=1.0, form="known")


_Found = Iterator[tuple[int, int, str, float]]


def _all(line: Line) -> _Found:
    yield from _keyed(line)
    yield from _numbered(line)
    yield from _led(line)
    yield from _hosts(line)
    yield from _quoted(line)
    yield from _chinese(line)
    yield from _shaped(line)
    for expression, form, weight in (
        (_IP, "ip", 0.5),
        (_MAC, "mac", 0.6),
        (_DEV_PATH, "path", 0.8),
        (_PLACE, "place", 0.85),
    ):
        for match in expression.finditer(line.text):
            yield (*match.span(), form, weight)
    for expression, form, weight in ((_LAST, "last", 0.45), (_ADDRESS, "last", 0.45)):
        found = expression.search(line.text, max(0, len(line.text) - 64))
        if found is not None:
            yield (*found.span("name"), form, weight)


def _candidate(line: Line, start: int, end: int, form: str, weight: float) -> Candidate | None:
    span = line.trim(start, end)
    if span is None or span.end - span.start > NAME_MAX or line.is_taken(span.start, span.end):
        return None
    raw = span.of(line.text)
    if raw.lower() in lexicon.words("assets", "stop") or not any(char.isalnum() for char in raw):
        return None
    if form != "key" and (raw.isdigit() and len(raw) < 3):
        return None
    return Candidate(span, _TYPES, weight=weight, form=form)


def _keyed(line: Line) -> _Found:
    """`key=value` by its key: device words count fully, others a little, as names like their own keys."""
    for pair in line.pairs:
        weight = _key_weight(pair)
        raw = pair.value.of(line.text)
        if weight == 0 or raw in ("{", "["):
            continue
        if _QUANTITY.fullmatch(raw) and (weight < 0.5 or len(raw) > 12):
            continue
        yield pair.value.start, pair.value.end, "key", weight * (0.6 if raw.isdigit() else 1.0)
        if pair.phrase != pair.value and not pair.quoted and weight > 0.5:
            yield pair.phrase.start, pair.phrase.end, "key", weight * 0.8


def _key_weight(pair: Pair) -> float:
    last = pair.last_word
    if last in lexicon.words("assets", "not_keys"):
        return 0.0
    words = set(re.split(r"[\s.\-]+", lexicon.plain(pair.key)))
    if last in lexicon.words("assets", "keys") or lexicon.plain(pair.key) in lexicon.words("assets", "keys"):
        return 0.8
    if words & lexicon.words("assets", "keys") or pair.key.lower().endswith(
        ("name", "id", "id_", "号", "名称")
    ):
        return 0.6
    return 0.0


@cache
def _numbered_pattern() -> re.Pattern[str]:
    lists = lexicon.load("assets")
    nouns, before = lexicon.alternatives(lists["nouns"]), lexicon.alternatives(lists["qualifiers"])
    return re.compile(
        rf"(?<![A-Za-zÀ-ɏ])(?P<all>(?:(?:{before})[\s\-]){{0,2}}(?:{nouns})s?(?:\s(?:{nouns}))?"
        rf"(?:\s?(?:no|nr|id|num|number)\.?)?[\s_:\-]?\s?#?(?P<n>(?:0x[0-9A-Fa-f]{{1,8}}|[A-Z]?\d{{1,6}}[A-Z]?(?:[-./]\d{{1,4}}){{0,3}}|[A-Z](?![A-Za-z']))))(?![{WORD}%°]|[.,:]\d)",
        re.IGNORECASE,
    )


def _numbered(line: Line) -> _Found:
    """A class word and a number: Fan 2, slave 12, Pumpe 3, CPU2."""
    for match in _numbered_pattern().finditer(line.text):
        yield (*match.span("all"), "class_number", 0.8)
        if len(match.group("n")) >= 3:
            yield (*match.span("n"), "class_number", 0.4)


@cache
def _led_pattern() -> re.Pattern[str]:
    lists = lexicon.load("assets")
    leads = lexicon.alternatives([*lists["leads"], *(noun for noun in lists["nouns"] if len(noun) > 2)])
    return re.compile(
        rf"(?<![A-Za-zÀ-ɏ\-])(?:{leads})[\s:]{{1,2}}(?:(?:is|the|a|an|der|die|das|dem|den)\s)?[\[\"'(<]?(?P<name>/?[{WORD}][{WORD}\-.@/:#]{{1,44}})",
        re.IGNORECASE,
    )


def _led(line: Line) -> _Found:
    """What follows a class word or a preposition: UPS rack2-eco, from cnc-gw-2, connect to press_line_2."""
    for match in _led_pattern().finditer(line.text):
        raw = match.group("name")
        if _QUANTITY.fullmatch(raw) or _VERSION.fullmatch(raw.rstrip(".:")):
            continue
        named = any(char.isdigit() or char in "_-@/" or ord(char) > 0x2E80 for char in raw)
        start, end = match.span("name")
        yield start, end, "led", 0.6 if named else 0.35
        if ":" in raw:
            yield start, start + raw.index(":"), "led", 0.5


def _hosts(line: Line) -> _Found:
    """The word after the leading time, where syslog has its host and consoles their device."""
    at = 0
    for span in line.taken:
        if span.start - at > 14:
            break
        at = span.end
        start = at + len(line.text[at : at + 6]) - len(line.text[at : at + 6].lstrip(" \t|,;:)]-"))
        match = _HOST.match(line.text, start)
        if match is not None:
            yield (*match.span("host"), "host", 0.65)
        word = re.compile(rf"[{WORD}][{WORD}.\-/#:@]{{1,40}}(?=[\s,;|])").match(line.text, start)
        if word is not None and not _QUANTITY.fullmatch(word.group()):
            yield (*word.span(), "host", 0.45)
    if at == 0:
        match = re.compile(rf"\W{{0,4}}([A-Za-z_][{WORD}.\-]{{2,30}})(?=[\s:;,|])").match(line.text)
        if match is not None and re.search(r"[\d_\-]", match.group(1)):
            yield (*match.span(1), "host", 0.35)


def _quoted(line: Line) -> _Found:
    for span in line.quoted:
        raw = span.of(line.text)
        if line.is_object_key(span) or _QUANTITY.fullmatch(raw) or re.search(r"[{}=<>]", raw):
            continue
        if "/" in raw:
            yield from _levels(line, span, 0.6)
        elif len(raw) > 1:
            yield span.start, span.end, "quoted", 0.5


def _levels(line: Line, span: Span, weight: float) -> _Found:
    """The levels of a topic or path, the later ones first in weight."""
    at = span.start
    for level in span.of(line.text).split("/"):
        if (
            len(level) > 1
            and not _QUANTITY.fullmatch(level)
            and level.lower() not in ("config", "set", "get", "state", "status")
        ):
            yield at, at + len(level), "level", weight
        at += len(level) + 1


@cache
def _chinese_patterns() -> tuple[re.Pattern[str], ...]:
    lists = lexicon.load("assets")
    ends, nouns = lexicon.alternatives(lists["zh_endings"]), lexicon.alternatives(lists["zh_nouns"])
    return (
        re.compile(
            rf"(?:\d{{1,4}}(?:kV|千伏)\s?)?(?:[A-Z0-9]{{1,6}}(?:段|号|#)?[{HAN}]{{0,8}}?(?:{ends}))(?![{HAN}]{{0,2}}号)"
        ),
        re.compile(
            rf"(?:[A-Z]?\d{{1,4}}(?:号|#|-\d{{1,3}})|[一二三四五六七八九十]{{1,3}}(?:号|车间|区|线))[{HAN}A-Z0-9#]{{0,12}}?(?:{ends})(?!号)"
        ),
        re.compile(rf"(?:{nouns})[\s#]?\d{{1,4}}(?:号|#)?(?![\d.])"),
        re.compile(rf"[{HAN}A-Za-z0-9\-#]{{0,12}}[{HAN}](?:{ends})(?![{HAN}])"),
        re.compile(rf"(?<![{HAN}])[{HAN}]{{1,6}}\d{{1,4}}(?:号|#)"),
    )


def _chinese(line: Line) -> _Found:
    """Chinese equipment: number and noun, noun and number, or a word that ends as equipment does."""
    if not any("㐀" <= char <= "鿿" for char in line.text):
        return
    for index, expression in enumerate(_chinese_patterns()):
        for match in expression.finditer(line.text):
            yield (*match.span(), "han", 0.7 if index < 3 else 0.55)
            if match.group()[0].isdigit() and " " in match.group():
                yield match.start() + match.group().index(" ") + 1, match.end(), "han", 0.4


def _shaped(line: Line) -> _Found:
    """Tokens that look like tags: letters with digits, underscores or inner hyphens; and the parts of compound ones."""
    text = line.text
    for span in line.tokens:
        raw = span.of(text)
        if (
            _is_no_tag(raw)
            or text[span.end : span.end + 1] == "="
            or re.match(r"[\"']?\s?:\s", text[span.end : span.end + 4])
        ):
            continue
        digits = any(char.isdigit() for char in raw)
        marked = any(char in raw for char in "_-@#:/") and not raw.startswith("-")
        if not (digits or marked) or not any(char.isalpha() for char in raw):
            continue
        module = _FILE.fullmatch(raw) or _MODULE.fullmatch(raw) or text[span.end : span.end + 1] == "["
        yield span.start, span.end, "tag", 0.2 if module else 0.5 if digits else 0.35
        yield from _parts(raw, span.start)


def _is_no_tag(raw: str) -> bool:
    return (
        len(raw) < 2
        or "://" in raw
        or _QUANTITY.fullmatch(raw) is not None
        or _VERSION.fullmatch(raw) is not None
        or raw.lower() in lexicon.words("assets", "stop")
    )


def _parts(raw: str, start: int) -> _Found:
    """host:port, src@host, plant/cnc2/temp: the pieces too."""
    if not any(char in raw for char in ":@/"):
        return
    at = start
    for part in re.split(r"([:@/])", raw):
        if len(part) > 1 and any(char.isalpha() for char in part) and not _FILE.fullmatch(part):
            yield at, at + len(part), "part", 0.35 if re.search(r"[\d_\-]", part) else 0.25
        at += len(part)


def normalise(raw: str, config: FieldConfig, context: Context) -> Normalised:
    """The name as written; against a known list, the listed spelling of it (case and blanks do not count)."""
    if config.known is None:
        return Normalised(" ".join(raw.split()))
    listed = config.known_folded.get(fold(raw))
    return Normalised(listed) if listed is not None else Normalised(raw, None, "unknown_asset")
