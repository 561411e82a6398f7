"""How well a candidate fits a field, by rules: log-odds from its form, its unit, its key and its
surroundings.

One function a field type. The numbers are natural log-odds (0 is even, +3 is 95 %); they follow the labelling
rules named beside them (R, T, D, E, Q: evidence, time, device, error code, quantity) and were set on lines of
our own systems.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from pipeline.fields import lexicon, quantity, timestamp, units
from pipeline.fields.definition import FieldConfig, Profile
from pipeline.fields.line import Line
from schemas.extraction import Candidate, FieldType

NEVER = -9.0


@dataclass(frozen=True)
class Scene:
    """A line with its candidates, as every rule sees it."""

    text: str
    line: Line
    candidates: Sequence[Candidate]

    def before(self, candidate: Candidate, length: int = 24) -> str:
        return self.text[max(0, candidate.span.start - length) : candidate.span.start]

    def after(self, candidate: Candidate, length: int = 16) -> str:
        return self.text[candidate.span.end : candidate.span.end + length]

    def label(self, candidate: Candidate) -> str:
        return self.line.label(candidate.span.start)


@dataclass(frozen=True, slots=True)
class Option:
    """A candidate for a field, with its log-odds by the rules."""

    candidate: Candidate
    score: float


def scene(text: str, candidates: Sequence[Candidate]) -> Scene:
    times = [c.span for c in candidates if FieldType.TIMESTAMP in c.types and not c.form.startswith("epoch")]
    return Scene(text, Line(text, times), candidates)


def weigh(seen: Scene, profile: Profile) -> dict[str, list[Option]]:
    """For each field, the candidates of its type with their scores, best first."""
    table: dict[str, list[Option]] = {}
    for name, config in profile.fields.items():
        options = [
            Option(candidate, _score(seen, candidate, name, config, profile))
            for candidate in seen.candidates
            if config.type in candidate.types
        ]
        table[name] = sorted(options, key=lambda option: (-option.score, option.candidate.span))
    return table


def _score(seen: Scene, candidate: Candidate, name: str, config: FieldConfig, profile: Profile) -> float:
    match config.type:
        case FieldType.TIMESTAMP:
            return _timestamp(seen, candidate)
        case FieldType.QUANTITY:
            return _quantity(seen, candidate, name, config, profile)
        case FieldType.NUMBER:
            return _number(seen, candidate, name, config)
        case FieldType.CODE:
            return _code(seen, candidate)
        case FieldType.ASSET:
            return _asset(seen, candidate)
        case FieldType.CHOICE:
            return _choice(seen, candidate, name, config)
        case FieldType.TEXT:
            return -2.0 + 4.0 * _named_by(seen.label(candidate), name, config)


# ---- words of the field beside the candidate


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    return frozenset(word for word in re.split(r"[\W_]+", lexicon.plain(text)) if len(word) > 1)


@lru_cache(maxsize=1024)
def _field_words(name: str, description: str) -> tuple[frozenset[str], frozenset[str]]:
    return _words(name), _words(description) - _words(name) - lexicon.words("assets", "stop")


def _named_by(label: str, name: str, config: FieldConfig) -> float:
    """0..1: how much of the field's name (or, half as much, its description) stands in the words beside a
    candidate.
    """
    beside = _words(label)
    named, described = _field_words(name, config.description)
    if not named:
        return 0.0
    share = len(named & beside) / len(named)
    return max(share, 0.5 if described & beside else 0.0)


# ---- timestamps


def _timestamp(seen: Scene, candidate: Candidate) -> float:
    """T1 to T4: the complete one before the partial, the readable before the epoch, then the first."""
    if timestamp.pick(seen.text, seen.candidates) == candidate:
        return 3.5
    return -2.5


# ---- quantities and numbers

_SLASH = re.compile(r"(?<![A-Za-z])/\s{0,2}$")
_COMPARED = re.compile(
    r"(?:[<>≥≤]=?|limit(?:\s(?:of|value))?|threshold|max\.?|min\.?|setpoint|sp|soll|range|than)[\s:=]{0,3}$",
    re.IGNORECASE,
)
_FROM = re.compile(r"(?:\bfrom|\bvon|从|由)\s{0,2}$", re.IGNORECASE)
_TO = re.compile(r"(?:\bto|->|→|\bauf|到|至)\s{0,2}$", re.IGNORECASE)
_RANGE_AFTER = re.compile(r"\s?(?:-|\.\.|–|to|bis|至|~)\s?\d")
_RANGE_BEFORE = re.compile(r"\d\s?(?:-|\.\.|–|bis|至|~)\s?$")
_ACTUAL = re.compile(
    r"(?<![a-z])(?:actual|act|ist|measured|present|pv|reading|operating value|current value|实测|当前)",
    re.IGNORECASE,
)
_ECHO = re.compile(r"^\W{0,3}(?:(?:send|sent|tx|>>)\W{0,3})?(?:N\d+\s)?[GM]\d{1,3}\s", re.IGNORECASE)


@lru_cache(maxsize=256)
def _dimension(name: str, config: FieldConfig) -> str | None:
    """What the field measures, by its name and description, else by its unit."""
    return (
        lexicon.dimension(name)
        or (units.dimension(config.unit) if config.unit else None)
        or lexicon.dimension(config.description)
    )


def _quantity(seen: Scene, candidate: Candidate, name: str, config: FieldConfig, profile: Profile) -> float:
    wanted = _dimension(name, config)
    if not quantity.fits(candidate, name, config) or candidate.form in ("raw_count", "sentinel_word"):
        return NEVER
    label = seen.label(candidate)
    score = _measures(candidate, wanted, label, name, config)
    score += _role(seen, candidate, label)
    rivals = [
        other
        for other, its in profile.fields.items()
        if its.type is FieldType.QUANTITY and _dimension(other, its) == wanted
    ]
    if len(rivals) > 1:  # an inlet and an outlet temperature: their names tell them apart
        score += 3.0 * _named_by(label, name, config) - 1.5
    return score


def _measures(candidate: Candidate, wanted: str | None, label: str, name: str, config: FieldConfig) -> float:
    """R0: the unit or a word beside the number shows what it is; a bare column shows nothing."""
    if wanted is None:
        return -3.0 + 5.0 * _named_by(label, name, config)
    by_unit, by_name = candidate.dimension == wanted, candidate.named == wanted
    if by_unit and by_name:
        return 3.5
    if by_unit:
        return 2.5 if candidate.named is None else 1.5
    if by_name:
        return 2.5 if candidate.unit is None else 1.0
    return 0.5 if candidate.named is None and _named_by(label, name, config) >= 1.0 else -4.0


def _role(seen: Scene, candidate: Candidate, label: str) -> float:
    """Q1, Q12, Q14: the measured value, not a setpoint, limit, echo or range."""
    before, after = seen.before(candidate), seen.after(candidate)
    score = 0.0
    if _SLASH.search(before) or _COMPARED.search(before):
        score -= 4.5
    elif quantity.is_setpoint(label) and not _ACTUAL.search(label):
        score -= 3.5
    if _FROM.search(before):
        score -= 2.5
    if (_RANGE_AFTER.match(after) and not _FROM.search(before)) or _RANGE_BEFORE.search(before):
        score -= 3.0
    if _ECHO.match(seen.text):
        score -= 5.0
    if _ACTUAL.search(label):
        score += 0.5
    earlier = [
        other
        for other in seen.candidates
        if other.span < candidate.span
        and other.dimension == candidate.dimension
        and other.named == candidate.named
    ]
    return score - (0.0 if _TO.search(before) else 0.4 * min(len(earlier), 4))


def _number(seen: Scene, candidate: Candidate, name: str, config: FieldConfig) -> float:
    if candidate.form in ("raw_count", "sentinel_word", "uptime", "duration"):
        return NEVER
    label = seen.label(candidate)
    return -3.0 + 5.5 * _named_by(label, name, config) + min(0.0, _role(seen, candidate, label))


# ---- codes

_ZERO = re.compile(r"(?:0[xX])?0+[hH]?|-+|0+(?::0+)+")
_FAULT_WORD = re.compile(
    r"(?:err(?:or|no)?|fault|alarm|alm|fail(?:ed|ure)?|exception|exit|trip|warn(?:ing)?|abort|code|rc|ret|reason|hresult|fehler|störung|"
    r"warnung|meldung|错误|故障|报警|告警|失败|异常|代码|码)[\w\-. ]{0,12}[\"']?[\s:=：#(\[\"'{]{0,4}$",
    re.IGNORECASE,
)
_ADDRESS_WORD = re.compile(
    r"(?:addr(?:ess)?|reg(?:ister)?s?|port|pid|tid|uid|line|row|version|ver|rev|count|cnt|total|offset|page|"
    r"grain|syndrome|channel|slot|socket|index|idx|id|seq|job|record|size|len|bytes|try|attempt|retry|地址|端口|次)"
    r"[\"']?[\s:=：#]{0,3}$",
    re.IGNORECASE,
)
_CODE_FORM = {
    "mnemonic": 3.0, "spn_fmi": 3.0, "class_number": 2.5, "status_name": 1.8, "errno_name": 1.8, "known": 6.0,
    "hex": -0.4, "hex_pair": -1.0, "constant": -0.4, "letters_digits": 0.0, "labelled": 0.2, "parenthesised": -0.2,
    "http_status": 1.0, "negative": -0.8, "leading": 0.3, "leading_caps": 0.2, "digits_dashed": -1.5,
}  # fmt: skip


def _code(seen: Scene, candidate: Candidate) -> float:
    raw = candidate.span.of(seen.text)
    if _ZERO.fullmatch(raw):
        return NEVER  # E5: "no fault"
    before = seen.before(candidate)
    score = _CODE_FORM.get(candidate.form, -1.0)
    if _ADDRESS_WORD.search(before):
        score -= 3.0  # E8
    elif _FAULT_WORD.search(before):
        score += 2.0
    if FieldType.ASSET in candidate.types:
        score -= 0.7
    earlier = [
        other for other in seen.candidates if FieldType.CODE in other.types and other.span < candidate.span
    ]
    return score - 0.3 * min(len(earlier), 3)


# ---- assets

_USER_WORD = re.compile(r"(?:user|operator|benutzer|bediener|by|用户|操作员)[\s:=]{1,2}$", re.IGNORECASE)
_ASSET_FORM = {
    "known": 6.0, "key": 1.2, "class_number": 1.4, "place": 2.0, "path": 1.6, "host": 0.2, "han": 0.9, "led": 0.2,
    "quoted": 0.0, "level": 0.2, "tag": -0.3, "part": -1.0, "ip": -0.2, "mac": 0.6, "last": -0.2,
}  # fmt: skip


def _asset(seen: Scene, candidate: Candidate) -> float:
    score = _ASSET_FORM.get(candidate.form, -0.5) + 2.0 * (candidate.weight - 0.5)
    before, after = seen.before(candidate), seen.after(candidate)
    if _USER_WORD.search(before):
        score -= 3.0  # D7
    if after[:1] == "[" and re.match(r"\[\d+\]", after):
        score -= 3.0  # a process and its id
    if FieldType.CODE in candidate.types and candidate.form != "key":
        score -= 1.0
    return score - 0.001 * candidate.span.start


# ---- choices


def _choice(seen: Scene, candidate: Candidate, name: str, config: FieldConfig) -> float:
    raw = candidate.span.of(seen.text).casefold()
    if raw not in {word.casefold() for word in config.choices or ()}:
        return NEVER
    return 0.5 + 3.0 * _named_by(seen.label(candidate), name, config)
