"""One line, looked over once: key/value pairs, quoted strings, tokens, and what may name a number.

Everything here is linear in the length of the line: each look to the left or right is bounded.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from pipeline.fields import lexicon
from schemas.extraction import Span

KEY_MAX = 64  # a longer key is prose
VALUE_MAX = 120  # a longer quoted value is prose
PHRASE_MAX = 48  # a longer unquoted name is prose

_SEPARATOR = re.compile(r"[=:：]")
_KEY_STOP = frozenset(" \t\r\n,;|{}()[]<>\"'=:：，；、（）【】")
_VALUE_STOP = frozenset(" \t\r\n,;|{}()[]<>\"'=，；、（）【】")
_PHRASE_END = re.compile(r"[,;|{}\[\]()<>\"'=，；。\r\n\t]|\s-\s|\s{2}|:\s|：|$")
_TOKEN = re.compile(r"[^\s,;|{}()\[\]<>\"'=，；、。（）【】《》：“”]+")
_CUT = re.compile(r"[,;|{}\n\t，；、。]|[(\[](?=[^(\[])|\d[.,]\d{1,12}")
_BRACE = re.compile(r"[{}]")
_QUOTE = re.compile(
    r"\"([^\"\r\n]{1,120})\"|(?<![A-Za-z0-9])'([^'\r\n]{1,120})'(?![A-Za-z])|[“「]([^”」\r\n]{1,120})[”」]"
)


@dataclass(frozen=True, slots=True)
class Pair:
    """`key = value`, `key: value`, `"key": "value"`. `phrase` is the value with the blanks of a name."""

    key: str
    key_span: Span
    value: Span
    phrase: Span
    quoted: bool
    group: int

    @property
    def last_word(self) -> str:
        """`sensor_name` -> `name`, `deviceId` -> `id`: what kind of key it is."""
        return lexicon.plain(self.key).replace("-", " ").replace(".", " ").split(" ")[-1].strip("@#")


@dataclass(frozen=True)
class Line:
    """A line and what was found in it. `taken` are the times, in order: they hold nothing else."""

    text: str
    taken: Sequence[Span] = ()

    @cached_property
    def _taken_starts(self) -> list[int]:
        return [span.start for span in self.taken]

    def is_taken(self, start: int, end: int) -> bool:
        """Whether [start, end) touches a time."""
        at = bisect_right(self._taken_starts, start)
        if at and self.taken[at - 1].end > start:
            return True
        return at < len(self.taken) and self.taken[at].start < end

    @cached_property
    def gaps(self) -> list[tuple[int, int]]:
        """What lies before, between and behind the times: a number must not begin inside one."""
        starts = [0, *(span.end for span in self.taken)]
        ends = [*(span.start for span in self.taken), len(self.text)]
        return [(start, end) for start, end in zip(starts, ends, strict=True) if start < end]

    def matches(self, expression: re.Pattern[str]) -> Iterator[re.Match[str]]:
        """Where the expression matches between the times, in order."""
        for start, end in self.gaps:
            yield from expression.finditer(self.text, start, end)

    @cached_property
    def groups(self) -> tuple[list[int], list[int]]:
        """Where the innermost {object} changes, and which it is from there on (by its `{`; -1 is none)."""
        positions, ids, stack = [0], [-1], [-1]
        for match in _BRACE.finditer(self.text):
            if match.group() == "{":
                stack.append(match.start())
            elif len(stack) > 1:
                stack.pop()
            positions.append(match.end())
            ids.append(stack[-1])
        return positions, ids

    def group(self, position: int) -> int:
        positions, ids = self.groups
        return ids[bisect_right(positions, position) - 1]

    @cached_property
    def pairs(self) -> list[Pair]:
        found = (self._pair(match.start()) for match in _SEPARATOR.finditer(self.text))
        return [pair for pair in found if pair is not None]

    @cached_property
    def pair_at(self) -> dict[int, Pair]:
        """Pairs by the start of their value."""
        return {pair.value.start: pair for pair in self.pairs}

    @cached_property
    def _object_keys(self) -> frozenset[int]:
        return frozenset(pair.key_span.start for pair in self.pairs if pair.group >= 0)

    def is_object_key(self, quoted: Span) -> bool:
        """Whether this is the key of an {object}; outside of one, `'Boiler': 3 bar` starts with a name."""
        return quoted.start in self._object_keys

    @cached_property
    def siblings(self) -> dict[int, dict[str, Pair]]:
        """The pairs of each object by their key in lower case; the first of equal keys stands."""
        table: dict[int, dict[str, Pair]] = {}
        for pair in self.pairs:
            table.setdefault(pair.group, {}).setdefault(pair.key.lower(), pair)
        return table

    @cached_property
    def parents(self) -> dict[int, str]:
        """The key whose value an object is, by the object's `{`."""
        return {
            pair.value.start: pair.key
            for pair in self.pairs
            if self.text[pair.value.start : pair.value.end] == "{"
        }

    @cached_property
    def tokens(self) -> list[Span]:
        """Runs without blanks, brackets, quotes or list marks, less the punctuation at their ends."""
        return [
            span for match in _TOKEN.finditer(self.text) if (span := self.trim(*match.span())) is not None
        ]

    @cached_property
    def quoted(self) -> list[Span]:
        """What stands in quotes, without them."""
        spans = (match.span(match.lastindex or 0) for match in _QUOTE.finditer(self.text))
        return [span for start, end in spans if (span := self.trim(start, end)) is not None]

    def trim(self, start: int, end: int) -> Span | None:
        """[start, end) without blanks and loose punctuation at its ends; None when nothing is left."""
        text = self.text
        while start < end and (text[start].isspace() or text[start] in ".,:;!?'\"`*"):
            start += 1
        while end > start and (text[end - 1].isspace() or text[end - 1] in ".,:;!?'\"`*"):
            end -= 1
        return Span(start, end) if start < end else None

    def label(self, start: int) -> str:
        """The words that may say what the number at `start` is: its key, or the prose before it.

        Where the key says only "value", the sibling that names it or the key of the object stands for it.
        """
        pair = self.pair_at.get(start)
        if pair is None:
            return self._left(start)
        if lexicon.plain(pair.key).replace(" ", "_").strip("_") not in lexicon.words(
            "setpoints", "generic_value_keys"
        ):
            return self._left(start)
        return self.sibling(pair, "name_keys") or self.parents.get(pair.group, "") or self._left(start)

    def sibling(self, pair: Pair, keys: str) -> str | None:
        """The value of the pair's sibling whose key is in the word list `keys` of setpoints.yaml."""
        around = self.siblings.get(pair.group, {})
        for key in lexicon.load("setpoints")[keys]:
            other = around.get(key)
            if other is not None and other is not pair:
                return self.text[other.value.start : other.value.end]
        return None

    def _left(self, start: int) -> str:
        """The text before a number, back to a list mark, a bracket or another measured value."""
        at = bisect_right(self._taken_starts, start)
        timed = self.taken[at - 1].end if at else 0  # the T of a time before it is no word
        window = self.text[max(timed, start - lexicon.LABEL_MAX) : start]
        cut = max((match.end() for match in _CUT.finditer(window)), default=0)
        return window[cut:]

    def is_bracketed(self, start: int) -> bool:
        """Whether a bracket opens right before `start`: "120 [Raw 30]" sets a value beside its score."""
        return self.text[start - 1 : start] == "["

    def _pair(self, at: int) -> Pair | None:
        text = self.text
        if self.is_taken(at, at + 1) or self._is_no_separator(at):
            return None
        key = self._key(at)
        if key is None:
            return None
        start = at + 1
        while start < len(text) and start < at + 4 and text[start] in " \t>":
            start += 1
        if start >= len(text):
            return None
        return self._with_value(key, start)

    def _is_no_separator(self, at: int) -> bool:
        before, after = self.text[at - 1 : at], self.text[at + 1 : at + 2]
        if self.text[at] == "=":
            return before in "=!<>" or after == "="
        return (before.isdigit() and after.isdigit()) or after in ("/", ":") or before == ":" or before == ""

    def _key(self, at: int) -> Span | None:
        text, end = self.text, at
        while end > 0 and end > at - 3 and text[end - 1] == " ":
            end -= 1
        if end == 0:
            return None
        if text[end - 1] in "\"'":
            start = text.rfind(text[end - 1], max(0, end - KEY_MAX), end - 1)
            return Span(start + 1, end - 1) if 0 <= start < end - 2 else None
        start = end
        while start > 0 and end - start < KEY_MAX and text[start - 1] not in _KEY_STOP:
            start -= 1
        return Span(start, end) if start < end else None

    def _with_value(self, key: Span, start: int) -> Pair | None:
        text, group, name = self.text, self.group(key.start), key.of(self.text)
        if text[start] in "\"'":
            end = text.find(text[start], start + 1, start + VALUE_MAX)
            inside = self.trim(start + 1, end) if end > 0 else None
            return Pair(name, key, inside, inside, True, group) if inside is not None else None
        if text[start] in "{[":
            span = Span(start, start + 1)
            return Pair(name, key, span, span, False, group)
        end = start
        while end < len(text) and end - start < VALUE_MAX and text[end] not in _VALUE_STOP:
            end += 1
        written = text[start:end].lower() in lexicon.words("sentinels", "words")  # "****" is no punctuation
        value = Span(start, end) if written else self.trim(start, end)
        if value is None:
            return None
        stop = _PHRASE_END.search(text, start, min(len(text), start + PHRASE_MAX))
        phrase = self.trim(start, stop.start()) if stop is not None else value
        return Pair(name, key, value, phrase or value, False, group)
