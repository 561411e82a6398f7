"""The signature of a line: its text with every slot masked, and where the slots are.

    2026-01-05 11:23:14 Pump 3 bearing 92.5 °C, error 17
    <time> Pump <num> bearing <num> °C, error <code>

Lines with equal signatures are one pattern. The variant of a line is what stands in its enumerable slots
(`17`): a decision belongs to pattern *and* variant.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import NamedTuple

from pipeline.fields import lexicon
from pipeline.patterns import codes
from pipeline.patterns.codes import Cue
from pipeline.patterns.slots import KINDS, SLOT, Part, digits, dissect
from schemas.extraction import Span

CODE = "code"
_TAKEN_APART = frozenset({"chunk", "hex", "name", "path"})
_MASKS = {kind: f"<{kind}>" for kind in {*KINDS, "id", "uuid", CODE} - {"", "chunk", "end"}}
# By number of group; None: it needs a second look.
_MASK_OF = tuple(None if kind in _TAKEN_APART else _MASKS.get(kind) for kind in KINDS)
_END = KINDS.index("end")
_NUM, _CODE = _MASKS["num"], _MASKS[CODE]

VARIANT_MAX = 160  # characters; a longer variant is cut and told apart by a digest
_VARIANT_MARK = "|"

_MEMO_MAX = 32_768  # distinct stretches of fixed text: some per pattern, so this serves thousands of patterns
_MEMO_CHARS = 256  # longer stretches are worked out each time: they would fill the memory, not save time


class Slot(NamedTuple):
    """One variable token: where it stands in the line, and its kind (num, time, id, path, ..., code)."""

    span: Span
    kind: str


class Signature(NamedTuple):
    """`text` is the masked line. `bounds` are start and end of each slot in the raw line, in order."""

    text: str
    bounds: tuple[int, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each slot, in order."""
        return _kinds(self.text)

    @property
    def slots(self) -> tuple[Slot, ...]:
        starts, ends = self.bounds[::2], self.bounds[1::2]
        return tuple(Slot(Span(s, e), kind) for s, e, kind in zip(starts, ends, self.kinds, strict=True))


def sign(text: str) -> Signature:
    """The signature of `text`. Pure, linear in its length, the same on every platform; never raises."""
    masked: list[str] = []
    bounds: list[int] = []
    at = 0
    for match in SLOT.finditer(text):
        index = match.lastindex
        if index is None:
            continue
        start, end = match.span(index)
        before = text[at:start]
        fixed, hint = _fixed.get(before) or _learn_fixed(before)
        mask = _MASK_OF[index]
        if mask is _NUM:
            if hint and codes.number_is_code(hint, text, start, end):
                mask = _CODE
        elif mask is None:
            if index == _END:
                masked.append(fixed)
                break
            mask = _second_look(KINDS[index], hint, text, start, end)
            if mask is None:
                for first, last, kind in _parts(KINDS[index], hint, text, start, end):
                    before = text[at:first]
                    masked.append((_fixed.get(before) or _learn_fixed(before))[0] + _MASKS[kind])
                    bounds += first, last
                    at = last
                continue
        masked.append(fixed + mask)
        bounds += start, end
        at = end
    return Signature("".join(masked).strip(), tuple(bounds))


def variant(text: str, signature: Signature) -> str:
    """What stands in the enumerable slots, in order, in at most VARIANT_MAX characters; "" for none."""
    if _CODE not in signature.text:
        return ""
    bounds = signature.bounds
    values = [
        text[bounds[2 * i] : bounds[2 * i + 1]] for i, kind in enumerate(signature.kinds) if kind == CODE
    ]
    joined = _VARIANT_MARK.join(values)
    if len(joined) <= VARIANT_MAX:
        return joined
    digest = hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{joined[: VARIANT_MAX - 33]}#{digest}"


