"""How well a candidate fits a field, by rules: log-odds from its form, its unit, its key and its
surroundings.

One function a field type. The numbers are natural log-odds (0 is even, +3 is 95 %); they follow the labelling
rules named beside them (R, T, D, E, Q: evidence, time, device, error code, quantity) and were set on lines of
our own systems.
"""

from __future__ import annotations

import re
from functools import lru_cache

from pipeline.fields import lexicon, quantity, timestamp, units
from pipeline.fields.definition import FieldConfig, Profile
from pipeline.model import assets, codes
from pipeline.model.scene import NEVER, Option, Scene
from schemas.extraction import Candidate, FieldType


def weigh(seen: Scene, profile: Profile) -> dict[str, list[Option]]:
    """For each field, the candidates of its type with their scores, best first."""
    table: dict[str, list[Option]] = {}
    for name, config in profile.fields.items():
        options = [
            Option(candidate, _score(seen, candidate, name, config, profile))
            for candidate in seen.candidates
            if config.type in candidate.types
        ]
        if config.type is FieldType.ASSET:
            options = assets.host_last(options)
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
            return codes.code(seen, candidate)
        case FieldType.ASSET:
            return assets.asset(seen, candidate)
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
_CHANGED = re.compile(r"changed\s{1,2}$", re.IGNORECASE)
# WindingOvertemperatureTrip=1 is a contact, no temperature.
_STATE_NAME = re.compile(
    r"trip|fail|fault|alarm|status|state|switch|control|error|warning|enable|故障|报警", re.IGNORECASE
)
_BAND = re.compile(r"\b(?:low|high|lo|hi)\s?[:=]\s{0,2}$", re.IGNORECASE)
_TO = re.compile(r"(?:\bto|->|→|\bauf|到|至)\s{0,2}$", re.IGNORECASE)
_RANGE_AFTER = re.compile(r"\s?(?:-|\.\.|–|to|bis|至|~)\s?\d")
_RANGE_BEFORE = re.compile(r"\d\s?(?:-|\.\.|–|bis|至|~)\s?$")
_ACTUAL = re.compile(
    r"(?<![a-z])(?:actual|act|ist|measured|present|pv|reading|operating value|current value|实测|当前)",
    re.IGNORECASE,
)


def dimension(name: str, config: FieldConfig) -> str | None:
    """What the field measures, by its name and description, else by its unit."""
    return _dimension(name, config.unit, config.description)


@lru_cache(maxsize=256)
def _dimension(name: str, unit: str | None, description: str) -> str | None:
    return (
        lexicon.dimension(name) or (units.dimension(unit) if unit else None) or lexicon.dimension(description)
    )


def _quantity(seen: Scene, candidate: Candidate, name: str, config: FieldConfig, profile: Profile) -> float:
    wanted = dimension(name, config)
    if not quantity.fits(candidate, name, config) or candidate.form in ("raw_count", "sentinel_word"):
        return NEVER
    label = seen.label(candidate)
    if candidate.unit is None and _is_part_of_name(seen, candidate, label):
        return NEVER
    if candidate.unit is not None and _is_inside_name(seen, candidate, ("han",)):
        return -2.0  # Q1: 110kV in a feeder's name is its rating
    score = _measures(candidate, wanted, label, name, config)
    score += _role(seen, candidate, label)
    rivals = [
        other
        for other, its in profile.fields.items()
        if its.type is FieldType.QUANTITY and dimension(other, its) == wanted
    ]
    if len(rivals) > 1:  # an inlet and an outlet temperature: their names tell them apart
        score += 3.0 * _named_by(label, name, config) - 1.5
    return score


_LETTER_KEY = re.compile(r"(?<![^\W\d_])[A-Za-z]\d{0,2}[\"']?\s?[=:：]\s{0,2}[\"']?[-+]?$")
_LONE_LETTER = re.compile(r"(?<![^\W\d_])[A-Za-z](?:(?![^\W\d_])|(?<=[A-Z])(?=[A-Z][a-z]))")
_NAME_BEFORE = re.compile(r"[^\W\d_][-_#]?$|\w[-#]$|(?<![A-Za-z])\d[.:/]$")
_KEY_AFTER = re.compile(r"[\"']?\s?[:=](?!\S*/)")


_LOGGER_TAG = re.compile(r"\[[\w.]{1,40}:$")


def _is_part_of_name(seen: Scene, candidate: Candidate, label: str) -> bool:
    """`boiler-1`, `Zone 3`, `[sensor:76]`: digits of a name, a key or a logger's tag.

    A single letter names a quantity only as a key (`T: 71`, `I=3`).
    """
    before, keyed = seen.before(candidate), candidate.span.start in seen.line.pair_at
    if not keyed and _NAME_BEFORE.search(before[-12:]):
        return True
    if _LOGGER_TAG.search(before) or _KEY_AFTER.match(seen.after(candidate)):
        return True
    if not keyed and _is_inside_name(seen, candidate):
        return True
    lettered = lexicon.dimension(_LONE_LETTER.sub(" ", label)) is None
    return candidate.named is not None and lettered and not keyed and _LETTER_KEY.search(before) is None


_NAMED = ("class_number", "named_number", "han", "place", "tag", "known")


def _is_inside_name(seen: Scene, candidate: Candidate, forms: tuple[str, ...] = _NAMED) -> bool:
    return any(
        FieldType.ASSET in other.types
        and other.form in forms
        and other.span != candidate.span
        and other.span.start <= candidate.span.start
        and candidate.span.end <= other.span.end
        for other in seen.candidates
    )


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
    if _FROM.search(before) or _CHANGED.search(before):
        score -= 2.5
    if _STATE_NAME.search(label) and candidate.unit is None and candidate.span.of(seen.text) in ("0", "1"):
        score -= 5.0
    if _BAND.search(before):
        score -= 3.0
    if (_RANGE_AFTER.match(after) and not _FROM.search(before)) or _RANGE_BEFORE.search(before):
        score -= 3.0
    if seen.is_echo:
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


# ---- choices


def _choice(seen: Scene, candidate: Candidate, name: str, config: FieldConfig) -> float:
    raw = candidate.span.of(seen.text).casefold()
    if raw not in {word.casefold() for word in config.choices or ()}:
        return NEVER
    return 0.5 + 3.0 * _named_by(seen.label(candidate), name, config)
