"""What is a slot: the written forms of everything that varies from line to line.

One rule comes before all others: *no word is ever swallowed*. A mask covers digits and what can only be
digits' company (a sign, a decimal mark, the name of a month in a date, the short letters inside an id);
letters that could say something stay in the signature. So `Pump3 started` and `Pump4 started` are one
pattern, and `pump3_off` and `pump3_on` are two.

Everything is ASCII-exact and free of locale, so that a line has one signature on every platform. Every
quantifier that can fail is bounded or possessive: looking for slots is linear in the length of the line.
Forms are ordered for speed: what is common is decided first, and each form is entered only where its first
characters allow it.
"""

from __future__ import annotations

import re

# --- times --------------------------------------------------------------------------------------------------

_MONTH = r"(?:Jan|Feb|Mar|Mär|Apr|May|Mai|Jun|Jul|Aug|Sep|Oct|Okt|Nov|Dec|Dez)[a-zä]{0,6}\.?"
_WEEKDAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Mo|Di|Mi|Do|Fr|Sa|So)[a-z]{0,7}[.,]{0,2}\ {1,2}"
_AM_PM = r"(?:\ ?[AaPp]\.?[Mm]\.?(?![A-Za-z]))?"
_ZONE = (
    r"(?:Z(?![A-Za-z])|[+-][0-9]{2}(?::?[0-9]{2})?(?![0-9:])"
    r"|\ [+-](?:0[0-9]|1[0-4]):?(?:00|15|30|45)(?![0-9:])"  # after a blank it could be a value
    r"|\ (?:UTC|GMT|CES?T|[ECMP][SD]T|BST|JST|MSK)(?![A-Za-z0-9]))?"
)
# A comma begins a fraction only before exactly three digits or six: in a CSV row it begins the next column.
_FRACTION = r"(?:[.:][0-9]{1,9}(?![0-9:])|,[0-9]{3}(?:[0-9]{3})?(?![0-9.,]))?"
_MINUTES = r"[0-9]{2}(?![0-9:])"
_SECONDS = rf"[0-9]{{1,2}}:[0-9]{{1,2}}(?![0-9]){_FRACTION}(?!:[0-9A-Fa-f])"
_CLOCK = rf"[0-9]{{1,2}}:(?:{_MINUTES}|{_SECONDS}){_AM_PM}{_ZONE}"
_ZH_CLOCK = r"[0-9]{1,2}\ ?[时点]\ ?[0-9]{1,2}\ ?分(?:\ ?[0-9]{1,2}\ ?秒)?"
_DOT_CLOCK = r"[0-9]{1,2}\.[0-9]{2}\.[0-9]{2}(?:\.[0-9]{1,9})?(?![0-9])"
_AFTER_DATE = rf"(?:[T_:@,\t-]|,?\ {{1,2}}|\ -\ )(?:{_CLOCK}|{_DOT_CLOCK}|{_ZH_CLOCK})"
_YMD = (
    r"(?:[0-9]{4}(?:-[0-9]{1,2}-|/[0-9]{1,2}/|\.[0-9]{1,2}\.)[0-9]{1,2}(?![0-9])"
    r"|[0-9]{4}年[0-9]{1,2}月[0-9]{1,2}日)"
)
_DMY = (
    r"[0-9]{1,2}(?:-[0-9]{1,2}-|/[0-9]{1,2}/|\.[0-9]{1,2}\."
    rf"|\.?[-/\ ]{{1,2}}{_MONTH}[-/,\ ]{{1,2}})"
)
_DATE = rf"(?:{_YMD}|{_DMY}[0-9]{{4}}(?![0-9]))"
# Month first, as in syslog, with or without weekday and year.
_MDY = rf"(?:{_WEEKDAY})?{_MONTH}\ {{1,2}}[0-9]{{1,2}}"
_WORDED = (
    rf"{_MDY}(?:,?\ [0-9]{{4}})?,?\ {{1,2}}{_CLOCK}(?:\ [12][0-9]{{3}}(?![0-9:.]))?"
    rf"|{_MDY},?\ [12][0-9]{{3}}(?![0-9:.])|{_WEEKDAY}{_DATE}(?:{_AFTER_DATE})?"
)
_COMPACT = rf"[12][0-9]{{7}}(?:[-_T\ ]{_CLOCK}|T[0-9]{{4}}(?:[0-9]{{2}})?{_FRACTION}{_ZONE}(?![0-9A-Za-z]))"
# With two-digit years only a clock behind them tells a date from a version.
_NUMERIC_TIME = (
    rf"{_YMD}(?:{_AFTER_DATE}|(?!\.[0-9]))|{_CLOCK}|{_ZH_CLOCK}"
    rf"|{_DMY}(?:[0-9]{{4}}(?![0-9.]|:[0-9])(?:{_AFTER_DATE})?|[0-9]{{2}}{_AFTER_DATE}|[0-9]{{4}}:{_CLOCK})"
    rf"|{_COMPACT}"
)

