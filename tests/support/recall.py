"""How often the right span of a labelled line is among its candidates.

A labelled line is `{"line", "fields": {name: span or null}}`; fields it does not name are null. A candidate
counts when its text is the labelled one and its type (and unit, for quantities) allows the field.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.config.builtins import builtins
from pipeline.fields import Profile, candidates
from pipeline.fields.quantity import fits
from schemas.extraction import Candidate, FieldType


def machine_log() -> Profile:
    """The built-in profile."""
    return Profile(**builtins()["profiles"]["machine-log"])


def labelled(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


@dataclass
class Recall:
    """`found` and `wanted` by field; `missed` as (line, field, span); candidates counted over all lines."""

    found: Counter[str] = field(default_factory=Counter)
    wanted: Counter[str] = field(default_factory=Counter)
    missed: list[tuple[str, str, str]] = field(default_factory=list)
    lines: int = 0
    candidates: int = 0

    def of(self, name: str) -> float:
        return self.found[name] / self.wanted[name]

    @property
    def total(self) -> float:
        return self.found.total() / self.wanted.total()

    @property
    def candidates_a_line(self) -> float:
        return self.candidates / self.lines


def measure(lines: Iterable[dict[str, Any]], profile: Profile) -> Recall:
    recall = Recall()
    for labels in lines:
        text = labels["line"]
        offered = candidates(text, profile)
        recall.lines += 1
        recall.candidates += len(offered)
        for name, span in labels["fields"].items():
            if span is not None and name in profile.fields:
                recall.wanted[name] += 1
                if any(_is_value(text, candidate, span, name, profile) for candidate in offered):
                    recall.found[name] += 1
                else:
                    recall.missed.append((text, name, span))
    return recall


def _is_value(text: str, candidate: Candidate, span: str, name: str, profile: Profile) -> bool:
    config = profile.fields[name]
    if candidate.span.of(text) != span or config.type not in candidate.types:
        return False
    return config.type is not FieldType.QUANTITY or fits(candidate, name, config)
