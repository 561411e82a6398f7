"""How well a candidate fits an asset field, by rules D1 to D7 (see weigh.py for the scale)."""

from __future__ import annotations

import re
from dataclasses import replace

from pipeline.fields import units
from pipeline.model.codes import (
    CODE_SHAPE,
    FAULT_WORD,
    TAG_SHAPE,
    is_class_word,
    is_key_value,
    is_model,
    level_words,
    starts_message,
)
from pipeline.model.scene import NEVER, Option, Scene
from schemas.extraction import Candidate, FieldType

_USER_WORD = re.compile(
    r"(?:user|operator|benutzer|bediener|by|login|账号|用户|操作员)[\"']?[\s:=]{1,2}[\"']?$", re.IGNORECASE
)
_ASSET_FORM = {
    "known": 6.0, "place": 1.8, "path": 1.6, "class_number": 1.2, "key": 1.0, "han": 0.8, "mac": 0.6,
    "level": 0.4, "led": 0.4, "last": 0.4, "host": 0.3, "quoted": 0.3, "named_number": 0.2, "tag": 0.0,
    "ip": -0.5, "cell": -0.6, "part": -0.8, "object_key": -0.8, "called": -1.0, "subject": -1.2,
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
# How operating systems and switches name their ports, disks and buses.
_INTERFACE = re.compile(
    r"[A-Za-z]{2,20}-?\d{1,3}(?:/\d{1,3}){1,3}|(?:eth|ether|enp|ens|wlan|can|br|bond|tty|ttyS|ttyUSB|i2c-|spi|usb|nvme|mmcblk|md|hci|"
    r"lo|thermal_zone)\d{1,2}\w{0,4}|sd[a-z]\d?"
)
_HEX = re.compile(r"#?(?:0[xX]|16#)[0-9A-Fa-f]+")
_HOST_PORT = re.compile(r"[\w.\-]{3,}:\d{2,5}")
_PEER = re.compile(r"(?:from|to|tcp|peer|with|in|->|connect|von|来自)[\s(\[:]{0,2}$", re.IGNORECASE)
_PROTOCOL = re.compile(r"[A-Za-z]+/\d\.\d|I/O|[A-Z]/\S+", re.IGNORECASE)
_LED_ADDRESS = re.compile(r"\D{2,}\s\d+(?:\.\d+){2,}")
_LED_TAG = re.compile(r"\D{3,}\s\S*[A-Za-z]\S*[-_]?\d\S*")
_FAULTY = re.compile(r"失败|故障|报警|断线|异常|错误|超时")
_NAMEMARK = re.compile(r"[\d_\-@#]|[^\x00-\x7f]")
_MEASURED = re.compile(r"[-+]?\d+(?:[.,]\d+)?\s?(?P<unit>\D{0,8})")
_COORDINATES = re.compile(r"\b[XYZEFABCGMS][:\s]?-?\d", re.IGNORECASE)
# A logger's own name and its thread: [sensor:076], (MainThread), [modbus_connector.py], just behind time and
# level.
_LOGGER_BEFORE = re.compile(r"[\[(]$")


def asset(seen: Scene, candidate: Candidate) -> float:
    """D1 to D7: the most specific named equipment; not modules, processes, users, ports or class words."""
    raw = candidate.span.of(seen.text)
    if _is_no_name(seen, candidate, raw):
        return NEVER
    form = candidate.form if candidate.form in _ASSET_FORM else "tag"
    score = _ASSET_FORM[form]
    if form != "known":
        score += _shape(raw, form) + _place(seen, candidate, form) + _rank(seen, candidate, form)
    pair = seen.line.pair_at.get(candidate.span.start)
    if form == "class_number" and pair is not None and pair.last_word in _KEYS:
        score += 0.4
    if form == "key" and pair is not None:
        score += _KEYS.get(pair.last_word, 0.0) - (1.4 if raw.isdigit() and len(raw) < 4 else 0.0)
        prose = (
            seen.text[pair.key_span.end : candidate.span.start] == ": " and raw.isalpha() and raw.islower()
        )
        score -= 0.9 if prose else 0.0
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
        or (_HEX.fullmatch(raw) is not None and candidate.form != "key")
        or candidate.form == "mnemonic"
        or is_key_value(raw)
        or _PROTOCOL.fullmatch(raw) is not None
    )