# --- addresses, paths, names --------------------------------------------------------------------------------

_MAC = r"[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){4,6}(?![0-9A-Fa-f:])"
_HEX = r"0[xX][0-9A-Fa-f]+"
_IPV6 = (
    r"(?=[0-9A-Fa-f]{1,4}:)(?:[0-9]|[Ff][CcDdEe])[0-9A-Fa-f]{0,3}(?:(?::[0-9A-Fa-f]{1,4}){7}"
    r"|(?::[0-9A-Fa-f]{1,4}){0,6}::(?:[0-9A-Fa-f]{1,4}:){0,5}[0-9A-Fa-f]{0,4})(?![0-9A-Za-z:])"
)
_DOTTED = r"[0-9]+\.[0-9]+\.[0-9]+(?:\.[0-9]+)*(?![0-9])"
_PCI = r"[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7](?![0-9A-Za-z])"
_URL = r"[A-Za-z][A-Za-z0-9+.-]{1,11}://[^\s/\"'<>()\[\],;]+"  # the authority only: a path may hold a command
_PATH = r"/[\w.@~%+#-]{1,255}(?:/[\w.@~%+#-]{1,255}){1,64}/?"  # two names or more
_WINDOWS_PATH = r"[A-Za-z]:\\[^\s\"'<>|*?,;\])]+"
_TLD = "com|net|org|edu|gov|local|localdomain|lan|internal|intern|arpa|de|cn|jp|fr|br|kr|tw|uk|ru|pl|nl|eu"
_HOST = (
    r"(?=[A-Za-z0-9-]+\.[A-Za-z0-9])(?<![\w.-])(?:[A-Za-z0-9][A-Za-z0-9-]{0,62}\.){1,8}"
    rf"(?:{_TLD})(?![\w-]|\.\w)"
)
_REVERSE_NAME = (
    r"(?<=[0-9]\ \()[A-Za-z0-9][A-Za-z0-9._-]{0,250}\.[A-Za-z][A-Za-z-]{0,20}(?=\))"  # 10.1.2.3 (its.name)
)

# Keys whose value can only be a name. Written lower, UPPER or Title.
_NAME_KEYS = (
    "asset asset_id assetid benutzer client client_id clientid datei dev device device_id device_name "
    "deviceid equipment file filename heater_id host hostname logname machine machine_id machineid node "
    "node_id nodeid path rechner rhost ruser session session_id sessionid station topic user username"
).split()


def _by_first_letter(words: list[str]) -> str:
    """An alternation that is decided by the first letter, which `re` tests before it enters a branch."""
    tails: dict[str, list[str]] = {}
    for word in sorted(words, key=len, reverse=True):
        tails.setdefault(word[0], []).extend(dict.fromkeys((word[1:], word[1:].title(), word[1:].upper())))
    parts = (f"[{first}{first.upper()}](?:{'|'.join(tail)})" for first, tail in sorted(tails.items()))
    return f"(?:{'|'.join(parts)})"


_NAME_KEY = rf"(?<![A-Za-z_]){_by_first_letter(_NAME_KEYS)}(?=[\"'=:\ ])"
_QUOTED_NAME = rf"{_NAME_KEY}(?:[\"']?\ ?[:=]\ ?|\ )[\"']([^\"'\r\n]{{1,120}})(?=[\"'])"
_PLAIN_NAME = rf"{_NAME_KEY}=([^\s\"'`,;:&|<>(){{}}\[\]]{{1,120}})"

# --- numbers and ids ----------------------------------------------------------------------------------------

