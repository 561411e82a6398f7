"""What is taught about a pattern: its plan, the decisions, and how far both are trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pipeline.patterns.plan import Plan
from schemas.extraction import Choice, Extraction, Tier, Transition, Verdict

PERSON = "person:"  # what people taught is never overwritten by a reader, and never evicted


class Trust(StrEnum):
    """Provisional: too few lines were read. Trusted. Disputed: readings disagree, so a person is asked."""

    PROVISIONAL = "provisional"
    TRUSTED = "trusted"
    DISPUTED = "disputed"


@dataclass(frozen=True, slots=True)
class Lesson:
    """What one pattern and variant means. `agreed` counts the readings that agree with it.

    `unsure` names the fields and decisions the readings could not settle. `clears` is the cause that lines of
    this pattern return to normal, when somebody said so. `checked` are digests of the lines it was read from:
    the next check wants another. They are not stored: after a restart a line may be read once more.
    """

    plan: Plan
    severity: Choice = field(default_factory=Choice)
    category: Choice = field(default_factory=Choice)
    action: Choice = field(default_factory=Choice)
    transition: Transition = Transition.NONE
    clears: str | None = None
    trust: Trust = Trust.PROVISIONAL
    agreed: int = 1
    taught_by: str = ""
    unsure: tuple[str, ...] = ()
    checked: frozenset[bytes] = frozenset()

    @property
    def by_person(self) -> bool:
        return self.taught_by.startswith(PERSON)

    def verdict(self, extraction: Extraction) -> Verdict:
        """The taught decisions for one line, as a reader would have given them."""
        return Verdict(extraction, self.severity, self.category, self.action, self.transition)

    def says_the_same(self, other: Lesson) -> bool:
        """Whether every line would come out the same: then only the trust has to be written."""
        return (
            self.plan == other.plan
            and self.decisions() == other.decisions()
            and (self.taught_by, self.unsure) == (other.taught_by, other.unsure)
        )

    def decisions(self) -> dict[str, Any]:
        """Everything but the plan and the trust, JSON-ready."""
        row: dict[str, Any] = {
            name: _choice_to_json(choice)
            for name, choice in (
                ("severity", self.severity),
                ("category", self.category),
                ("action", self.action),
            )
        }
        row["transition"] = str(self.transition)
        if self.clears is not None:
            row["clears"] = self.clears
        if self.unsure:
            row["unsure"] = list(self.unsure)
        return row

    @classmethod
    def from_json(
        cls, plan: Mapping[str, Any], decisions: Mapping[str, Any], trust: str, agreed: int, taught_by: str
    ) -> Lesson:
        """From what `Plan.to_json` and `decisions` wrote. Raises KeyError or ValueError for anything else."""
        return cls(
            Plan.from_json(plan),
            _choice_from_json(decisions["severity"]),
            _choice_from_json(decisions["category"]),
            _choice_from_json(decisions["action"]),
            Transition(decisions["transition"]),
            decisions.get("clears"),
            Trust(trust),
            agreed,
            taught_by,
            tuple(decisions.get("unsure", ())),
        )


@dataclass(frozen=True, slots=True)
class Taught:
    """A lesson as it stands in the book. `version` counts the plans this pattern and variant had."""

    lesson: Lesson
    version: int
    taught_at_us: int

    @property
    def plan(self) -> Plan:
        return self.lesson.plan

    @property
    def trust(self) -> Trust:
        return self.lesson.trust


def _choice_to_json(choice: Choice) -> dict[str, Any]:
    row: dict[str, Any] = {
        "label": None if choice.label is None else str(choice.label),
        "confidence": round(choice.confidence, 4),
        "tier": str(choice.tier),
    }
    if choice.rule is not None:
        row["rule"] = choice.rule
    return row


def _choice_from_json(row: Mapping[str, Any]) -> Choice:
    return Choice(row["label"], row["confidence"], Tier(row["tier"]), row.get("rule"))
