"""How well a candidate fits a code field, by rules E1 to E8 (see weigh.py for the scale).

Codes and assets are told apart by shape, since both are letters with digits: F30002 is a code, TIC-1042 a
tag.
"""

from __future__ import annotations

import errno
import re
from functools import cache, lru_cache

from pipeline.fields import lexicon
from pipeline.model.scene import NEVER, Scene
from schemas.extraction import Candidate, FieldType

_ZERO = re.compile(r"(?:[A-Za-z]+[:=])?(?:(?:0[xX])?0+[hH]?|-+|0+(?::0+)+)")
FAULT_WORD = re.compile(
    r"(?:err(?:or|no)?(?:_?id|_?code|_?no)?|fault|alarm|alm|fail(?:ed|ure)?|exception|exit(?:ed)?|trip|abort|"
    r"warn(?:ing)?|code|rc|ret|reason|hresult|timed out|refused|fehler|störung|warnung|meldung|"
    r"错误|故障|报警|告警|失败|异常|代码|码)"
    r"[\"']?[\s:=：#(\[\"'{,]{0,4}(?:\w{1,12}[=:(]\s?|(?:code|no|nr|number|id|代码|码)\.?[\s:=：]{0,3})?$",
    re.IGNORECASE,
)
_ADDRESS_WORD = re.compile(
    r"(?:addr(?:ess)?|reg(?:ister)?s?|port|pid|tid|uid|line|row|version|ver|rev|count|cnt|total|offset|page|"
    r"grain|syndrome|channel|slot|socket|index|idx|(?<![a-z])id|seq|job|record|size|len|bytes|try|attempt|retry|"
    r"qid|state|地址|端口|次)[\"']?[\s:=：#]{0,3}$",
    re.IGNORECASE,
)
_CODE_FORM = {
    "known": 6.0, "mnemonic": 3.0, "spn_fmi": 3.0, "class_number": 2.5, "status_name": 1.8,
    "errno_name": 1.8, "http_status": 1.0, "leading": 0.3, "leading_caps": 0.2, "labelled": 0.0, "hex": -0.1,
    "parenthesised": -0.2, "dotted": -0.4, "event_number": -0.6, "column": -0.6, "constant": -0.6,
    "letters_digits": -0.6, "negative": -0.8, "mixed": -1.6, "lettered": -2.6,
    "hex_pair": -1.0, "field_word": -1.0, "digits_dashed": -1.5, "short_tag": -1.6,
}  # fmt: skip
# E1023, F30002, A07910, KSS00276: a code's letters with three digits or more; a tag has a hyphen or fewer
# digits.
CODE_SHAPE = re.compile(
    r"[A-Z]{1,4}\d{3,6}|[A-Z]{2,4}-\d{5,6}|(?:ALM|ERR|AL|FLT)[-.]\d{1,5}(?:\.\d{1,3})?|[A-Z]{3,8}\d{3,5}[A-Z]"
    r"|[EFAW]-?\d{2,5}|[A-Z]\d{2,4}[A-Z]\d{1,3}|[A-Z]{3,5}-\d{3}"
)
TAG_SHAPE = re.compile(
    r"[A-Z]{2,6}-[A-Z]|[A-Z]{1,5}\d{0,2}-\d{1,5}[A-Z]?|[A-Z]{2,6}\d{1,2}|[A-Za-z]+[-_]?\d{1,2}[A-Z]?"
)


_CLASS_AND_NUMBER = re.compile(r"[^\W\d_]{3,}[:#]\d{1,3}")
_FAULT_CLASS = re.compile(r"(?:alarm|error|err|fault|warning|warn|trip|fehler|event):", re.IGNORECASE)
# A code has a digit, but for constants and mnemonics: what else stands behind "error" is prose.
_WORDY_FORMS = frozenset(
    ["known", "mnemonic", "lettered", "constant", "errno_name", "status_name", "leading_caps"]
)
# A constant that says what went wrong: AUTHENTICATION_FAILED; others name parts of a program.
_TELLING = re.compile(
    r"FAIL|ERR|FAULT|TIMEOUT|INVALID|DENIED|REFUSED|LOST|REJECT|ABRT|ABORT|UNREACH|ILLEGAL|MISMATCH"
)
_STATE_WORD = re.compile(
    r"(?:status|state|result|event|message|reason|quality)(?:_?code|id)?[\"']?[\s:=]{1,3}[\"']?$",
    re.IGNORECASE,
)


def code(seen: Scene, candidate: Candidate) -> float:
    """E1 to E8: the token beside a fault word, a mnemonic, a code's shape; never zero, address or count."""
    raw = candidate.span.of(seen.text)
    if _is_no_code(raw, candidate.form):
        return NEVER
    form = candidate.form
    if form == "class_number" and not _FAULT_CLASS.match(raw):
        form = "letters_digits"  # the asset's word for "Fan 2"; a code's class and number join: ALARM:1
    score = (
        _CODE_FORM.get(form, -1.0) + _code_shape(seen, candidate, raw, form) + _code_place(seen, candidate)
    )
    if seen.is_echo:
        score -= 4.0  # G-code: commands, not faults
    earlier = [
        other
        for other in seen.candidates
        if FieldType.CODE in other.types and other.span < candidate.span and other.weight >= 0.35
    ]
    return score - 0.3 * min(len(earlier), 3)


