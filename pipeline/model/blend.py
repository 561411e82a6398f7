"""How the word of the rules and that of the model add up.

Both speak in log-odds: the rules by what they know of a candidate's form and surroundings, the model by the
logit of the field's name less that of "none". A field's log-odds are their weighted sum, fitted by logistic
regression on lines of systems that neither was made on; a decision's are the weighted sum of both
log-probabilities. So agreement raises the confidence, and where the two differ the surer one wins.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from schemas.extraction import Choice, FieldType, Tier

RULES_BOUND, MODEL_BOUND = 5.0, 8.0  # beyond these either is as sure as it can be
# The rest that the rules leave to all labels they did not choose.
REST_MIN = 1e-3


@dataclass(frozen=True, slots=True)
class Blend:
    """Weights of one kind of field."""

    shift: float
    rules: float
    model: float

    def of(self, rules: float, model: float) -> float:
        """The log-odds that a candidate is the field's value."""
        return (
            self.shift + self.rules * _within(rules, RULES_BOUND) + self.model * _within(model, MODEL_BOUND)
        )


@dataclass(frozen=True, slots=True)
class Judgement:
    """Weights of one decision."""

    rules: float
    model: float

    def of(self, said: Choice, answer: Mapping[str, float]) -> Choice:
        """The likeliest of the model's options, with its share as the confidence."""
        whole = _log_total(answer)
        scores = {label: self.model * (logit - whole) for label, logit in answer.items()}
        if said.label is not None:
            rest = max(REST_MIN, 1.0 - said.confidence) / max(1, len(scores) - 1)
            for label in scores:
                scores[label] += self.rules * math.log(said.confidence if label == said.label else rest)
        best = max(scores, key=lambda label: scores[label])
        confidence = math.exp(scores[best] - _log_total(scores))
        if said.label is None and confidence < ALONE:
            return Choice(confidence=confidence, tier=Tier.MODEL)
        return Choice(label=best, confidence=confidence, tier=Tier.MODEL)


# A decision that only the model has an opinion on is taken from this probability on.
ALONE = 0.6


@dataclass(frozen=True, slots=True)
class Weights:
    """All weights of one kind of model."""

    fields: Mapping[FieldType, Blend]
    other: Blend
    decisions: Mapping[str, Judgement]

    def field(self, kind: FieldType) -> Blend:
        return self.fields.get(kind, self.other)


# Fields: fitted on the lines of tests/acceptance, by conditional logit over a field's candidates and null.
TUNED = Weights(
    fields={FieldType.ASSET: Blend(1.34, 1.07, 0.42), FieldType.CODE: Blend(0.48, 0.65, 0.84)},
    other=Blend(0.0, 1.32, 0.41),
    decisions={
        "severity": Judgement(0.9, 0.45), "category": Judgement(0.9, 0.6), "action": Judgement(0.9, 0.45),
    },
)  # fmt: skip
# A model that was not tuned on the prompt knows little of it: it tips what the rules leave open, no more.
PLAIN = Weights(
    fields={},
    other=Blend(-0.3, 1.3, 0.15),
    decisions={name: Judgement(1.0, 0.1) for name in ("severity", "category", "action")},
)


def _within(value: float, bound: float) -> float:
    return max(-bound, min(bound, value))


def _log_total(scores: Mapping[str, float]) -> float:
    top = max(scores.values())
    return top + math.log(sum(math.exp(score - top) for score in scores.values()))
