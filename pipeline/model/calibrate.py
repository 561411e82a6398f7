"""Which confidence may leave without a person, so that what leaves wrong stays under a rate, provably.

Method: fixed-sequence testing of Angelopoulos, Bates, Candès, Jordan and Lei, "Learn then Test: Calibrating
predictive algorithms to achieve risk control" (2021), with the exact binomial p-value, on the selective risk
of Geifman and El-Yaniv, "Selective classification for deep neural networks" (2017). The thresholds of GRID,
fixed before any data, are tested from the strictest down, each at the full confidence. The first that fails
ends it, and the last that passed is chosen. No correction for many thresholds is due: for a wrong one to be
chosen, the first wrong one in the order has to pass, and the chance of that is 1 - confidence at most. Unlike
the bounds of Bates et al., "Distribution-free, risk-controlling prediction sets" (2021), it does not need a
risk that only grows as the threshold falls.

The unit is the line: it errs when any value accepted from it is wrong, since values of one line are not
independent. What is promised holds for lines drawn like those measured (exchangeable), for the same reader,
and for each group by itself: of twenty thresholds certified at 95 %, expect one to be worse than it says.

Thresholds that too few lines reach are passed over: not even a faultless record could pass there, or one
unlucky line would end the search. Which ones is decided by the confidences, never by the labels, and costs
nothing where a stricter threshold is not the worse one. Where it is, the proof does not hold to the letter;
the worst such cases that could be built stayed under the stated doubt, as counts are whole numbers and the
test rounds against us.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pipeline.fields.definition import Labels, Profile
from pipeline.model import bounds
from pipeline.model.evaluate import Labelled, written
from pipeline.model.runtime import Reader
from schemas.extraction import FieldValue, Verdict

# Steps of 2 to 5 % where confidences are many, finer where one step is a large part of the doubt left.
GRID = (
    *(0.999, 0.998, 0.996, 0.994, 0.992, 0.99, 0.985, 0.98, 0.975, 0.97, 0.96, 0.95),
    *(0.94, 0.92, 0.9, 0.88, 0.86, 0.84, 0.82, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.4, 0.3),
)
# The search starts where this share of the lines is accepted. Earlier, where an error or two among the first
# lines end it, bad luck would; later, a reader that is good for only a part of its lines would get nothing.
START = 0.25
PLACES = 4  # plans keep confidences to this many decimals: a value counts as it will once a plan reads it


class Kind(StrEnum):
    """What a group of answers has in common."""

    ALL = "all"
    TYPE = "type"
    FIELD = "field"
    DECISION = "decision"
    PATTERN = "pattern"


class Status(StrEnum):
    """How a search for a threshold ended."""

    CERTIFIED = "certified"
    TOO_FEW = "too_few"
    TOO_WRONG = "too_wrong"


@dataclass(frozen=True, slots=True)
class Goal:
    """At least `precision` of what is accepted is right, with `confidence`; both in (0, 1)."""

    precision: float
    confidence: float = 0.95

    @property
    def risk(self) -> float:
        # Rounded: 1 - 0.95 is a little more than 0.05, and would ask for another line or forgive one.
        return round(1.0 - self.precision, 12)

    @property
    def lines(self) -> int:
        """The fewest lines, all right, that prove it. Raises ValueError when no number does."""
        found = bounds.needed(self.risk, self.confidence)
        if found is None:
            raise ValueError(f"no number of lines proves a precision of {self.precision}")
        return found


@dataclass(slots=True)
class Evidence:
    """The answers of one group: per line (by number) each answer's confidence and whether it is right.

    `missed` counts what the line carries and the reader took for absent: no threshold on answers finds those.
    """

    answers: list[tuple[int, float, bool]] = field(default_factory=list)
    missed: int = 0

    def add(self, line: int, wanted: str | None, given: str | None, confidence: float) -> None:
        if given is not None:
            self.answers.append((line, round(confidence, PLACES), given == wanted))
        elif wanted is not None:
            self.missed += 1


@dataclass(frozen=True, slots=True)
class Counts:
    """What is accepted at `threshold`: lines with an accepted answer, how many of those have a wrong one, and
    the accepted answers.
    """

    threshold: float
    accepted: int
    errors: int
    answers: int


class Curve:
    """A group's lines, counted at any threshold."""

    def __init__(self, evidence: Evidence) -> None:
        surest: dict[int, float] = {}
        surest_wrong: dict[int, float] = {}
        for line, confidence, right in evidence.answers:
            surest[line] = max(confidence, surest.get(line, 0.0))
            if not right:
                surest_wrong[line] = max(confidence, surest_wrong.get(line, 0.0))
        self._accepted = sorted(surest.values())
        self._wrong = sorted(surest_wrong.values())
        self._answers = sorted(confidence for _, confidence, _ in evidence.answers)
        self.lines, self.answers = len(surest), len(evidence.answers)

    def at(self, threshold: float) -> Counts:
        return Counts(
            threshold,
            self.lines - bisect_left(self._accepted, threshold),
            len(self._wrong) - bisect_left(self._wrong, threshold),
            self.answers - bisect_left(self._answers, threshold),
        )


