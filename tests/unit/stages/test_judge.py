"""From an event to one of three ends: settled, asked, or handed to the alarm stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import pytest
from making import BERLIN, LABELS, PROFILE, Plant, line, reading

from pipeline.fields.definition import Profile
from pipeline.stages.decide import Decider, RuleConfig
from pipeline.stages.judge import Judge, Judged
from pipeline.stages.route import RouteConfig
from pipeline.stages.ticket import evidence
from pipeline.stages.validate import Validator
from pipeline.store.tables import openings
from schemas.extraction import (
    Choice,
    Extraction,
    FieldValue,
    Null,
    Severity,
    Span,
    Tier,
    Transition,
    Verdict,
)
from schemas.ticket import Outcome


def judge(
    *rules: dict[str, Any], live: bool = True, profile: Profile = PROFILE, codes: Mapping[str, Severity] = {}
) -> Judge:
    decider = Decider([RuleConfig.model_validate(rule) for rule in rules], LABELS, 0.8, codes)
    return Judge(decider, Validator(profile, LABELS, BERLIN, 0.8), profile, 0.8, live)


NOISE = {"id": "noise", "when": {"text": "heartbeat"}, "discard": True}
HOT = {"id": "hot", "when": {"metric": "temp", "above": 80, "deadband": 2}, "severity": "error"}


def read(severity: str, device: FieldValue | None = None, **others: FieldValue) -> dict[str, Any]:
    extraction = Extraction({"device": device or FieldValue(), **others}, "rules:1")
    return {"extraction": extraction, "verdict": Verdict(extraction, Choice(severity, 0.95, Tier.MODEL))}


def test_routine_and_discarded_lines_are_settled() -> None:
    routine = judge().judge(line(), **read("info")).settlement
    assert routine is not None and (routine.outcome, routine.reason) == (Outcome.DISCARD, "routine")
    early = judge(NOISE).early(line("heartbeat"))
    assert early is not None and early.settlement is not None and early.settlement.reason == "noise"
    assert judge(NOISE).early(line("else")) is None


UNSURE = FieldValue(null=Null.UNSURE)


def test_unsure_lines_are_asked_and_raise_nothing() -> None:
    fields = {"device": PROFILE.fields["device"].model_copy(update={"required": True})}
    needs = PROFILE.model_copy(update={"fields": PROFILE.fields | fields})
    judged = judge(profile=needs).judge(line(), **read("error", UNSURE))
    assert judged.settlement is None
    assert judged.reasons == ("unsure_device",)
    assert judge().judge(line()).reasons == ("unsure_severity",)


STAMPED = "06:41:10 02/01/2026 bearing 92 C, limit 90, E207"


def value(word: str, confidence: float, normalised: str | float | None = None) -> FieldValue:
    start = STAMPED.index(word)
    return FieldValue(Span(start, start + len(word)), None, normalised, confidence=confidence)


@pytest.mark.parametrize("severity", ["warning", "error", "critical"])
@pytest.mark.parametrize("name", ["timestamp", "device", "error_code", "temperature"])
def test_a_fault_does_not_wait_for_a_field_that_nothing_rests_on(severity: str, name: str) -> None:
    """And what is unsure is a value nowhere: not in the ticket, not in its name, not in its evidence."""
    words = {"timestamp": STAMPED[:19], "device": "bearing", "error_code": "E207", "temperature": "92"}
    doubtful = value(words[name], 0.95 if name == "timestamp" else 0.5)
    judged = judge().judge(line(STAMPED, asset="p7"), pattern_id=3, **read(severity, **{name: doubtful}))
    change = judged.change
    assert judged.reasons == () and change.raises
    assert str(change.key) == "p7|pattern:3"
    plant = Plant([RouteConfig(id="all", sink="board", ticket_from=Severity.WARNING)])
    plant.apply(change)
    (ticket,) = plant.tickets()
    assert name not in ticket.fields
    assert change.extraction is not None and change.extraction.fields[name].null is Null.UNSURE
    record = evidence(change)
    shown = cast(dict[str, dict[str, Any]], record["fields"])[name]
    assert (shown["value"], shown["null"], shown["normalised"]) == (None, "unsure", None)
    assert shown["candidate"] == words[name]


def test_an_unsure_asset_holds_where_nothing_else_names_the_machine() -> None:
    """Otherwise the faults of all machines of a file were one alarm."""
    unnamed = judge().judge(line(STAMPED), **read("critical", value("bearing", 0.5)))
    assert unnamed.reasons == ("unsure_device",)
    assert judge().judge(line(STAMPED, asset="p7"), **read("critical", value("bearing", 0.5))).reasons == ()


def test_a_return_of_an_unsure_machine_is_a_persons_to_decide() -> None:
    def back(device: FieldValue, asset: str | None = None) -> Judged:
        code = value("E207", 0.95)
        given = read("info", device, error_code=code)
        given["verdict"] = replace(given["verdict"], transition=Transition.CLEAR)
        return judge().judge(line(STAMPED, asset=asset), **given)

    guess = value("bearing", 0.5)
    assert back(guess).reasons == ("unsure_return",)
    assert back(UNSURE).reasons == ("unsure_return",)
    assert back(FieldValue()).reasons == () and back(value("bearing", 0.9)).reasons == ()
    named = back(guess, "p7")
    assert named.reasons == () and named.change.facts.unsure, "the alarm stage knows what is open"


def test_the_ticket_names_what_could_not_be_read() -> None:
    plant = Plant()
    plant.apply(judge().judge(line(STAMPED), **read("critical", timestamp=value(STAMPED[:19], 0.95))).change)
    (ticket,) = plant.tickets()
    assert "Notes: timestamp: the line's own time could not be read surely" in ticket.body


WATCHED = {"id": "hot", "when": {"field": "temperature", "above": 90}, "severity": "critical"}


def test_a_setpoint_that_is_passed_by_an_unsure_value_is_a_persons_to_decide() -> None:
    hot = judge(WATCHED).judge(line(STAMPED), **read("info", temperature=value("92", 0.5, 92.0)))
    assert hot.reasons == ("unsure_temperature",)
    back = judge(WATCHED).judge(line(STAMPED), **read("info", temperature=value("92", 0.5, 20.0)))
    assert back.change.returns == (), "nothing returns to normal by a guess"
    sure = judge(WATCHED).judge(line(STAMPED), **read("info", temperature=value("92", 0.9, 20.0)))
    assert sure.change.returns == ("hot",)


def test_what_could_be_worse_by_a_field_that_is_unsure_is_a_persons_to_decide() -> None:
    """A warning is kept without a ticket: it must not be an error that was read badly."""
    listed = judge(codes={"E207": Severity.CRITICAL})
    doubtful = read("warning", error_code=value("E207", 0.5))
    assert listed.judge(line(STAMPED), **doubtful).reasons == ("unsure_error_code",)
    assert judge(WATCHED).judge(line(STAMPED), **read("warning", temperature=UNSURE)).reasons
    assert listed.judge(line(STAMPED), **read("error", error_code=value("E207", 0.5))).reasons == ()


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


@pytest.mark.parametrize(("threshold", "component"), [(0.9, "Fan 2"), (0.99, None)])
def test_a_fields_own_threshold_decides_what_an_alarm_is_named_by(
    threshold: float, component: str | None
) -> None:
    sure = {"device": PROFILE.fields["device"].model_copy(update={"confidence_min": threshold})}
    profile = PROFILE.model_copy(update={"fields": PROFILE.fields | sure})
    device = FieldValue(Span(0, 5), None, confidence=0.95, tier=Tier.MODEL)
    change = judge(profile=profile).judge(line("Fan 2 stalled"), **read("error", device)).change
    assert change.facts.component == component
    assert change.facts.unsure is (component is None)
    assert change.extraction is not None
    assert change.extraction.fields["device"].present is (component is not None)
