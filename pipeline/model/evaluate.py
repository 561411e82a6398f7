"""`andon eval`: how well a reader reads labelled lines, field by field (the JSON object of DESIGN §7).

What is scored is the written span: a *bad* value still has its span, so it counts as read when the label has
that text.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from pipeline.fields.definition import Labels, Profile
from pipeline.model.runtime import Reader
from schemas.errors import EvalError
from schemas.extraction import FieldValue, Tier, Verdict


class Labelled(BaseModel):
    """One labelled line. A field that is not listed is not scored; null means the line does not carry it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    line: str
    fields: dict[str, str | None]
    id: str = ""
    source: str = ""
    severity: str | None = None
    category: str | None = None


@dataclass(slots=True)
class Score:
    """Counts of one field. `present` labels carry a value; `found` are right; the wrong ones are of three
    kinds.
    """

    n: int = 0
    exact: int = 0
    present: int = 0
    found: int = 0
    filled: int = 0
    false_fill: int = 0
    false_null: int = 0
    wrong_span: int = 0

    def add(self, wanted: str | None, given: str | None) -> None:
        self.n += 1
        self.exact += wanted == given
        self.filled += given is not None
        if wanted is None:
            self.false_fill += given is not None
            return
        self.present += 1
        self.found += wanted == given
        self.false_null += given is None
        self.wrong_span += given is not None and wanted != given

    @property
    def f1(self) -> float | None:
        """Harmonic mean of precision and recall over written values; None when there was nothing to find or
        found.
        """
        total = self.filled + self.present
        return round(2 * self.found / total, 4) if total else None

    def report(self) -> dict[str, Any]:
        return {
            "n": self.n,
            "exact": self.exact,
            "false_fill": self.false_fill,
            "false_null": self.false_null,
            "wrong_span": self.wrong_span,
            "f1": self.f1,
        }


@dataclass(slots=True)
class _Sums:
    fields: dict[str, Score] = field(default_factory=dict)
    ungrounded: int = 0
    accepted: int = 0
    accepted_right: int = 0
    decidable: int = 0
    severity: Score = field(default_factory=Score)
    category: Score = field(default_factory=Score)


def load(path: Path) -> list[Labelled]:
    """The labelled lines of a JSONL file. Raises EvalError naming `path:line` for whatever is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EvalError(f"{path}: cannot be read: {error}") from error
    # JSON Lines are split at newlines only: splitlines() would also split at U+2028 and others inside a
    # string.
    rows = [_row(path, number, raw) for number, raw in enumerate(text.split("\n"), 1) if raw.strip()]
    if not rows:
        raise EvalError(f"{path}: no labelled line in it")
    return rows


def _row(path: Path, number: int, raw: str) -> Labelled:
    try:
        return Labelled.model_validate(json.loads(raw))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "object"
        raise EvalError(f"{path}:{number}: {where}: {first['msg']}") from error
    except (ValueError, RecursionError) as error:
        raise EvalError(f"{path}:{number}: not a JSON object: {error}") from error


def written(value: FieldValue, text: str) -> str | None:
    """The text of a value's span; None for a value that has none or of which the reader is unsure."""
    if value.span is None:
        return None
    return value.span.of(text)


def evaluate(
    rows: Sequence[Labelled],
    reader: Reader,
    profile: Profile,
    labels: Labels,
    *,
    confidence_min: float,
    predictions: Callable[[Mapping[str, object]], None] | None = None,
    seen: Callable[[Labelled, Verdict], None] | None = None,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Reads every line, and gives the object of DESIGN §7.

    Fields of the labels that the profile does not have are scored as null; `auto` tells what would pass
    without a person: the share of lines' filled fields read with the profile's confidence for that field,
    else `confidence_min`, or more, and how many of those are right.
    """
    sums, began, model_reads = _Sums(), time.monotonic(), 0
    for done, (row, verdict) in enumerate(_read(rows, reader, profile, labels), 1):
        model_reads += verdict.extraction.tier is Tier.MODEL
        _score(sums, row, verdict, lambda name: profile.confidence_min(name, confidence_min))
        if seen is not None:
            seen(row, verdict)
        if predictions is not None:
            predictions(prediction(row, verdict))
        if progress is not None:
            progress(done)
    return _report(sums, len(rows), model_reads, time.monotonic() - began)


def _read(
    rows: Iterable[Labelled], reader: Reader, profile: Profile, labels: Labels
) -> Iterator[tuple[Labelled, Verdict]]:
    for row in rows:
        yield row, reader.read([row.line], profile, labels)[0]


def _score(sums: _Sums, row: Labelled, verdict: Verdict, confidence_min: Callable[[str], float]) -> None:
    for name, wanted in row.fields.items():
        value = verdict.extraction.fields.get(name, FieldValue())
        given = written(value, row.line)
        sums.fields.setdefault(name, Score()).add(wanted, given)
        sums.ungrounded += given is not None and given not in row.line
        if wanted is None and given is None:
            continue  # an absent field that is read as absent needs nobody
        sums.decidable += 1
        if value.confidence >= confidence_min(name):
            sums.accepted += 1
            sums.accepted_right += wanted == given
    if row.severity is not None:
        sums.severity.add(row.severity, verdict.severity.label)
    if row.category is not None:
        sums.category.add(row.category, verdict.category.label)


def _report(sums: _Sums, lines: int, model_reads: int, seconds: float) -> dict[str, Any]:
    scores = sums.fields.values()
    return {
        "lines": lines,
        "fields": {name: score.report() for name, score in sums.fields.items()},
        "micro_exact": _share(sum(s.exact for s in scores), sum(s.n for s in scores)),
        "nonnull_exact": _share(sum(s.found for s in scores), sum(s.present for s in scores)),
        "ungrounded": sums.ungrounded,
        "model_reads": model_reads,
        "seconds": round(seconds, 3),
        "auto": {
            "coverage": _share(sums.accepted, sums.decidable),
            "precision": _share(sums.accepted_right, sums.accepted),
        },
        "severity_accuracy": _share(sums.severity.exact, sums.severity.n),
        "category_accuracy": _share(sums.category.exact, sums.category.n),
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def prediction(row: Labelled, verdict: Verdict) -> dict[str, object]:
    """What was read from one line, in the shape of the labels, with confidence and tier beside each field."""
    return {
        "id": row.id,
        "line": row.line,
        "fields": {
            name: {
                "value": written(value, row.line),
                "span": [value.span.start, value.span.end] if value.span is not None else None,
                "null": value.null.value if value.null is not None else None,
                "confidence": round(value.confidence, 4),
                "tier": value.tier.value,
            }
            for name, value in verdict.extraction.fields.items()
        },
        "severity": verdict.severity.label,
        "category": verdict.category.label,
        "reader": verdict.extraction.reader,
    }