def certify(curve: Curve, goal: Goal) -> tuple[Status, Counts]:
    """The loosest threshold that is proved to keep the goal, by fixed-sequence testing from the strictest.

    Of thresholds that accept the same answers it is the strictest: nothing was seen between them. When there
    is none: the strictest that was tested, which had too many errors, or the loosest, which too few lines
    reach for any proof.
    """
    loosest = curve.at(GRID[-1])
    chosen, least = None, max(goal.lines, START * loosest.accepted)
    for counts in map(curve.at, GRID):
        if counts.accepted < least:
            continue
        if bounds.tail(counts.errors, counts.accepted, goal.risk) > 1.0 - goal.confidence:
            return (Status.CERTIFIED, chosen) if chosen is not None else (Status.TOO_WRONG, counts)
        if chosen is None or counts.answers > chosen.answers:
            chosen = counts
    return (Status.CERTIFIED, chosen) if chosen is not None else (Status.TOO_FEW, loosest)


@dataclass(frozen=True, slots=True)
class Finding:
    """One group's result. `counts` are those at the certified threshold, else at the one in force; `settled`
    are those that settled the search, see `certify`.

    `needed` accepted lines would prove it with the errors of `settled`; None when more of them would not,
    since they err more often than asked.
    """

    kind: Kind
    name: str
    status: Status
    counts: Counts
    settled: Counts
    lines: int
    answers: int
    missed: int
    upper: float
    needed: int | None

    @property
    def threshold(self) -> float | None:
        return self.counts.threshold if self.status is Status.CERTIFIED else None

    def report(self) -> dict[str, Any]:
        """For JSON. `n` lines have an answer, `accepted` of them one at `at` or above, `errors` a wrong one
        among those; `coverage` is the share of answers accepted; `upper` bounds the true error rate.
        """
        counts = self.counts
        return {
            "kind": self.kind.value,
            "name": self.name,
            "status": self.status.value,
            "threshold": self.threshold,
            "at": counts.threshold,
            "n": self.lines,
            "accepted": counts.accepted,
            "errors": counts.errors,
            "error_rate": round(counts.errors / counts.accepted, 6) if counts.accepted else None,
            "upper": round(self.upper, 6),
            "coverage": round(counts.answers / self.answers, 4) if self.answers else None,
            "missed": self.missed,
            "needed": self.needed,
        }


Groups = dict[tuple[Kind, str], Evidence]
_EVERY = (Kind.ALL, "every field")


class Collector:
    """Sorts the answers of lines that were read into the groups they belong to.

    Only fields that both the labels and the profile have count. `pattern_of` names a line's pattern.
    """

    def __init__(self, profile: Profile, pattern_of: Callable[[str], str] | None = None) -> None:
        self._profile = profile
        self._pattern_of = pattern_of
        self._groups: Groups = {_EVERY: Evidence()}
        self._lines = 0

    @property
    def groups(self) -> Groups:
        """What was collected so far, by kind."""
        order = list(Kind)
        return dict(sorted(self._groups.items(), key=lambda item: order.index(item[0][0])))

    def add(self, row: Labelled, verdict: Verdict) -> None:
        shared = [_EVERY]
        if self._pattern_of is not None:
            shared.append((Kind.PATTERN, self._pattern_of(row.line)))
        for name, config in self._profile.fields.items():
            if name in row.fields:
                value = verdict.extraction.fields.get(name, FieldValue())
                groups = [*shared, (Kind.TYPE, config.type.value), (Kind.FIELD, name)]
                self._sort(groups, row.fields[name], written(value, row.line), value.confidence)
        for name, wanted, choice in (
            ("severity", row.severity, verdict.severity),
            ("category", row.category, verdict.category),
        ):
            if wanted is not None:
                self._sort([(Kind.DECISION, name)], wanted, choice.label, choice.confidence)
        self._lines += 1

    def _sort(
        self, groups: list[tuple[Kind, str]], wanted: str | None, given: str | None, confidence: float
    ) -> None:
        for group in groups:
            self._groups.setdefault(group, Evidence()).add(self._lines, wanted, given, confidence)


def collect(
    rows: Iterable[Labelled],
    reader: Reader,
    profile: Profile,
    labels: Labels,
    *,
    pattern_of: Callable[[str], str] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Groups:
    """Reads every line, and gives the answers by group. See Collector."""
    collector = Collector(profile, pattern_of)
    for done, row in enumerate(rows, 1):
        collector.add(row, reader.read([row.line], profile, labels)[0])
        if progress is not None:
            progress(done)
    return collector.groups


def find(groups: Groups, goal: Goal, in_force: Callable[[Kind, str], float]) -> list[Finding]:
    """A finding for each group. `in_force` is the threshold that holds for a group today."""
    return [_find(kind, name, evidence, goal, in_force) for (kind, name), evidence in groups.items()]


def _find(
    kind: Kind, name: str, evidence: Evidence, goal: Goal, in_force: Callable[[Kind, str], float]
) -> Finding:
    curve = Curve(evidence)
    status, settled = certify(curve, goal)
    counts = settled if status is Status.CERTIFIED else curve.at(in_force(kind, name))
    return Finding(
        kind,
        name,
        status,
        counts,
        settled,
        curve.lines,
        curve.answers,
        evidence.missed,
        bounds.upper(counts.errors, counts.accepted, goal.confidence),
        _needed(status, settled, goal),
    )


def _needed(status: Status, settled: Counts, goal: Goal) -> int | None:
    if status is Status.TOO_FEW:
        return goal.lines
    if settled.errors >= goal.risk * settled.accepted:
        return None
    return bounds.needed(goal.risk, goal.confidence, settled.errors)