def _is_no_code(raw: str, form: str) -> bool:
    lower = raw.lower()
    return (
        _ZERO.fullmatch(raw) is not None
        or lower in level_words()
        or (form not in _WORDY_FORMS and not any(char.isdigit() for char in raw))
        or (form == "errno_name" and raw not in _errno_names())
        or form == "place"
        or (is_key_value(raw) and not _FAULT_CLASS.match(raw))
        or (_CLASS_AND_NUMBER.fullmatch(raw) is not None and not _FAULT_CLASS.match(raw))
    )


def _code_shape(seen: Scene, candidate: Candidate, raw: str, form: str) -> float:
    score = 0.0
    if form == "letters_digits":
        score += 1.6 if CODE_SHAPE.fullmatch(raw) else -0.6
        boxed = seen.before(candidate).endswith("[") and seen.after(candidate).startswith("]")
        score += 1.2 if CODE_SHAPE.fullmatch(raw) and boxed else 0.0
        score += 0.8 if CODE_SHAPE.fullmatch(raw) and starts_message(seen, candidate) else 0.0
        score -= 2.0 if is_model(seen, candidate) else 0.0
    if form == "constant" and _TELLING.search(raw):
        score += 1.0
    if form == "event_number" and candidate.span.start <= 2:
        score += 1.2
    if form == "hex":
        score += 0.4 if 5 <= len(raw) <= 10 else -1.0 if len(raw) > 12 else 0.0
        score += 1.2 if starts_message(seen, candidate) or raw.startswith("16#") else 0.0
        score += 1.2 if seen.before(candidate).endswith("(") else 0.0
    if FieldType.ASSET in candidate.types and form not in ("letters_digits", "constant", "hex"):
        score -= 0.7
    return score


def _code_place(seen: Scene, candidate: Candidate) -> float:
    before = seen.before(candidate)
    score = 0.0
    if _ADDRESS_WORD.search(before):
        score -= 3.0
    elif _STATE_WORD.search(before):
        score -= 1.5
    elif FAULT_WORD.search(before):
        score += 2.4
    inside = any(
        FieldType.CODE in other.types and other.span != candidate.span and other.weight >= 0.5
        and other.span.start <= candidate.span.start and candidate.span.end <= other.span.end
        for other in seen.candidates
    )  # fmt: skip
    return score - (2.5 if inside else 0.0)  # E1: the class stays with its number


_MAKER = re.compile(r"\W{0,8}(?:[A-Z][A-Za-z]{2,20}\s){1,2}")
_PADDED = re.compile(r"[A-Z]0\d{3,}")  # PSU0800: models do not begin with a zero
_LEVEL_NEXT = re.compile(r"\s{1,2}\[?([^\W\d_]{3,12})")


def is_model(seen: Scene, candidate: Candidate) -> bool:
    """A model or a name at the start of the message, with the name, code or level of another right behind it:
    `ATV320 Pumpe 2 ...`, `TNC640 0x8007001E ...`, `X20CP1585 ERROR ...`. F30002 has one letter: a code.
    """
    raw = candidate.span.of(seen.text)
    if not starts_message(seen, candidate):
        before = seen.untimed(candidate.span.start)
        return _MAKER.fullmatch(before) is not None and _may_be_maker(before.split()[-1].lower())
    if raw[1:2].isdigit() or _PADDED.search(raw):
        return False
    level = _LEVEL_NEXT.match(seen.text, candidate.span.end)
    if level is not None and level.group(1).lower() in level_words():
        return True
    at = candidate.span.end + 1
    return seen.text[at - 1 : at] == " " and any(
        other.span.start == at
        and other.weight >= 0.35
        and other.form not in ("named_number", "led", "last", "subject")
        for other in seen.candidates
        if not other.types.isdisjoint((FieldType.CODE, FieldType.ASSET))
    )


def _may_be_maker(word: str) -> bool:
    return (
        not is_class_word(word) and word not in level_words() and word not in lexicon.words("codes", "words")
    )


def starts_message(seen: Scene, candidate: Candidate) -> bool:
    """Nothing but times and punctuation before it."""
    return not any(char.isalpha() for char in seen.untimed(candidate.span.start)[-64:])


@cache
def level_words() -> frozenset[str]:
    levels = lexicon.load("levels")
    return frozenset(word.lower() for key in ("info", "warning", "error", "critical") for word in levels[key])


@cache
def _errno_names() -> frozenset[str]:
    return frozenset(errno.errorcode.values())


_KEY_NUMBER = re.compile(r"([A-Za-z_]\w*):-?\d[\d.,]*[A-Za-z%]{0,3}")
_RANGE = re.compile(r"\d+(?:\.\d+)?[-–]\d+(?:\.\d+)?\D{0,3}")


def is_key_value(raw: str) -> bool:
    """`B:79.84`, `Hold:0`, `20-30ms`: a key with its number, or a range; `Axis:6` is a name."""
    match = _KEY_NUMBER.fullmatch(raw)
    return _RANGE.fullmatch(raw) is not None or (
        match is not None and not is_class_word(match.group(1).lower())
    )


@lru_cache(maxsize=4096)
def is_class_word(word: str) -> bool:
    lists = [lexicon.words("assets", key) for key in ("nouns", "qualifiers", "leads", "stop", "not_keys")]
    return any(word in words or word.rstrip("s") in words for words in lists)
