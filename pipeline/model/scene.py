"""A line as the rules see it: its candidates, and what stands around each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.fields.line import Line
from schemas.extraction import Candidate, FieldType

NEVER = -9.0


@dataclass(frozen=True)
class Scene:
    """A line with its candidates, as every rule sees it."""

    text: str
    line: Line
    candidates: Sequence[Candidate]

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
        return self.line.label(candidate.span.start)


@dataclass(frozen=True, slots=True)
class Option:
    """A candidate for a field, with its log-odds by the rules."""

    candidate: Candidate
    score: float


def scene(text: str, candidates: Sequence[Candidate]) -> Scene:
    times = [c.span for c in candidates if FieldType.TIMESTAMP in c.types and not c.form.startswith("epoch")]
    return Scene(text, Line(text, times), candidates)