def line_digest(text: str) -> bytes:
    """Tells one line from another."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


# --- slots that need a second look --------------------------------------------------------------------------

# Words that say how things are, beside the pairs of opposites: a "name" that holds one stays readable.
_STATES = frozenset(
    "alarm busy critical critically error failed failure fault idle none null pause paused poweroff "
    "poweron ready reboot restart resume shutdown standby trip tripped unknown warning bereit störung".split()
)
_WORDS = re.compile(r"[^\W\d_]+")


def _second_look(kind: str, hint: Cue, text: str, start: int, end: int) -> str | None:
    """The mask of text[start:end]; None when it is no single slot and `_parts` must take it apart."""
    raw = text[start:end]
    if kind == "chunk":
        return (_chunks.get((hint, raw)) or _learn_chunk(hint, raw))[0]
    if kind == "hex":
        return _CODE if hint and codes.hex_is_code(hint, raw) else _MASKS[kind]
    return None if _spoken_from(raw) is not None else _MASKS[kind]


def _parts(kind: str, hint: Cue, text: str, start: int, end: int) -> list[Part]:
    """The slots within text[start:end], in positions of the line."""
    raw = text[start:end]
    if kind == "chunk":
        found = (_chunks.get((hint, raw)) or _learn_chunk(hint, raw))[1]
        return [(start + a, start + b, part) for a, b, part in found]
    cut = start + (_spoken_from(raw) or 0)
    before: list[Part] = [(start, cut, kind)] if cut > start else []
    return before + digits(text, cut, end)


@lru_cache(maxsize=_MEMO_MAX)
def _spoken_from(raw: str) -> int | None:
    """From where on a name, path or topic could say how things are, and so stays readable; None: nowhere.

    That is its last level when it is one plain word (a command, a program, a user), or holds a word of state.
    """
    at = raw.rfind("/") + 1
    last = raw[at:]
    if (last.isalpha() and not raw.startswith("/dev/")) or _speaks(last):
        return max(at - 1, 0)
    return None


def _speaks(name: str) -> bool:
    words = _WORDS.findall(name)
    return any(word.lower() in _states() for word in words) or (
        not name.isascii() and _han_states().search(name) is not None
    )


@lru_cache(maxsize=1)
def _states() -> frozenset[str]:
    return _STATES | frozenset(word.lower() for pair in lexicon.load("opposites") for word in pair)


@lru_cache(maxsize=1)
def _han_states() -> re.Pattern[str]:
    """Chinese is written without blanks: its words of state may stand anywhere in a name."""
    return re.compile("|".join(re.escape(word) for word in sorted(_states()) if not word[0].isascii()))


# --- memories
# ------------------------------------------------------------------------------------------------------- Both
# only save work: `sign` stays a pure function. Threads may share them, since a dict's get and set are atomic
# and a lost entry is worked out again.

_fixed: dict[str, tuple[str, Cue]] = {}
_chunks: dict[tuple[Cue, str], tuple[str | None, tuple[Part, ...]]] = {}

_BLANKS = re.compile(r"\s+")
_OPENING = re.compile(r"(?<=[(\[{|])\s+$")


def _learn_fixed(text: str) -> tuple[str, Cue]:
    """Fixed text as it stands in the signature, and what it says of the slot after it.

    `<` is doubled, so that no text can pass for a mask. Runs of blanks become one (or one newline), and go
    after an opening bracket, where they only pad the number: `[   12.5]`.
    """
    short = _BLANKS.sub(lambda run: "\n" if "\n" in run.group() else " ", text)
    known = (_OPENING.sub("", short).replace("<", "<<"), codes.cue(short))
    if len(text) <= _MEMO_CHARS:
        if len(_fixed) >= _MEMO_MAX:
            _fixed.clear()
        _fixed[text] = known
    return known


def _learn_chunk(hint: Cue, chunk: str) -> tuple[str | None, tuple[Part, ...]]:
    """The mask of a chunk that is one slot, else None; and its slots."""
    code = codes.chunk_code(hint, chunk)
    parts = dissect(chunk) if code is None else ((*code, CODE),)
    whole = _MASKS[parts[0][2]] if len(parts) == 1 and parts[0][:2] == (0, len(chunk)) else None
    if len(chunk) <= _MEMO_CHARS:
        if len(_chunks) >= _MEMO_MAX:
            _chunks.clear()
        _chunks[hint, chunk] = whole, parts
    return whole, parts


_MASK = re.compile(r"<<|<([a-z]+)>")


@lru_cache(maxsize=_MEMO_MAX)
def _kinds(signature: str) -> tuple[str, ...]:
    return tuple(match.group(1) for match in _MASK.finditer(signature) if match.group(1))