def _shape(raw: str, form: str) -> float:
    lower = raw.lower()
    words = raw.split()
    score = -0.6 * max(0, len(words) - 3)
    if is_class_word(lower) and form != "key":
        score -= 2.5
    if not _NAMEMARK.search(raw):
        score -= 0.9 if form not in ("key", "quoted", "level") else 0.2
    if form != "key" and (_MODULE.fullmatch(raw) or lower in level_words()):
        score -= 1.6
    if _LED_ADDRESS.fullmatch(raw) or (form == "named_number" and _LED_TAG.fullmatch(raw)):
        score -= 1.2  # "peer 10.2.0.7", "Labeler LBL-4": the word only leads to the name
    if _FAULTY.search(raw):
        score -= 2.0
    if form in ("tag", "host") and raw.isascii() and not re.search(r"[\d_]", raw):
        score -= 0.5
    if _INTERFACE.fullmatch(raw):
        score += 0.9
    elif "/" in raw and form in ("tag", "quoted", "led"):
        score -= 0.8  # D7: a topic or path as a whole
    if _HOST_PORT.fullmatch(raw):
        score -= 1.2
    if re.search(r"\d{8}", raw) and "_" in raw:
        score -= 1.0  # the id of a task or a request
    if form == "place" and not any(is_class_word(word.lower()) for word in re.findall(r"[^\W\d_]+", raw)):
        score -= 5.0
    if form in ("tag", "host") and not raw.isascii():
        return score
    if form == "tag":
        score += 0.8 if TAG_SHAPE.fullmatch(raw) or _MARKED.fullmatch(raw) else -0.5
        score -= 1.4 if CODE_SHAPE.fullmatch(raw) and not TAG_SHAPE.fullmatch(raw) else 0.0
        score -= 1.5 if re.fullmatch(r"[XYZEFGMST]-?\d+(?:\.\d+)?", raw) else 0.0
    return score


def _place(seen: Scene, candidate: Candidate, form: str) -> float:
    before, after = seen.before(candidate), seen.after(candidate)
    score = 0.0
    if _USER_WORD.search(before):
        score -= 3.0
    if re.match(r"\[\d+\]", after):
        score -= 3.0  # a process and its id
    if FAULT_WORD.search(before) and form in ("tag", "led", "part"):
        score -= 1.5  # what stands behind "fault" is its code
    if _LOGGER_BEFORE.search(before) and form not in ("place", "known", "key", "last"):
        score -= 1.6
    if form in ("tag", "led") and starts_message(seen, candidate):
        score += 0.4
        if CODE_SHAPE.fullmatch(candidate.span.of(seen.text)) and is_model(seen, candidate):
            score += 2.6
        if any(other.form == "class_number" and other.weight > 0.5 for other in seen.candidates):
            score -= 0.4  # D1: its part is more specific
    if candidate.form == "ip" and _PEER.search(before):
        score += 0.8  # D6
    if seen.is_echo:
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
    """A piece of a larger name is the name only where that is a compound (host:port, topic levels)."""
    strong = [
        other.span.of(seen.text)
        for other in outer
        if other.weight >= 0.35 and other.form not in ("key", "named_number")
    ]
    if not strong:
        return 0.0
    if any(_HOST_PORT.fullmatch(name) for name in strong):
        return 0.5
    return -0.3 if any(char in name for name in strong for char in ":/@") else -2.2


def host_last(options: list[Option]) -> list[Option]:
    """D1: the logging host is the fallback, taken where no other name is likely."""
    other = any(option.score > -0.3 for option in options if option.candidate.form != "host")
    change = -0.8 if other else 0.3
    return [
        replace(option, score=option.score + change) if option.candidate.form == "host" else option
        for option in options
    ]
