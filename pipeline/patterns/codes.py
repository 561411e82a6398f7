"""Which slots are enumerable: their value may change the decision, so it is part of the pattern's variant.

Error codes, exit codes, HTTP statuses, alarm numbers, levels and on/off flags are. Names, times,
measurements, counts and process ids are not. What stands before a number tells (`error 38`, `"code":33`,
`错误代码：226`), or its own shape (`E207`, `SRVO-001`). Where they cannot be told apart, enumerable is
the safe side: it costs readings, never a wrong decision.
"""

from __future__ import annotations

import re
from enum import IntEnum

CUE_CHARS = 64  # a word further to the left does not speak of this number


class Cue(IntEnum):
    """What the text before a slot says of it."""

    NONE = 0
    CODE = 1  # "error: ", "code=": any code
    CODE_NEAR = 2  # "error ", with a blank only: at most six digits, longer ones are times and handles
    STATUS = 3  # "status: ", "ret = ": at most four digits, longer ones are handles and counters
    LEVEL = 4  # "severity=", "prio ": one digit or two
    FLAG = 5  # "running=": 0 or 1
    FAILED = 6  # "failed (", "失败：": a number that the bracket or the line ends with
    MNEMONIC = 7  # "%": %LINK-3-UPDOWN
    SLASHED = 8  # "IFNET/": IFNET/4/LINK_STATE
    BRACKET = 9  # "(": 0x80070005 in brackets
    PRIORITY = 10  # "<" before anything else: <134> of syslog


def _words(listed: str) -> str:
    """The words as one alternation, whatever their case."""
    return f"(?i:{'|'.join(listed.split())})"


# A word's beginning, also in errorCode and last_error.
_BEGINS = r"(?:(?<![A-Za-z])|(?<=[a-z])(?=[A-Z]))"
_LABEL = r"(?:\s*(?:no\.?|nr\.?|num|number|nummer|id|is|was|with|ist|mit|号|为|是|\#))?"
_GAP = r"[\"'”)\]]{0,2}\s{0,3}(?:->|=>|[:=：#])?\s{0,3}[\"'“(\[（]{0,2}\s?$"
_EQUALS = r"[\"']?\s?[:=]\s?[\"']?$"

_CODE_WORDS = _words(
    r"error err errno errnum errcode errorcode code statuscode exitcode fault faultcode alarm alm "
    r"alarmcode exit hresult sqlstate signal trip dtc spn fmi eventid event\sid event_id print_error "
    r"exception warning fehler fehlercode störung stoerung störcode meldung meldungsnummer alarmnummer "
    r"warnung"
)
_STATUS_WORDS = _words(
    "status state result ret retval retcode return returns returned rc reason cause subcode quality mode "
    "zustand"
)
_LEVEL_WORDS = _words("level severity sev prio priority lvl stufe")
_FLAG_WORDS = _words(
    "enabled disabled active inactive running ready online offline connected available open opened closed "
    "locked ok good healthy alive valid present tripped latched stopped contact switch relay valve door "
    "pump input output on off failed failure overload overtemp leak motion estop emergency break "
    "disconnection lost loss protection lockout interlock limit value val wert"
)

_CUES: tuple[tuple[Cue, re.Pattern[str]], ...] = tuple(
    (cue, re.compile(expression))
    for cue, expression in (
        (Cue.PRIORITY, r"^<$"),
        (Cue.MNEMONIC, r"%$"),
        (Cue.SLASHED, r"(?<![A-Za-z])[A-Z][A-Z0-9_]+/$"),
        (Cue.STATUS, r"HTTP(?:/[0-9.]{1,3})?[\"']?\s$"),
        (Cue.CODE, _BEGINS + _CODE_WORDS + _LABEL + _GAP),
        (Cue.CODE, r"(?:错误|故障|报警|告警|异常|返回|状态|事件)(?:代码|编码|代号|码|号)" + _GAP),
        (Cue.CODE, r"(?:错误|故障|报警|告警|代码|返回值)" + _LABEL + _GAP),
        (Cue.CODE, r"(?i:exit\w*|return\w*|terminat\w*)\s(?:\w+\s){0,3}(?:with|by|on)\s[\"'(\[]?$"),
        (Cue.FAILED, r"(?i:fail\w*|fehlgeschlagen|失败)\s?(?:[:：]\s?|[(\[（])$"),
        (Cue.STATUS, _BEGINS + _STATUS_WORDS + _LABEL + _GAP),
        (Cue.STATUS, r"(?:状态|原因|结果|返回)" + _GAP),
        (Cue.LEVEL, _BEGINS + _LEVEL_WORDS + _GAP),
        (Cue.LEVEL, r"(?:级别|等级)" + _GAP),
        (Cue.FLAG, _BEGINS + _FLAG_WORDS + _EQUALS),
        (Cue.BRACKET, r"\($"),
    )
)

# Zip codes, bar codes, encoders: words that end like a code and are none.
_NO_CODE = re.compile(
    _words("bar qr zip post en de area country source g byte op") + r"[-_\s]?(?i:code)" + _GAP
)

