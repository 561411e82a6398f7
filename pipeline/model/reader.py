"""The reader with a model: rules and model look at the same candidates; their log-odds are added (`blend`).

Where the rules know nothing and the model is not sure either, the value is null and the decision None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Self

import structlog

from pipeline.fields import timestamp
from pipeline.fields.definition import Labels, Profile
from pipeline.model.blend import PLAIN, TUNED
from pipeline.model.decisions import choose_action
from pipeline.model.llama import LlamaRuntime
from pipeline.model.options import ModelConfig
from pipeline.model.prompt import NONE, Ask, Layout
from pipeline.model.rules import RulesReader, View, look
from pipeline.model.runtime import Runtime
from pipeline.model.scene import Option
from pipeline.model.settle import RULE_SCALE, settle
from schemas.errors import ModelOverflow
from schemas.extraction import Candidate, Choice, Extraction, FieldType, FieldValue, Span, Tier, Verdict

WORTH_ASKING = -5.0  # below this no answer of the model could make a candidate the field's value
LAYOUTS_KEPT = 8

log = structlog.get_logger("andon.model")


class ModelReader:
    """Reads with a runtime and the rules. Owned by one thread, like the runtime it closes."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._rules = RulesReader()
        self._weights = TUNED if runtime.tuned else PLAIN
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
            body = layout.body(text, rows(view), times(view))
            answers = self._answers(layout, body.tokens, body.asks)
        except ModelOverflow as error:
            log.warning("model.overflow", chars=len(text), reason=str(error))
            return replace(self._rules.verdict(view, labels), notes=(f"too long for the model: {error}",))
        notes = (
            ()
            if body.whole
            else ("a long line: the model saw its beginning and what stands around each candidate",)
        )
        return self._verdict(view, body.asks, answers, profile, labels, notes)

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
        self, view: View, asks: Sequence[Ask], answers: Sequence[Mapping[str, float]],
        profile: Profile, labels: Labels, notes: tuple[str, ...],
    ) -> Verdict:  # fmt: skip
        said = {ask.candidate: answer for ask, answer in zip(asks, answers, strict=True) if ask.candidate}
        told = {ask.decision: answer for ask, answer in zip(asks, answers, strict=True) if ask.decision}
        severity = self._decide("severity", view.opinion.severity, told)
        category = self._decide("category", view.opinion.category, told)
        return Verdict(
            extraction=Extraction(self._fields(view, said, profile), reader=self.name, tier=Tier.MODEL),
            severity=severity,
            category=category,
            action=self._decide("action", choose_action(category, labels), told),
            transition=view.opinion.transition,
            notes=notes,
        )

    def _fields(
        self, view: View, said: Mapping[Candidate, Mapping[str, float]], profile: Profile
    ) -> dict[str, FieldValue]:
        table = {
            name: [
                self._weighed(option, name, profile.fields[name].type, said.get(option.candidate))
                for option in options
            ]
            for name, options in view.table.items()
        }
        values = settle(view.seen.text, table, Tier.MODEL)
        asked = {name for answer in said.values() for name in answer}
        return {
            name: value if name in asked else replace(value, tier=Tier.RULE) for name, value in values.items()
        }

    def _weighed(
        self, option: Option, name: str, kind: FieldType, answer: Mapping[str, float] | None
    ) -> Option:
        """The blended score; the rules' alone, on their own scale, where the model was not asked."""
        if answer is None or name not in answer:
            return replace(option, score=RULE_SCALE.of(option.score))
        blend = self._weights.field(kind)
        return replace(option, score=blend.of(option.score, answer[name] - answer[NONE]))

    def _decide(self, question: str, said: Choice, told: Mapping[str, Mapping[str, float]]) -> Choice:
        answer = told.get(question)
        return said if answer is None else self._weights.decisions[question].of(said, answer)


def times(view: View) -> list[Span]:
    """The spans that are shown to the model as a time: every written time, and the epoch that was picked."""
    picked = timestamp.pick(view.seen.text, view.seen.candidates)
    return sorted({*view.seen.line.taken, *([picked.span] if picked is not None else [])})


def rows(view: View) -> dict[Candidate, list[str]]:
    """The candidates worth asking the model about, in line order, each with the fields it may be."""
    asked: dict[Candidate, list[str]] = {}
    for name, options in view.table.items():
        for option in options:
            if option.score > WORTH_ASKING and FieldType.TIMESTAMP not in option.candidate.types:
                asked.setdefault(option.candidate, []).append(name)
    return dict(sorted(asked.items(), key=lambda item: item[0].span))