# Most numbers: what follows cannot make them part of anything else.
_EASY_NUMBER = (
    r"[0-9]++(?:\.[0-9]++)?+(?![-:/.,0-9A-Za-z_+年月时点：]"
    r"|\ (?:[JFMASOND][a-zä]{2}|[0-9]{1,2}:|-\ [0-9]|[AaPp]\.?[Mm]))"
)
# A comma is a decimal mark only where no list can stand: after a blank or a separator, before a blank, a unit
# or the end.
_COMMA_NUMBER = (
    r"(?<![^\s=:(：])[+\-−]?[0-9]+(?:\.[0-9]{3})*,[0-9]+(?=[\s°%℃℉µA-Za-z]|$)(?![A-Za-z]{0,9}[0-9_])"
)
_NUMBER = (
    r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3}(?![0-9A-Za-z]))?"
    r"(?=[A-Za-z]{0,5}(?![A-Za-z0-9_]|-[A-Za-z0-9]))"
)
_WIDE_NUMBER = r"[０-９]+(?:[.．][０-９]+)?"
# Letters and digits, joined by - and _, with at least one digit: taken apart by `dissect`.
_CHUNK = r"[A-Za-z0-9]++(?:[-_]++[A-Za-z0-9]++)*+(?:(?<=[0-9])\.[0-9]++)*+"
_CHUNK_AT_LETTER = rf"(?=[A-Za-z_-]*+[0-9]){_CHUNK}"

# --- what is passed over ------------------------------------------------------------------------------------

_LETTERS = r"[A-Za-z]++(?:[-_]++[A-Za-z]++)*+(?![-_]*+[0-9])"
# A word that cannot be, or begin, part of a slot: most words take one of these ways.
_EASY_WORD = (
    r"(?![A-Z][a-z]{1,8}[.,]{0,2}\ {1,2}(?:[0-9]|[A-Z][a-z]{2,8}\.?\ {1,2}[0-9]))"
    rf"{_LETTERS}(?![\"']?\ ?[:=]|\ ?[\"']|\.[A-Za-z0-9]|ä)"
)
_KEY_WORD = rf"(?!{_NAME_KEY}){_LETTERS}(?=[\"']?\ ?[:=\"'])(?!:[/\\0-9A-Fa-f:])"
_PASSED = (
    rf"[^A-Za-z0-9+\-−/０-９]++|{_EASY_WORD}|{_KEY_WORD}|(?<=[A-Za-z0-9_)\]}}%])[+\-−]|[+\-−]++(?![0-9])"
    rf"|(?<=[\w/])/|/(?!{_PATH[1:]})|(?<=HTTP/)[0-9](?:\.[0-9])?"
)

# --- one expression -----------------------------------------------------------------------------------------

# (kind, form). Each form has one group: what the slot covers. Fewer groups make every match cheaper.
_AT_DIGIT = (
    ("num", rf"({_EASY_NUMBER})"),
    ("mac", rf"({_MAC})"),
    ("addr", rf"({_PCI})"),
    ("time", rf"({_NUMERIC_TIME})"),
    ("addr", rf"({_IPV6}|{_DOTTED})"),
    ("hex", rf"({_HEX})"),
    ("num", rf"({_COMMA_NUMBER}|{_NUMBER})"),
    ("host", rf"({_REVERSE_NAME}|{_HOST})"),
    ("chunk", rf"({_CHUNK})"),
)
_AT_LETTER = (
    ("chunk", rf"(?![0-9A-Fa-f]{{1,4}}:)({_CHUNK_AT_LETTER})(?![.\w])"),
    ("time", rf"({_WORDED})"),
    ("name", _QUOTED_NAME),
    ("name", _PLAIN_NAME),
    ("mac", rf"({_MAC})"),
    ("addr", rf"({_IPV6})"),
    ("url", rf"({_URL})"),
    ("path", rf"({_WINDOWS_PATH})"),
    ("host", rf"({_REVERSE_NAME}|{_HOST})"),
    ("chunk", rf"({_CHUNK_AT_LETTER})"),
)
_ELSEWHERE = (("path", rf"({_PATH})"), ("num", rf"({_COMMA_NUMBER}|[+\-−]{_NUMBER}|{_WIDE_NUMBER})"))


def _branch(forms: tuple[tuple[str, str], ...]) -> str:
    return "|".join(form for _, form in forms)


KINDS = ("", *(kind for forms in (_AT_DIGIT, _AT_LETTER, _ELSEWHERE) for kind, _ in forms), "end")
"""Kind of slot by number of group; "end" is the end of the line."""