_LEADING_WORD = re.compile(
    _words("error err alarm alm fault flt fehler stoerung code status exit warn warning trip")
    + r"[-_]?[0-9]{1,8}"
)
_CODE_SHAPE = re.compile(
    r"(?:E|F|A|W|AL|ALM|ER|ERR|FLT|WRN|WARN|EC|FC)[-_]?[0-9]{3,6}"  # E207, F30002, AL-1020
    r"|[B-DH-LO-WU][0-9]{4,6}"  # P0420: one letter, four digits and more
    r"|[A-Z]{4,5}-[0-9]{3,6}"  # SRVO-001
    r"|[A-Z][0-9]{2,4}[A-Z][0-9]{1,3}"  # C153A0
)
# Equipment and papers that are numbered just as codes are: PUMP-101.
_NOUN_PREFIXES = frozenset(
    "PUMP LINE UNIT NODE ZONE CELL TANK AXIS FANS HALL DOOR PORT SLOT PLANT VALVE MOTOR ROBOT PRESS DRIVE "
    "METER HOST CNTR SHIFT BATCH ORDER".split()
)
_AFTER_CUE = re.compile(  # what a code may look like when the words before it say that it is one
    r"[A-Z]{1,5}[-_]?[0-9]{1,8}[A-Z]?|[a-z][0-9]{2,6}|[0-9A-Fa-f]{4,16}"
    r"|[A-Z0-9]{1,8}(?:[-_][A-Z0-9]{1,8}){1,6}"
)
_AFTER_CUE_MAX = 32
_PLACES = frozenset("CPU GPU DIMM ETH PLC UPS USB FAN PSU AXIS NODE CH SLOT PORT COM LINE".split())
_MNEMONIC = re.compile(r"[A-Z][A-Z0-9_]*-([0-7])-[A-Z0-9_]+")
_STATUS_HEX = re.compile(r"0[xX][8Cc][0-9A-Fa-f]{7}")  # HRESULT, NTSTATUS, OPC UA
_DIGITS_MAX = {Cue.CODE_NEAR: 6, Cue.STATUS: 4, Cue.LEVEL: 2}
_INTEGER = re.compile(r"[+\-−]?[0-9]{1,10}")


def cue(before: str) -> Cue:
    """What the text between the slot before and this one says of this one."""
    tail = before[-CUE_CHARS:] if len(before) > CUE_CHARS else before
    for found, expression in _CUES:
        if expression.search(tail) and not (found is Cue.CODE and _NO_CODE.search(tail)):
            return Cue.CODE_NEAR if found is Cue.CODE and tail.rstrip()[-1:].isalpha() else found
    return Cue.NONE


def number_is_code(hint: Cue, text: str, start: int, end: int) -> bool:
    """Whether the number text[start:end], after text that gave `hint`, is enumerable."""
    raw, after = text[start:end], text[end : end + 2]
    if hint is Cue.FLAG:
        return raw in ("0", "1", "0.0", "1.0")
    if not _INTEGER.fullmatch(raw) or after[:1] in ("%", "°", "℃", "℉"):
        return False
    if after[:1].isalpha() and not (after[0] in "iuL" and not after[1:].isalnum()):
        return False  # a unit follows: `error 30ms`; 1i and 1u are how line protocols write integers
    if hint is Cue.CODE:
        return True
    if hint is Cue.FAILED:
        return after[:1] in ("", ")", "]", "）") and len(raw) <= 7
    if hint is Cue.PRIORITY:
        return after[:1] == ">" and len(raw) <= 3
    if hint is Cue.SLASHED:
        return after[:1] == "/" and len(raw) == 1
    return len(raw.lstrip("+-−")) <= _DIGITS_MAX.get(hint, 0)


def hex_is_code(hint: Cue, raw: str) -> bool:
    """Whether 0x... is a status or an error and not an address."""
    return hint in (Cue.CODE, Cue.CODE_NEAR, Cue.STATUS) or (
        hint in (Cue.BRACKET, Cue.FAILED) and _STATUS_HEX.fullmatch(raw) is not None
    )


def chunk_code(hint: Cue, chunk: str) -> tuple[int, int] | None:
    """The enumerable part of a run of letters and digits, as (start, end) within it, if there is one."""
    if hint is Cue.MNEMONIC and (match := _MNEMONIC.fullmatch(chunk)):
        return match.span(1)
    if _LEADING_WORD.fullmatch(chunk):
        return 0, len(chunk)
    prefix = chunk.rstrip("0123456789").rstrip("-_")
    if _CODE_SHAPE.fullmatch(chunk) and prefix not in _NOUN_PREFIXES:
        return 0, len(chunk)
    if hint not in (Cue.CODE, Cue.CODE_NEAR, Cue.FAILED) or prefix in _PLACES:
        return None
    return (0, len(chunk)) if len(chunk) <= _AFTER_CUE_MAX and _AFTER_CUE.fullmatch(chunk) else None
