"""How far a reader's confidence can be believed, and what it lets through: the second half of `andon eval`.

The calibration error is that of Naeini, Cooper and Hauskrecht, "Obtaining well calibrated probabilities using
Bayesian binning" (2015): the gap between confidence and share right, averaged over the answers. Bounds are
exact (bounds.py); each holds for the one threshold it stands beside. A threshold that is chosen *because* it
looks good here needs `andon model calibrate`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.fields.definition import Profile
from pipeline.model import bounds
from pipeline.model.calibrate import Collector, Curve, Evidence, Kind
from pipeline.model.evaluate import Labelled, written
from schemas.extraction import FieldValue, Verdict

EDGES = (
    0.5,
    0.6,
    0.7,
    0.8,
    0.9,
    0.95,
    0.98,
    1.0,
)  # finer where thresholds are set; the first bin is 0 to 0.5
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
CONFIDENCE = 0.95
_KINDS = (Kind.ALL, Kind.TYPE, Kind.DECISION)


@dataclass(frozen=True, slots=True)
class Bin:
    """Answers with a confidence in (`low`, `high`]: how many, how sure on average, which share is right."""

    low: float
    high: float
    n: int
    mean_confidence: float
    right: float

    @property
    def gap(self) -> float:
        return abs(self.mean_confidence - self.right)


def bins(evidence: Evidence) -> list[Bin]:
    """The bins that have an answer, from the least sure."""
    filled: dict[int, list[tuple[float, bool]]] = {}
    for _, confidence, right in evidence.answers:
        filled.setdefault(bisect_left(EDGES, confidence), []).append((confidence, right))
    return [_bin(index, filled[index]) for index in sorted(filled)]


def _bin(index: int, answers: Sequence[tuple[float, bool]]) -> Bin:
    n = len(answers)
    low = EDGES[index - 1] if index else 0.0
    mean = sum(confidence for confidence, _ in answers) / n
    return Bin(low, EDGES[index], n, mean, sum(right for _, right in answers) / n)


def calibration_error(found: Sequence[Bin]) -> float | None:
    """The expected calibration error, 0 to 1; None without an answer."""
    whole = sum(one.n for one in found)
    return sum(one.n * one.gap for one in found) / whole if whole else None


class Reliability:
    """Watches lines being read; `report` says how it went."""

    def __init__(self, profile: Profile, confidence_min: float) -> None:
        self._collector = Collector(profile)
        self._thresholds = sorted({*THRESHOLDS, confidence_min})
        self._lines = self._right = self._empty = self._filled = 0

    def see(self, row: Labelled, verdict: Verdict) -> None:
        self._collector.add(row, verdict)
        wrong = 0
        for name, wanted in row.fields.items():
            given = written(verdict.extraction.fields.get(name, FieldValue()), row.line)
            wrong += given != wanted
            self._empty += wanted is None
            self._filled += wanted is None and given is not None
        self._lines += 1
        self._right += not wrong

    def rates(self) -> dict[str, float | None]:
        """`false_fill_rate`: fields the line does not carry that were given a value, of all such fields.
        `line_exact`: lines of which every labelled field is right.
        """
        return {
            "false_fill_rate": _share(self._filled, self._empty),
            "line_exact": _share(self._right, self._lines),
        }

    def report(self) -> list[dict[str, Any]]:
        """An object for every field together, each field type and each decision.

        `accepted` counts lines as `andon model calibrate` does: with an answer accepted, and a wrong one.
        """
        return [
            {
                "kind": kind.value,
                "name": name,
                "n": len(evidence.answers),
                "calibration_error": _rounded(calibration_error(bins(evidence))),
                "bins": [_shown(one) for one in bins(evidence)],
                "accepted": list(self._accepted(Curve(evidence))),
            }
            for (kind, name), evidence in self._collector.groups.items()
            if kind in _KINDS
        ]

    def _accepted(self, curve: Curve) -> Iterator[dict[str, Any]]:
        for counts in map(curve.at, self._thresholds):
            yield {
                "threshold": counts.threshold,
                "accepted": counts.accepted,
                "errors": counts.errors,
                "error_rate": _share(counts.errors, counts.accepted),
                "upper": _rounded(bounds.upper(counts.errors, counts.accepted, CONFIDENCE)),
                "coverage": _share(counts.answers, curve.answers),
            }


def _shown(one: Bin) -> dict[str, Any]:
    return {
        "low": one.low,
        "high": one.high,
        "n": one.n,
        "mean_confidence": _rounded(one.mean_confidence),
        "right": _rounded(one.right),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None
