"""Assets: the named equipment a line is about, found by key, class word, place in the line, or shape."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pipeline.fields import code, lexicon
from pipeline.fields.asset_patterns import (
    HAN,
    QUANTITY,
    VERSION,
    WORD,
    Found,
    called,
    cells,
    chinese,
    led,
    numbered,
    subject,
)
from pipeline.fields.definition import FieldConfig, Profile, fold
from pipeline.fields.line import Line, Pair
from pipeline.fields.values import Context, Normalised
from schemas.extraction import Candidate, FieldType, Span

NAME_MAX = 60  # a longer name is prose
LEADING = 14  # characters before a time that still leads the line: "<187>", "- 1131567773 "
_TYPES = frozenset({FieldType.ASSET})
_IP = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?!\d|\.\d)")
_MAC = re.compile(r"(?<![0-9A-Za-z:])(?:[0-9A-Fa-f]{2}[:\-]){5,7}[0-9A-Fa-f]{2}(?![0-9A-Za-z:])")
_BUS_ADDRESS = re.compile(r"(?<=[\]:)]\s)\d{1,2}[./]\d{1,2}[./]\d{1,3}(?=\s[A-Za-z])")  # as KNX writes it
_DEV_PATH = re.compile(r"/dev/[\w/\-.]{1,60}")
_FILE = re.compile(
    r".*\.(?:py|c|h|cc|cpp|pm|js|ts|go|rs|java|rrd|exs?|exe|dll|so|log|cfg|conf|ini|xml|json|yaml|yml|txt|csv|sh|rb|lua|nc|mpf|dat|db|bin|zip)",
    re.IGNORECASE,
)
_MODULE = re.compile(r"[a-z_]+(?:\.[a-zA-Z_]+){2,}")
_HOST = re.compile(
    rf"(?P<host>[A-Za-z0-9][{WORD}.\-]{{0,40}})(?=\s[\w.\-/()@]{{1,40}}(?:\[\d{{1,10}}\])?:|:?\s%|\s[|])"
)
_GAP = re.compile(r"[ \t|,;:)\]\-]{0,6}")
_WORD = re.compile(rf"[{WORD}][{WORD}.\-/#:@]{{1,40}}(?=[\s,;|])")
_FIRST = re.compile(
    rf"\W{{0,4}}(?P<name>(?=[{WORD}.\-]{{0,30}}[\d_\-])[A-Za-z_][{WORD}.\-]{{2,30}})(?=[\s:;,|])"
)
_PLACE = re.compile(
    rf"[A-Za-z{HAN}]{{1,10}}[:：#]\s?\d{{1,5}}(?:[\s,/]{{1,2}}[A-Za-z{HAN}]{{1,10}}[:：#]\s?\d{{1,5}}){{1,4}}(?![\w:])"
)
_PLACES = re.compile(r"[:@/\\]")
_SPLITTERS = (re.compile(r"([:@/\\])"), re.compile(r"(_(?=[A-Z])|\.(?=[A-Za-z])|[:@/\\])"))
_NAMEMARK = re.compile(r"[\d_\-]")
_KEY_END = re.compile(r"[\"']\s?[:=]")
_ANNOUNCED = re.compile(r"(?:^|[\s\])|])(?P<name>[A-Za-z_][\w\-]{2,20})(?=: )")
_LAST = re.compile(r"\s[:\-]\s(?P<name>[A-Z][\w\-]{1,24})\.?$")
_ADDRESS = re.compile(r"\((?P<name>[A-Za-z][\w\-.]{1,30})\)\s{0,3}$")


def recognise(line: Line, profile: Profile | None = None) -> Iterator[Candidate]:
    """Every name of equipment, most of them several ways; `merge` keeps the strongest reading of a span."""
    for start, end, form, weight in _all(line):
        candidate = _candidate(line, start, end, form, weight)
        if candidate is not None:
            yield candidate
    expression = code.known_pattern(profile, FieldType.ASSET)
    if expression is not None:
        for match in expression.finditer(line.text):
            if not line.is_taken(*match.span()):
                yield Candidate(Span(*match.span()), _TYPES, weight=1.0, form="known")


def addresses(text: str) -> list[Span]:
    """The hardware addresses of a line, in its order."""
    return [Span(*match.span()) for match in _MAC.finditer(text)]


def _all(line: Line) -> Found:
    yield from _keyed(line)
    yield from _objects(line)
    yield from numbered(line)
    yield from led(line)
    yield from called(line)
    yield from _hosts(line)
    yield from _quoted(line)
    yield from chinese(line)
    yield from subject(line)
    yield from _shaped(line)
    yield from _announced(line)
    yield from cells(line)
    for expression, form, weight in (
        (_IP, "ip", 0.5),
        (_MAC, "mac", 0.6),
        (_DEV_PATH, "path", 0.8),
        (_BUS_ADDRESS, "ip", 0.3),
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


def _keyed(line: Line) -> Found:
    """`key=value` by its key: device words count fully, others a little, as names like their own keys."""
    for pair in line.pairs:
        weight = _key_weight(pair)
        raw = pair.value.of(line.text)
        if weight == 0 or raw in ("{", "["):
            continue
        if QUANTITY.fullmatch(raw) and (weight < 0.5 or len(raw) > 12):
            continue
        yield pair.value.start, pair.value.end, "key", weight * (0.6 if raw.isdigit() else 1.0)
        if pair.phrase != pair.value and not pair.quoted and weight > 0.5:
            yield pair.phrase.start, pair.phrase.end, "key", weight * 0.8


def _objects(line: Line) -> Found:
    """Keys of objects that are names: {"DS18B20": {"Temperature": 21.5}}."""
    for pair in line.pairs:
        if pair.value.of(line.text) == "{" and any(char.isdigit() for char in pair.key):
            yield pair.key_span.start, pair.key_span.end, "object_key", 0.4


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


def _hosts(line: Line) -> Found:
    """The word after the leading times, where syslog has its host and consoles their device."""
    at = 0
    for span in line.taken:
        if span.start - at > LEADING:
            break
        at = span.end
        gap = _GAP.match(line.text, at)
        start = gap.end() if gap else at
        match = _HOST.match(line.text, start)
        if match is not None:
            yield (*match.span("host"), "host", 0.65)
        word = _WORD.match(line.text, start)
        if word is not None and not QUANTITY.fullmatch(word.group()):
            yield (*word.span(), "host", 0.45)
    match = _FIRST.match(line.text) if at == 0 else None
    if match is not None:
        yield (*match.span("name"), "host", 0.35)


def _quoted(line: Line) -> Found:
    for span in line.quoted:
        raw = span.of(line.text)
        if line.is_object_key(span) or QUANTITY.fullmatch(raw) or re.search(r"[{}=<>]", raw):
            continue
        if "/" in raw:
            yield from _levels(line, span, 0.6)
        elif len(raw) > 1:
            yield span.start, span.end, "quoted", 0.5


def _levels(line: Line, span: Span, weight: float) -> Found:
    """The levels of a topic or path, the later ones first in weight."""
    at = span.start
    for level in span.of(line.text).split("/"):
        named = len(level) >= 3 if level.isdigit() else len(level) > 1 and not QUANTITY.fullmatch(level)
        if named and level.lower() not in ("config", "set", "get", "state", "status"):
            yield at, at + len(level), "level", weight
        at += len(level) + 1


def _shaped(line: Line) -> Found:
    """Tokens that look like tags (letters with digits, underscores, inner hyphens), and the parts of them."""
    text = line.text
    for span in line.tokens:
        raw, after = span.of(text), text[span.end : span.end + 2]
        if _is_no_tag(raw) or after[:1] == "=" or (after[:1] in "\"'" and _KEY_END.match(text, span.end)):
            continue
        digits = any(char.isdigit() for char in raw)
        marked = raw[0] != "-" and any(char in raw for char in "_-@#:/\\")
        if not (digits or marked) or not any(char.isalpha() for char in raw):
            continue
        weak = after[:1] == "[" or _FILE.fullmatch(raw) or _MODULE.fullmatch(raw)
        yield span.start, span.end, "tag", 0.2 if weak else 0.5 if digits else 0.35
        yield from _parts(raw, span.start)


def _announced(line: Line) -> Found:
    """The bare word before a colon that opens the message: "sda: asking for cache data failed"."""
    for count, match in enumerate(_ANNOUNCED.finditer(line.text)):
        if count == 2:  # further on it is prose
            return
        if lexicon.dimension(match.group("name")) is None:
            yield (*match.span("name"), "last", 0.22)


def _is_no_tag(raw: str) -> bool:
    return (
        not 2 <= len(raw) <= NAME_MAX
        or "://" in raw
        or QUANTITY.fullmatch(raw) is not None
        or VERSION.fullmatch(raw) is not None
        or raw.lower() in lexicon.words("assets", "stop")
    )


def _parts(raw: str, start: int) -> Found:
    """The pieces of host:port, src@host, plant/cnc2/temp, RC3_MIN, Line4.Drive2.Speed."""
    for splitter in _SPLITTERS:
        at = start
        for part in splitter.split(raw):
            weight = _part_weight(part, raw)
            if weight:
                yield at, at + len(part), "part", weight
            at += len(part)


def _part_weight(part: str, raw: str) -> float:
    """0 for what names nothing: the whole, letters, plain words between dots or underscores, files."""
    lettered = any(char.isalpha() for char in part) or (part.isdigit() and len(part) >= 3 and "/" in raw)
    if not (1 < len(part) < len(raw)) or not lettered or _FILE.fullmatch(part):
        return 0.0
    if _NAMEMARK.search(part):
        return 0.35
    return 0.25 if _PLACES.search(raw) else 0.0


def normalise(raw: str, config: FieldConfig, context: Context) -> Normalised:
    """The name as written; against a known list, the listed spelling of it (case and blanks do not count)."""
    if config.known is None:
        return Normalised(" ".join(raw.split()))
    listed = config.known_folded.get(fold(raw))
    return Normalised(listed) if listed is not None else Normalised(raw, None, "unknown_asset")
