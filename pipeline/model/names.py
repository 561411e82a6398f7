"""How well a candidate fits an asset or a code field, by rules (see weigh.py for the scale).

The two are told apart here, since both are written as letters with digits: TIC-1042 is a tag, F30002 a code.
"""

from __future__ import annotations

import errno
import re
from functools import cache, lru_cache

from pipeline.fields import lexicon, units
from pipeline.model.scene import NEVER, Scene
from schemas.extraction import Candidate, FieldType

# ---- codes

_ZERO = re.compile(r"(?:0[xX])?0+[hH]?|-+|0+(?::0+)+")
_FAULT_WORD = re.compile(
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
    "known": 6.0, "mnemonic": 3.0, "spn_fmi": 3.0, "class_number": 2.5, "status_name": 1.8, "errno_name": 1.8,
    "http_status": 1.0, "leading": 0.3, "leading_caps": 0.2, "labelled": 0.0, "parenthesised": -0.2, "hex": -0.4,
    "event_number": -0.6, "short_tag": -1.6, "field_word": -1.0,
    "constant": -0.6, "letters_digits": -0.6, "negative": -0.8, "hex_pair": -1.0, "digits_dashed": -1.5,
}  # fmt: skip
# E1023, F30002, A07910, KSS00276: a code's letters with three digits or more; a tag has a hyphen or fewer
# digits.
_CODE_SHAPE = re.compile(r"[A-Z]{1,4}\d{3,6}|[EFAW]-?\d{2,5}|[A-Z]\d{2,4}[A-Z]\d{1,3}|[A-Z]{3,5}-\d{3}")
_TAG_SHAPE = re.compile(r"[A-Z]{1,5}\d{0,2}-\d{1,5}[A-Z]?|[A-Z]{2,6}\d{1,2}|[A-Za-z]+[-_]?\d{1,2}[A-Z]?")


# A code has a digit, but for constants and mnemonics: what else stands behind "error" is prose.
_WORDY_FORMS = frozenset(["known", "mnemonic", "constant", "errno_name", "status_name", "leading_caps"])
_STATE_WORD = re.compile(
    r"(?:status|state|result|event|message|reason|quality)(?:_?code|id)?[\"']?[\s:=]{1,3}[\"']?$",
    re.IGNORECASE,
)
ECHO = re.compile(r"\b[GMN]\d{1,4}\b(?:\s[GMXYZEFST]-?\d)|(?:sen[dt]|tx)\W{1,3}[GMN]\d", re.IGNORECASE)


def code(seen: Scene, candidate: Candidate) -> float:
    """E1 to E8: the token beside a fault word, a mnemonic, a code's shape; never zero, an address or a count."""
    raw = candidate.span.of(seen.text)
    if _is_no_code(raw, candidate.form):
        return NEVER
    form = candidate.form
    if form == "class_number" and ":" not in raw:
        form = "letters_digits"  # the asset's word for "Fan 2"; a code's class and number join: ALARM:1
    score = (
        _CODE_FORM.get(form, -1.0) + _code_shape(seen, candidate, raw, form) + _code_place(seen, candidate)
    )
    if ECHO.search(seen.text):
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
        or lower in _level_words()
        or (form not in _WORDY_FORMS and not any(char.isdigit() for char in raw))
        or (form == "errno_name" and raw not in _errno_names())
        or (form == "place")
    )


def _code_shape(seen: Scene, candidate: Candidate, raw: str, form: str) -> float:
    score = 0.0
    if form == "letters_digits":
        score += 1.6 if _CODE_SHAPE.fullmatch(raw) else -0.6
        score += 0.8 if _CODE_SHAPE.fullmatch(raw) and _starts_message(seen, candidate) else 0.0
    if form == "hex":
        score += 1.2 if _starts_message(seen, candidate) or raw.startswith("16#") else 0.0
        score += 1.2 if seen.before(candidate).endswith("(") else 0.0
    if FieldType.ASSET in candidate.types and form not in ("letters_digits", "constant"):
        score -= 0.7
    return score


