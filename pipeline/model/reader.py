"""The reader with a model: rules and model look at the same candidates, and their log-odds are added.

The model is small and not tuned, so its word counts for less than a rule's. The weights below were fitted by
logistic regression (fields) and by log-loss (decisions) on lines of our own systems: with the model's term
the log-loss of a candidate falls by 6 %, that of a decision by 2 to 5 %. Where both agree the confidence
rises; where the rules know nothing and the model is not sure either, the value is null and the decision None.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Self

import structlog

from pipeline.fields.definition import Labels, Profile
from pipeline.model.decisions import choose_action
from pipeline.model.llama import LlamaRuntime
from pipeline.model.options import ModelConfig
from pipeline.model.prompt import NONE, Ask, Layout
from pipeline.model.rules import RulesReader, View, look
from pipeline.model.runtime import Runtime
from pipeline.model.scene import Option
from pipeline.model.settle import RULE_SCALE, settle
from schemas.errors import ModelOverflow
from schemas.extraction import Candidate, Choice, Extraction, FieldType, FieldValue, Tier, Verdict

# score = SHIFT + RULE_WEIGHT * rules + MODEL_WEIGHT * (logit of the field - logit of none)
SHIFT, RULE_WEIGHT, MODEL_WEIGHT = -0.3, 1.3, 0.3
RULES_BOUND = 5.0  # rule scores beyond this are equally sure
WORTH_ASKING = -5.0  # below this no answer of the model could make a candidate the field's value
DECISION_WEIGHT = 0.2
# A decision that only the model has an opinion on is taken from this probability on.
MODEL_ALONE = 0.6
LAYOUTS_KEPT = 8

log = structlog.get_logger("andon.model")


class ModelReader:
    """Reads with a runtime and the rules. Owned by one thread, like the runtime it closes."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._rules = RulesReader()
        self._layouts: dict[str, Layout] = {}

    @classmethod
    def open(cls, config: ModelConfig) -> Self:
        """Loads the configured model. Raises ModelMissing with the fix."""
        return cls(LlamaRuntime.open(config))

    @property
    def name(self) -> str:
        return f"model:{self._runtime.digest[:12]}"

    def read(self, texts: Sequence[str], profile: Profile, labels: Labels) -> list[Verdict]:
        return [self._read(text, profile, labels) for text in texts]

    def close(self) -> None:
        self._runtime.close()

    def _read(self, text: str, profile: Profile, labels: Labels) -> Verdict:
        view = look(text, profile, labels)
        try:
            layout = self._layout(profile, labels)
            body = layout.body(text, _rows(view))
            answers = self._answers(layout, body.tokens, body.asks)
        except ModelOverflow as error:
            log.warning("model.overflow", chars=len(text), reason=str(error))
            return replace(self._rules.verdict(view, labels), notes=(f"too long for the model: {error}",))
        notes = (
            ()
            if body.whole
            else ("a long line: the model saw its beginning and what stands around each candidate",)
        )
        return self._verdict(view, body.asks, answers, labels, notes)

    def _layout(self, profile: Profile, labels: Labels) -> Layout:
        key = profile.model_dump_json() + labels.model_dump_json()
        layout = self._layouts.pop(key, None) or Layout(profile, labels, self._runtime.tokens)
        self._layouts[key] = layout
        while len(self._layouts) > LAYOUTS_KEPT:
            del self._layouts[next(iter(self._layouts))]
        return layout

    def _answers(self, layout: Layout, tokens: Sequence[int], asks: Sequence[Ask]) -> list[dict[str, float]]:
        """For each ask, the logit of each of its options."""
        if not asks:
            return []
        options = [layout.option_tokens(ask) for ask in asks]
        every = sorted({token for listed in options for token in listed})
        rows = self._runtime.score(layout.head, tokens, [ask.position for ask in asks], every)
        column = {token: index for index, token in enumerate(every)}
        return [
            {option: row[column[token]] for option, token in zip(ask.options, listed, strict=True)}
            for ask, listed, row in zip(asks, options, rows, strict=True)
        ]

    def _verdict(
        self, view: View, asks: Sequence[Ask], answers: Sequence[Mapping[str, float]], labels: Labels,
        notes: tuple[str, ...],
    ) -> Verdict:  # fmt: skip
        said = {ask.candidate: answer for ask, answer in zip(asks, answers, strict=True) if ask.candidate}
        told = {ask.decision: answer for ask, answer in zip(asks, answers, strict=True) if ask.decision}
        severity = _decide(view.opinion.severity, told.get("severity"))
        category = _decide(view.opinion.category, told.get("category"))
        return Verdict(
            extraction=Extraction(self._fields(view, said), reader=self.name, tier=Tier.MODEL),
            severity=severity,
            category=category,
            action=_decide(choose_action(category, labels), told.get("action")),
            transition=view.opinion.transition,
            notes=notes,
        )

    def _fields(self, view: View, said: Mapping[Candidate, Mapping[str, float]]) -> dict[str, FieldValue]:
        table = {
            name: [_weighed(option, name, said.get(option.candidate)) for option in options]
            for name, options in view.table.items()
        }
        values = settle(view.seen.text, table, Tier.MODEL)
        asked = {name for answer in said.values() for name in answer}
        return {
            name: value if name in asked else replace(value, tier=Tier.RULE) for name, value in values.items()
        }


def _rows(view: View) -> dict[Candidate, list[str]]:
    """The candidates worth asking the model about, in line order, each with the fields it may be."""
    rows: dict[Candidate, list[str]] = {}
    for name, options in view.table.items():
        for option in options:
            if option.score > WORTH_ASKING and FieldType.TIMESTAMP not in option.candidate.types:
                rows.setdefault(option.candidate, []).append(name)
    return dict(sorted(rows.items(), key=lambda item: item[0].span))


def _weighed(option: Option, name: str, answer: Mapping[str, float] | None) -> Option:
    """The rules' score with the model's added; the rules' alone, on their own scale, where the model was not
    asked.
    """
    if answer is None or name not in answer:
        return replace(option, score=RULE_SCALE.of(option.score))
    rules = max(-RULES_BOUND, min(RULES_BOUND, option.score))
    return replace(option, score=SHIFT + RULE_WEIGHT * rules + MODEL_WEIGHT * (answer[name] - answer[NONE]))


def _decide(rules: Choice, answer: Mapping[str, float] | None) -> Choice:
    """The likelier label of the rules' choice, weighed by its confidence, and the model's, weighed little."""
    if answer is None:
        return rules
    top = max(answer.values())
    scores = {label: DECISION_WEIGHT * (logit - top) for label, logit in answer.items()}
    if rules.label is not None:
        rest = max(1e-3, 1.0 - rules.confidence) / max(1, len(scores) - 1)
        for label in scores:
            scores[label] += math.log(rules.confidence if label == rules.label else rest)
    whole = sum(math.exp(score) for score in scores.values())
    best = max(scores, key=lambda label: scores[label])
    confidence = math.exp(scores[best]) / whole
    if rules.label is None and confidence < MODEL_ALONE:
        return Choice(confidence=confidence, tier=Tier.MODEL)
    return Choice(label=best, confidence=confidence, tier=Tier.MODEL)
