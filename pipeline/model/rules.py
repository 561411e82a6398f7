"""The reader that needs no model: the lowest tier, and the second opinion beside a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.fields import candidates
from pipeline.fields.definition import Labels, Profile
from pipeline.model.decisions import Opinion, choose_action, opinion
from pipeline.model.meaning import understand
from pipeline.model.scene import Option, Scene, scene
from pipeline.model.settle import RULE_SCALE, settle
from pipeline.model.weigh import weigh
from schemas.extraction import Choice, Extraction, FieldType, Tier, Verdict

VERSION = "1"


@dataclass(frozen=True)
class View:
    """What the rules see in a line: its candidates, each field's options, and an opinion on the decisions."""

    seen: Scene
    table: dict[str, list[Option]]
    opinion: Opinion


def look(text: str, profile: Profile, labels: Labels) -> View:
    seen = scene(text, candidates(text, profile))
    table = weigh(seen, profile)
    coded = any(
        options and options[0].score > 0
        for name, options in table.items()
        if profile.fields[name].type is FieldType.CODE
    )
    sentinel = any(
        option.candidate.bad and option.score > 0 for options in table.values() for option in options
    )
    return View(seen, table, opinion(understand(text), labels, sentinel=sentinel, coded=coded))


class RulesReader:
    """Chooses among the candidates by words, units, forms and places. Every value's tier is RULE."""

    @property
    def name(self) -> str:
        return f"rules:{VERSION}"

    def read(self, texts: Sequence[str], profile: Profile, labels: Labels) -> list[Verdict]:
        return [self.verdict(look(text, profile, labels), labels) for text in texts]

    def verdict(self, view: View, labels: Labels) -> Verdict:
        """What the rules alone make of a line already looked at."""
        table = {
            name: [replace(option, score=RULE_SCALE.of(option.score)) for option in options]
            for name, options in view.table.items()
        }
        fields = settle(view.seen.text, table, Tier.RULE)
        said = view.opinion
        action = choose_action(said.category, labels) if said.severity.label else Choice()
        return Verdict(
            extraction=Extraction(fields=fields, reader=self.name, tier=Tier.RULE),
            severity=said.severity,
            category=said.category,
            action=action,
            transition=said.transition,
        )
