"""Where a value stands in every line of a pattern, said relative to the slots.

Lines of one pattern are equal but for their slots and for runs of blanks. So a place is found again exactly:
a whole slot; from one slot to another with whatever stands between; from a word of the fixed text (counted in
characters that are no blanks) to a slot, as in `Pump 3`; words of the fixed text alone; or a part of a slot,
which is taken only where the slot is built as the learnt one was.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from pipeline.patterns.signature import Signature
from schemas.extraction import Span

_RUN = re.compile(r"[^\W_]+")
_MEMO_MAX = 64  # spellings of one stretch of fixed text: they differ in blanks only


def skeleton(token: str) -> str:
    """What holds a token together, without its letters and digits: `-- ::` of a time, `/` of a topic."""
    return _RUN.sub("", token)


@dataclass(frozen=True, slots=True)
class Edge:
    """One end of a place. `kind` says how it is found again:

    `slot`: the start (of a start edge) or end (of an end edge) of slot `index`.
    `fixed`: in the fixed text before slot `index`, at or after its `n`-th character that is no blank.
    `inside`: within slot `index`: after the literal `rest` (before it, for an end), or at the `n`-th run of
    letters and digits of a slot with the same `skeleton`; n is -1 where the edge splits a run.
    """

    kind: str
    index: int
    n: int = 0
    rest: str = ""
    skeleton: str = ""

    def to_json(self) -> list[Any]:
        parts: list[Any] = [self.kind[0], self.index]
        if self.kind == "fixed":
            parts.append(self.n)
        elif self.kind == "inside":
            parts += self.n, self.rest, self.skeleton
        return parts

    @classmethod
    def from_json(cls, parts: Sequence[Any]) -> Edge:
        kind = {"s": "slot", "f": "fixed", "i": "inside"}[parts[0]]
        return cls(kind, *parts[1:])


@dataclass(frozen=True, slots=True)
class Place:
    """From `start` to `end`. `barred` are the marks that a part of a slot ended at: it never holds one."""

    start: Edge
    end: Edge
    barred: str = ""
    _memo: dict[tuple[bool, str], int] = field(default_factory=dict, compare=False, repr=False)

    @property
    def whole(self) -> int:
        """The slot that the place is exactly; -1 when it is anything else."""
        plain = self.start.kind == self.end.kind == "slot" and self.start.index == self.end.index
        return self.start.index if plain else -1

    def locate(self, text: str, bounds: Sequence[int]) -> tuple[int, int] | None:
        """Start and end in a line of the pattern; None when a slot is not built as the learnt one was."""
        start = self._at(self.start, text, bounds, first=True)
        end = self._at(self.end, text, bounds, first=False)
        if start is None or end is None or start >= end:
            return None
        if self.barred and not set(self.barred).isdisjoint(text[start:end]):
            return None
        return start, end

    def _at(self, edge: Edge, text: str, bounds: Sequence[int], first: bool) -> int | None:
        at = 2 * edge.index
        if edge.kind == "slot":
            return bounds[at] if first else bounds[at + 1]
        if edge.kind == "inside":
            return _inside(edge, text[bounds[at] : bounds[at + 1]], bounds[at], first)
        before = bounds[at - 1] if edge.index else 0
        fixed = text[before : bounds[at] if at < len(bounds) else len(text)]
        offset = self._memo.get((first, fixed))
        if offset is None:
            offset = _offset(fixed, edge.n, first)
            if len(self._memo) < _MEMO_MAX:
                self._memo[first, fixed] = offset
        return before + offset

    def to_json(self) -> list[Any]:
        return [self.start.to_json(), self.end.to_json(), *([self.barred] if self.barred else [])]

    @classmethod
    def from_json(cls, parts: Sequence[Any]) -> Place:
        start, end = Edge.from_json(parts[0]), Edge.from_json(parts[1])
        return _whole(start.index) if start == end and start.kind == "slot" else cls(start, end, *parts[2:])


@lru_cache(maxsize=1024)
def _whole(index: int) -> Place:
    """Most values are a whole slot: one object serves all plans."""
    return Place(Edge("slot", index), Edge("slot", index))


def place(text: str, signature: Signature, span: Span) -> Place | None:
    """The place of a span; None when it is no span of the text, or begins or ends with a blank."""
    if not 0 <= span.start < span.end <= len(text):
        return None
    if text[span.start].isspace() or text[span.end - 1].isspace():
        return None
    bounds = signature.bounds
    start, end = _edge(text, bounds, span.start, first=True), _edge(text, bounds, span.end, first=False)
    if start == end and start.kind == "slot":
        return _whole(start.index)
    barred = _mark(text, span.start - 1, start) + _mark(text, span.end, end)
    inner = span.of(text)
    return Place(start, end, "".join(dict.fromkeys(char for char in barred if char not in inner)))


def _edge(text: str, bounds: Sequence[int], at: int, first: bool) -> Edge:
    """An edge at position `at`. A slot's own borders come first: they need no counting."""
    count = len(bounds) // 2
    for index in range(count):
        start, end = bounds[2 * index], bounds[2 * index + 1]
        if at == (start if first else end):
            return Edge("slot", index)
        if start < at < end:
            return _inner_edge(text[start:end], at - start, index, first)
        if at < start or (first and at == end and index + 1 == count):
            break
    index = next((i for i in range(count) if at <= bounds[2 * i]), count)
    before = bounds[2 * index - 1] if index else 0
    return Edge("fixed", index, sum(not char.isspace() for char in text[before:at]))


def _inner_edge(token: str, offset: int, index: int, first: bool) -> Edge:
    borders = [match.start() if first else match.end() for match in _RUN.finditer(token)]
    n = borders.index(offset) if offset in borders else -1
    return Edge("inside", index, n, token[:offset] if first else token[offset:], skeleton(token))


def _mark(text: str, at: int, edge: Edge) -> str:
    """The mark beside an edge inside a slot."""
    if edge.kind != "inside" or not 0 <= at < len(text):
        return ""
    char = text[at]
    return "" if char.isalnum() or char.isspace() else char


def _inside(edge: Edge, token: str, base: int, first: bool) -> int | None:
    rest = edge.rest
    if edge.n < 0 or any(char.isalpha() for char in rest):  # digits alone prove nothing: they vary
        if first and token.startswith(rest):
            return base + len(rest)
        if not first and token.endswith(rest):
            return base + len(token) - len(rest)
    if edge.n < 0 or skeleton(token) != edge.skeleton:
        return None
    match = [*_RUN.finditer(token)][edge.n]
    return base + (match.start() if first else match.end())


def _offset(fixed: str, n: int, first: bool) -> int:
    """Where the n-th character that is no blank begins (for a start), or the one before it ends."""
    seen = 0
    for at, char in enumerate(fixed):
        if char.isspace():
            continue
        if seen == n and first:
            return at
        seen += 1
        if seen == n and not first:
            return at + 1
    return len(fixed) if first else 0
