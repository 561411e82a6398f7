"""Lines that are routine whatever their fields hold: found without reading them, and never by mistake."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from making import BERLIN, LABELS, NOW, PROFILE, line

from pipeline import config
from pipeline.bench.match import plant, teach
from pipeline.demo.site import write_site
from pipeline.fields import Context
from pipeline.patterns import Lesson, learn, sign
from pipeline.stages.decide import Decider, RuleConfig
from pipeline.stages.judge import Judge
from pipeline.stages.validate import Validator
from pipeline.store.engine import Store
from pipeline.wiring import Core
from schemas.extraction import Choice, Extraction, FieldValue, Severity, Span, Tier, Transition
from schemas.ticket import Outcome

TEXT = "10:00:00 fan 2 runs at 40 °C, code E17"
CODE = Span(TEXT.index("E17"), len(TEXT))
DEVICE = Span(TEXT.index("fan"), TEXT.index(" runs"))
HEAT = Span(TEXT.index("40"), TEXT.index(" °C"))


def judge(*rules: dict[str, Any], codes: dict[str, Severity] | None = None) -> Judge:
    decider = Decider([RuleConfig.model_validate(rule) for rule in rules], LABELS, 0.8, codes)
    return Judge(decider, Validator(PROFILE, LABELS, BERLIN, 0.8), PROFILE, 0.8, live=True)


def lesson(
    severity: str | None = "info", sure: float = 0.9, transition: str = "none", **spans: Span
) -> Lesson:
    fields = {name: FieldValue(span, None, confidence=0.9) for name, span in spans.items()}
    plan = learn(TEXT, sign(TEXT), Extraction(fields, "rules:1"), PROFILE)
    assert plan is not None
    choice = Choice(severity, sure, Tier.MODEL)
    return Lesson(plan, choice, transition=Transition(transition))


INFO = {"id": "quiet", "when": {"text": "runs at"}, "severity": "info"}
LOUD = {"id": "loud", "when": {"text": "runs at"}, "severity": "error"}
CLEAR = {"id": "gone", "when": {"text": "runs at"}, "clears": "E17"}
NOISE = {"id": "noise", "when": {"text": "runs at"}, "discard": True}
CODED = {"id": "coded", "when": {"code": ["E17"]}, "severity": "error"}
NAMED = {"id": "named", "when": {"asset": "fan*"}, "severity": "error"}
HOT = {"id": "hot", "when": {"field": "temperature", "above": 30}, "severity": "error"}
OTHER = {"id": "other", "when": {"text": "stands"}, "severity": "error"}


@pytest.mark.parametrize(
    ("known", "rules", "codes", "routine"),
    [
        (lesson(), [], {}, True),
        (lesson(error_code=CODE, device=DEVICE, temperature=HEAT), [OTHER], {}, True),
        (lesson(None), [], {}, False),
        (lesson(sure=0.7), [], {}, False),
        (lesson("warning"), [], {}, False),
        (lesson("verbose"), [], {}, False),
        (lesson(transition="clear", error_code=CODE), [], {}, False),
        (lesson(transition="clear"), [INFO], {}, True),
        (lesson("error"), [INFO], {}, True),
        (lesson(), [LOUD], {}, False),
        (lesson(), [INFO, LOUD], {}, True),
        (lesson(), [CLEAR], {}, False),
        (lesson(), [NOISE], {}, False),
        (lesson(), [CODED, NAMED, HOT], {}, True),
        (lesson(error_code=CODE), [CODED], {}, False),
        (lesson(device=DEVICE), [NAMED], {}, False),
        (lesson(temperature=HEAT), [HOT], {}, False),
        (lesson(error_code=CODE), [], {"E17": Severity.ERROR}, False),
        (lesson(), [], {"E17": Severity.ERROR}, True),
    ],
)
def test_routine_is_what_the_judgement_of_the_whole_line_says(
    known: Lesson, rules: list[dict[str, Any]], codes: dict[str, Severity], routine: bool
) -> None:
    one, judging = line(TEXT), judge(*rules, codes=codes)
    assert judging.routine(one, known) == routine
    extraction = known.plan.read(TEXT, sign(TEXT), PROFILE, Context(BERLIN, NOW))
    settlement = judging.judge(one, extraction, known.verdict(extraction)).settlement
    said = settlement is not None and (settlement.outcome, settlement.reason) == (Outcome.DISCARD, "routine")
    assert said == routine


@pytest.fixture
def core(tmp_path: Path) -> Iterator[Core]:
    site = config.load(write_site(tmp_path, port=1))
    store = Store.open(tmp_path / "routine.db", site.store)
    yield Core(site, store)
    store.close()


def test_every_line_of_the_plant_ends_as_it_would_with_its_fields_read(core: Core) -> None:
    lines = plant(core, 3000)
    teach(core, lines)
    routine = 0
    for each in lines:
        feed = core.feeds[each.source]
        match = core.book.match(feed.profile_name, each.text)
        assert match.taught is not None
        if feed.judge.early(each) is None and feed.judge.routine(each, match.taught.lesson):
            settlement = core.settler.judge(each, match, match.taught).settlement
            assert settlement is not None
            assert (settlement.outcome, settlement.reason) == (Outcome.DISCARD, "routine"), each.text
            routine += 1
    assert routine > len(lines) / 2