SLOT = re.compile(
    rf"(?:{_PASSED})*+"
    rf"(?:(?=[0-9])(?:{_branch(_AT_DIGIT)})|(?=[A-Za-z])(?:{_branch(_AT_LETTER)}|{_LETTERS})|{_branch(_ELSEWHERE)}|(\Z))"
)
"""One match: everything up to the next slot, and the slot; or, without a group, a word that was none."""

# --- taking chunks apart ------------------------------------------------------------------------------------

# Short words that may stand inside what looks like an id and turn its meaning round: `K1_ON_2`.
_MEANING = frozenset(
    "on off up dn ok nok no yes in out set rst clr new old run stp sta err flt alm trp wrn bad hot low lo "
    "hi max min dis ena opn cls rdy stb fwd rev cw ccw ack rtn raw sp pv emg esd ein aus auf zu an ab".split()
)
_UUID = re.compile(r"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}")
_DASHED_MAC = re.compile(r"(?:[0-9A-Fa-f]{2}-){5,7}[0-9A-Fa-f]{2}")
_BARE_HEX = re.compile(r"(?=.*[a-fA-F])(?:[0-9a-f]{8,}|[0-9A-F]{8,})")
_RUN = re.compile(r"[A-Za-z0-9]+(?:(?<=[0-9])\.[0-9]+)*")
_DIGITS = re.compile(r"[0-9]+(?:\.[0-9]+)*")
_LETTER_RUNS = re.compile(r"[A-Za-z]+")
_WORDLIKE = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{4,}")
_ID_LETTERS_MAX = 3  # a longer run of letters could be a word
_LONG_ID_MIN = 16  # from here on a run with three numbers in it may hold longer letters: base64, session keys

Part = tuple[int, int, str]
"""Start and end within the chunk, and the kind of slot."""


def dissect(chunk: str) -> tuple[Part, ...]:
    """The slots of a run of letters and digits. Whatever none of them covers stays in the signature."""
    if _UUID.fullmatch(chunk):
        return ((0, len(chunk), "uuid"),)
    if _DASHED_MAC.fullmatch(chunk):
        return ((0, len(chunk), "mac"),)
    runs = [(match.start(), match.group()) for match in _RUN.finditer(chunk)]
    if _is_compound_id([run for _, run in runs]):
        return ((0, len(chunk), "id"),)
    return tuple(part for at, run in runs for part in _run_parts(run, at))


def digits(text: str, start: int, end: int) -> list[Part]:
    """The numbers in text[start:end], for what looked like a name or a path and is not one."""
    return [(m.start(), m.end(), _number_kind(m.group())) for m in _DIGITS.finditer(text, start, end)]


def _run_parts(run: str, at: int) -> tuple[Part, ...]:
    if _is_id(run):
        return ((at, at + len(run), "id"),)
    return tuple((at + m.start(), at + m.end(), _number_kind(m.group())) for m in _DIGITS.finditer(run))


def _number_kind(written: str) -> str:
    return "addr" if written.count(".") > 1 else "num"


def _is_id(run: str) -> bool:
    """Bare hex of eight and more, or letters and digits in turns that hold nothing like a word."""
    if "." in run or run.isdigit():
        return False
    if _BARE_HEX.fullmatch(run):
        return True
    letters, numbers = _LETTER_RUNS.findall(run), _DIGITS.findall(run)
    if len(numbers) < 2 or not _MEANING.isdisjoint(word.lower() for word in letters):
        return False
    if all(len(word) <= _ID_LETTERS_MAX for word in letters):
        return True
    return (
        len(run) >= _LONG_ID_MIN and len(numbers) > 2 and not any(_WORDLIKE.search(word) for word in letters)
    )


def _is_compound_id(runs: list[str]) -> bool:
    """`R24-M0-N1-C`, `0300_0D00_0002`: short runs, most with digits, no letters that could be a word."""
    if len(runs) < 2 or any("." in run for run in runs):
        return False
    if all(run.isdigit() for run in runs):
        return len(runs) >= 4  # 5018-5019 is a range, 220-135-151-1 a name
    words = [run for run in runs if run.isalpha()]
    if len(runs) - len(words) < 2 or (len(runs) < 3 and runs[0][0].isdigit()):
        return False
    letters = [word for run in runs for word in _LETTER_RUNS.findall(run)]
    if any(len(word) > 2 for word in words) or any(len(word) > _ID_LETTERS_MAX for word in letters):
        return False
    return _MEANING.isdisjoint(word.lower() for word in letters)