def _code_place(seen: Scene, candidate: Candidate) -> float:
    before = seen.before(candidate)
    score = 0.0
    if _ADDRESS_WORD.search(before):
        score -= 3.0
    elif _STATE_WORD.search(before):
        score -= 1.5
    elif _FAULT_WORD.search(before):
        score += 2.4
    inside = any(
        FieldType.CODE in other.types and other.span != candidate.span and other.weight >= 0.5
        and other.span.start <= candidate.span.start and candidate.span.end <= other.span.end
        for other in seen.candidates
    )  # fmt: skip
    return score - (2.5 if inside else 0.0)  # E1: the class stays with its number


def _starts_message(seen: Scene, candidate: Candidate) -> bool:
    """Nothing but times and punctuation before it."""
    return not any(char.isalpha() for char in seen.untimed(candidate.span.start)[-64:])


@cache
def _level_words() -> frozenset[str]:
    levels = lexicon.load("levels")
    return frozenset(word.lower() for key in ("info", "warning", "error", "critical") for word in levels[key])


@cache
def _errno_names() -> frozenset[str]:
    return frozenset(errno.errorcode.values())


# ---- assets

_USER_WORD = re.compile(
    r"(?:user|operator|benutzer|bediener|by|login|账号|用户|操作员)[\"']?[\s:=]{1,2}[\"']?$", re.IGNORECASE
)
_ASSET_FORM = {
    "known": 6.0, "place": 1.8, "path": 1.6, "class_number": 1.2, "key": 1.0, "han": 0.8, "mac": 0.6, "level": 0.4,
    "host": 0.3, "quoted": 0.3, "led": 0.4, "last": 0.4, "named_number": 0.2, "tag": 0.0, "cell": -0.6, "ip": -0.5,
    "part": -0.8, "object_key": -0.8, "called": -1.0,
}  # fmt: skip
# D1: a component before a unit, a unit before a host. The last word of the key tells which it is.
_KEYS = {
    **dict.fromkeys(
        "sensor channel axis interface point tag heater item variable probe node nodeid".split(), 0.4
    ),
    **dict.fromkeys("device name asset machine unit equipment equip station customname ied".split(), 0.7),
    **dict.fromkeys(
        "host hostname server gateway site location plant area line source src topic zone".split(), -0.9
    ),
    **dict.fromkeys("type category id serial sn client switch port slot bank".split(), -0.5),
}
# Class words that number software, addresses and text, not equipment.
_NO_EQUIPMENT = re.compile(
    r"(?:port|line|page|bus|thread|priority|address|state|item|label|ssh)[\s:#\-]{0,2}\d+", re.IGNORECASE
)
_MODULE = re.compile(
    r"[a-z][a-z_]*(?:\.[A-Za-z_]\w*){1,6}|[A-Z][a-z]+(?:[A-Z][a-z]+){1,4}|\w+\.(?:py|c|go|js|h|cc)(?::\d+)?"
)
_MARKED = re.compile(r"(?=\S*\d)(?=\S*[A-Za-z])\S*[-/:#_]\S*\d\S*")
_NAMEMARK = re.compile(r"[\d_\-@#]|[^\x00-\x7f]")
_MEASURED = re.compile(r"[-+]?\d+(?:[.,]\d+)?\s?(?P<unit>\D{0,8})")
_COORDINATES = re.compile(r"\b[XYZEFABCGMS][:\s]?-?\d", re.IGNORECASE)
# A logger's own name and its thread: [sensor:076], (MainThread), [modbus_connector.py], just behind time and
# level.
_LOGGER_BEFORE = re.compile(r"[\[(]$")


def asset(seen: Scene, candidate: Candidate) -> float:
    """D1 to D7: the most specific named equipment; not modules, processes, users, ports or bare class words."""
    raw = candidate.span.of(seen.text)
    if _is_no_name(seen, candidate, raw):
        return NEVER
    form = candidate.form if candidate.form in _ASSET_FORM else "tag"
    score = _ASSET_FORM[form]
    if form != "known":
        score += _shape(raw, form) + _place(seen, candidate, form) + _rank(seen, candidate, form)
    pair = seen.line.pair_at.get(candidate.span.start)
    if form == "key" and pair is not None:
        score += _KEYS.get(pair.last_word, 0.0) - (1.4 if raw.isdigit() and len(raw) < 4 else 0.0)
    return score


