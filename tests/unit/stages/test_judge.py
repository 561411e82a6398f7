"""From an event to one of three ends: settled, asked, or handed to the alarm stage."""

from __future__ import annotations

from typing import Any

from making import BERLIN, LABELS, PROFILE, Plant, line, reading

from pipeline.stages.decide import Decider, RuleConfig
from pipeline.stages.judge import Judge
from pipeline.stages.validate import Validator
from pipeline.store.tables import openings
from schemas.extraction import Choice, Extraction, FieldValue, Null, Span, Tier, Verdict
from schemas.ticket import Outcome


def judge(*rules: dict[str, Any], live: bool = True) -> Judge:
    decider = Decider([RuleConfig.model_validate(rule) for rule in rules], LABELS, 0.8)
    return Judge(decider, Validator(PROFILE, LABELS, BERLIN, 0.8), PROFILE, 0.8, live)


NOISE = {"id": "noise", "when": {"text": "heartbeat"}, "discard": True}
HOT = {"id": "hot", "when": {"metric": "temp", "above": 80, "deadband": 2}, "severity": "error"}


def read(severity: str, device: FieldValue | None = None) -> dict[str, Any]:
    extraction = Extraction({"device": device or FieldValue()}, "rules:1")
    return {"extraction": extraction, "verdict": Verdict(extraction, Choice(severity, 0.95, Tier.MODEL))}


def test_routine_and_discarded_lines_are_settled() -> None:
    routine = judge().judge(line(), **read("info")).settlement
    assert routine is not None and (routine.outcome, routine.reason) == (Outcome.DISCARD, "routine")
    early = judge(NOISE).early(line("heartbeat"))
    assert early is not None and early.settlement is not None and early.settlement.reason == "noise"
    assert judge(NOISE).early(line("else")) is None


def test_unsure_lines_are_asked_and_raise_nothing() -> None:
    judged = judge().judge(line(), **read("error", FieldValue(null=Null.UNSURE)))
    assert judged.settlement is None
    assert judged.reasons == ("unsure_device",)
    assert judge().judge(line()).reasons == ("unsure_severity",)


def test_a_sure_fault_goes_to_the_alarm_stage_under_its_asset() -> None:
    device = FieldValue(Span(0, 7), None, "bearing", confidence=0.9)
    judged = judge().judge(line(asset="p7"), pattern_id=3, **read("error", device))
    assert judged.settlement is None and judged.reasons == ()
    assert str(judged.change.key) == "p7/bearing|pattern:3"


def test_a_guess_names_no_alarm() -> None:
    device = FieldValue(Span(0, 7), None, "bearing", confidence=0.5)
    judged = judge().judge(line(asset="p7"), pattern_id=3, **read("error", device))
    assert judged.change.key.subject == "p7"


def test_a_code_read_as_the_component_names_no_place() -> None:
    """The return to normal finds the alarm that the fault opened, whose line was read better."""
    back = {"id": "back", "when": {"text": "gone"}, "clears": "PH-31"}
    device = FieldValue(Span(0, 5), None, "ph-31", confidence=0.9)
    cleared = judge(back).judge(line("PH-31 gone", asset="p7"), pattern_id=3, **read("info", device))
    assert str(cleared.change.key) == "p7|PH-31"
    assert cleared.change.facts.component is None
    raised = judge().judge(line("PH-31 low", asset="p7"), pattern_id=4, **read("error", device))
    assert raised.change.key.subject == "p7/ph-31", "nothing says that it is a code"


def test_without_an_asset_source_and_topic_are_the_subject() -> None:
    assert judge().judge(line(), pattern_id=3, **read("error")).change.key.subject == "line7/plant/p7/log"


def test_a_setpoint_opens_holds_and_closes_one_alarm() -> None:
    plant, hot = Plant(), judge(HOT)
    values = [20, 85, 79, 81, 78, 85]
    judged = [hot.judge(reading(value=value, at=n + 1)) for n, value in enumerate(values)]
    settled = plant.apply(*(each.change for each in judged))
    assert [done.reason for done in settled] == [
        "routine",
        "opened",
        "routine",
        "occurrence",
        "return_to_normal",
        "opened",
    ]
    assert [row["cleared_seq"] for row in plant.rows(openings)] == [5, None]


def test_a_dead_sensor_closes_with_its_next_value() -> None:
    plant, hot = Plant(), judge(HOT)
    dead = reading(value=None, null=Null.BAD, written="nan", at=2)
    missing = reading(value=None, null=Null.ABSENT, written="null", at=3)
    events = [reading(value=85, at=1), dead, missing, reading(value=85, at=4)]
    plant.apply(*(hot.judge(event).change for event in events))
    rows = [(row["cause"], row["severity"], row["cleared_seq"]) for row in plant.rows(openings)]
    assert rows == [("hot", "error", None), ("sensor_fault:temp", "warning", 4)]


def test_observed_sources_judge_the_same_and_send_nothing() -> None:
    plant = Plant()
    (settled,) = plant.apply(judge(HOT, live=False).judge(reading()).change)
    assert settled.reason == "observed"
