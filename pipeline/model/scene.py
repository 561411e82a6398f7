"""A line as the rules see it: its candidates, and what stands around each of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pipeline.fields.line import Line
from schemas.extraction import Candidate, FieldType

NEVER = -9.0


# G-code and its echo: numbers are commands (RULES Q14), tokens no codes.
_ECHO = re.compile(r"\b[GMN]\d{1,4}\b(?:\s[GMXYZEFST]-?\d)|(?:sen[dt]|tx)\W{1,3}[GMN]\d", re.IGNORECASE)


@dataclass(frozen=True)
class Scene:
    """A line with its candidates, as every rule sees it."""

    text: str
    line: Line
    candidates: Sequence[Candidate]

    @cached_property
    def is_echo(self) -> bool:
        return _ECHO.search(self.text) is not None

    def before(self, candidate: Candidate, length: int = 24) -> str:
        return self.text[max(0, candidate.span.start - length) : candidate.span.start]

    def after(self, candidate: Candidate, length: int = 16) -> str:
        return self.text[candidate.span.end : candidate.span.end + length]

    def untimed(self, end: int) -> str:
        """The text before `end` without the times in it."""
        kept, at = [], 0
        for span in self.line.taken:
            if span.end > end:
                break
            kept.append(self.text[at : span.start])
            at = span.end
        return "".join([*kept, self.text[at:end]])

    def label(self, candidate: Candidate) -> str:
        """The words that say what the candidate is: its key where one is written with `=` or in quotes, else
        the prose before it.
        """
        label = self.line.label(candidate.span.start)
        pair = self.line.pair_at.get(candidate.span.start)
        if pair is None or not label.rstrip(" \t\"'=").endswith(pair.key):
            return label
        written = self.text[pair.key_span.end : candidate.span.start]
        return pair.key if "=" in written or written[:1] in "\"'" else label


@dataclass(frozen=True, slots=True)
class Option:
    """A candidate for a field, with its log-odds by the rules."""

    candidate: Candidate
    score: float


def scene(text: str, candidates: Sequence[Candidate]) -> Scene:
    times = [c.span for c in candidates if FieldType.TIMESTAMP in c.types and not c.form.startswith("epoch")]
    return Scene(text, Line(text, times), candidates)