def _is_no_name(seen: Scene, candidate: Candidate, raw: str) -> bool:
    """Quantities and units; phrases that run into the next key; ports and lines of a file."""
    if candidate.form == "key" and re.match(r"\s?[=:]", seen.after(candidate)) and " " in raw:
        return True
    number = _MEASURED.fullmatch(raw)
    measured = number is not None and (
        not number.group("unit") or units.lookup(number.group("unit")) is not None
    )
    measured = measured and not (candidate.form in ("key", "level", "led") and raw.isdigit())
    return (
        (measured and candidate.form != "class_number")
        or units.lookup(raw) is not None
        or _NO_EQUIPMENT.fullmatch(raw) is not None
    )


def _shape(raw: str, form: str) -> float:
    lower = raw.lower()
    words = raw.split()
    score = -0.6 * max(0, len(words) - 3)
    if _is_class_word(lower) and form != "key":
        score -= 2.5
    if not _NAMEMARK.search(raw):
        score -= 0.9 if form not in ("key", "quoted", "level") else 0.2
    if form != "key" and (_MODULE.fullmatch(raw) or lower in _level_words()):
        score -= 1.6
    if form == "place" and not any(_is_class_word(word.lower()) for word in re.findall(r"[^\W\d_]{2,}", raw)):
        score -= 5.0
    if form in ("tag", "host") and not raw.isascii():
        return score
    if form == "tag":
        score += 0.8 if _TAG_SHAPE.fullmatch(raw) or _MARKED.fullmatch(raw) else -0.5
        score -= 1.4 if _CODE_SHAPE.fullmatch(raw) and not _TAG_SHAPE.fullmatch(raw) else 0.0
        score -= 1.5 if re.fullmatch(r"[XYZEFGMST]-?\d+(?:\.\d+)?", raw) else 0.0
    return score


@lru_cache(maxsize=4096)
def _is_class_word(word: str) -> bool:
    lists = [lexicon.words("assets", key) for key in ("nouns", "qualifiers", "leads", "stop", "not_keys")]
    return any(word in words or word.rstrip("s") in words for words in lists)


def _place(seen: Scene, candidate: Candidate, form: str) -> float:
    before, after = seen.before(candidate), seen.after(candidate)
    score = 0.0
    if _USER_WORD.search(before):
        score -= 3.0
    if re.match(r"\[\d+\]", after):
        score -= 3.0  # a process and its id
    if _FAULT_WORD.search(before) and form in ("tag", "led", "part"):
        score -= 1.5  # what stands behind "fault" is its code
    if _LOGGER_BEFORE.search(before) and form not in ("place", "known", "key", "last"):
        score -= 1.6
    if form in ("tag", "led") and _starts_message(seen, candidate):
        score += 0.4
    if ECHO.search(seen.text):
        score -= 3.0
    return score


def _rank(seen: Scene, candidate: Candidate, form: str) -> float:
    """D1, D2, D5: of names one behind the other the later is more specific, of topic levels the middle; else
    the first.
    """
    outer, left, levels = [], 0, []
    for other in seen.candidates:
        if FieldType.ASSET not in other.types or other.span == candidate.span:
            continue
        if other.span.start <= candidate.span.start and other.span.end >= candidate.span.end:
            outer.append(other)
        if other.form == "level":
            levels.append(other.span.start)
        gap = seen.text[other.span.end : candidate.span.start]
        if other.span.end < candidate.span.start and gap.isspace() and other.weight >= 0.5:
            left += 1
    score = _nested(seen, candidate, outer) + (0.5 * min(left, 2) if form == "han" else 0.0)
    if form == "level" and levels:
        score -= 1.0 if candidate.span.start < min(levels) else 0.0
        score -= 0.8 if len(levels) > 1 and candidate.span.start > max(levels) else 0.0
    return score - 0.002 * min(candidate.span.start, 200)


def _nested(seen: Scene, candidate: Candidate, outer: list[Candidate]) -> float:
    """A piece of a larger name is the name only where the larger one is a compound (host:port, topic levels)."""
    strong = [other.span.of(seen.text) for other in outer if other.weight >= 0.35 and other.form != "key"]
    if not strong:
        return 0.0
    return -0.3 if any(char in name for name in strong for char in ":/@") else -2.2
