"""What an answer says, for whom, and what it leaves open; that nobody is asked twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from queue_of import held, open_id, overdue, unsure
from rig import SITE, Rig, ScriptedReader, verdict

from pipeline.review import Correction, ReviewRefused
from pipeline.stages import questions
from pipeline.store.reviews import ReviewState
from schemas.extraction import Choice, Extraction, FieldValue, Span, Tier, Verdict
from schemas.ticket import Outcome


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with Rig(tmp_path, reader=ScriptedReader(unsure)) as rig:
        yield rig
        rig.assert_sound()


def doubtful(line: str) -> Verdict:
    """A reader that is sure of nothing but the words it has seen."""
    said = verdict(line, None, 0.5, device=line.split()[0], temperature=line.split()[4])
    guess = Choice("process_alarm", 0.5, Tier.MODEL)
    return replace(said, severity=Choice("error", 0.5, Tier.MODEL), category=guess, action=guess)


async def test_what_a_person_leaves_alone_is_not_asked_again_and_not_said_in_his_name(rig: Rig) -> None:
    rig.reader.says = doubtful
    await rig.tell(*held(2))
    await rig.core.desk.correct(await open_id(rig), "ada", Correction(severity="error"))
    assert rig.counts().review == 0
    (row,) = await rig.tell(held(3)[2])
    assert (row.state, rig.counts().review) == (Outcome.TICKET, 0), "people are asked once"
    (ticket,) = rig.tickets()
    shown = ticket.intent.ticket
    assert (shown.category, shown.action, shown.asset, dict(shown.fields)) == (None, None, "press", {})
    assert "device: it could not be read surely" in shown.body
    record: Any = shown.evidence
    assert (record["severity"]["tier"], record["severity"]["confidence"]) == ("person", 1.0)
    for what in ("category", "action"):
        assert (record[what]["label"], record[what]["tier"], record[what]["confidence"]) == (
            None,
            "model",
            0.5,
        )
    for name in ("device", "temperature"):
        assert (record["fields"][name]["null"], record["fields"][name]["confidence"]) == ("unsure", 0.5)


REQUIRED = SITE.replace("what it is about}", "what it is about, required: true}")


async def test_what_is_needed_has_to_be_said_and_is_then_known(tmp_path: Path) -> None:
    async with Rig(tmp_path, REQUIRED, ScriptedReader(doubtful)) as rig:
        await rig.tell(*held(2))
        with pytest.raises(ReviewRefused, match=r"device is needed and unsure: give its value \(--set"):
            await rig.core.desk.correct(await open_id(rig), "ada", Correction(severity="error"))
        assert rig.counts().review == 2
        answer = Correction(severity="error", values={"device": "press7"})
        assert (await rig.core.desk.correct(await open_id(rig), "ada", answer))["answered"] == 2
        (row,) = await rig.tell(held(3)[2])
        assert row.state == Outcome.TICKET
        rig.assert_sound()


async def test_a_needed_field_is_unsure_by_its_own_threshold_too(tmp_path: Path) -> None:
    strict = REQUIRED.replace("required: true}", "required: true, confidence_min: 0.99}")
    says = ScriptedReader(lambda line: verdict(line, None, 0.95, device=line.split()[0]))
    async with Rig(tmp_path, strict, says) as rig:
        await rig.tell(*held(2))
        with pytest.raises(ReviewRefused, match="device is needed and unsure"):
            await rig.core.desk.correct(await open_id(rig), "ada", Correction(severity="error"))
        answer = Correction(severity="error", values={"device": "press7"})
        assert (await rig.core.desk.correct(await open_id(rig), "ada", answer))["answered"] == 2


async def test_approving_what_was_shown_of_a_needed_field_answers_it(tmp_path: Path) -> None:
    says = ScriptedReader(lambda line: verdict(line, "error", 0.95, device=line.split()[0]))
    async with Rig(tmp_path, REQUIRED, says) as rig:
        device = FieldValue(Span(0, 6), None, confidence=0.5, tier=Tier.MODEL)
        read = says.says
        says.says = lambda line: replace(
            read(line), extraction=Extraction({"device": device}, "scripted", Tier.MODEL)
        )
        await rig.tell(*held(2))
        assert {reason for _, reason in rig.states()} == {"unsure_device"}
        shown: Any = (await rig.core.desk.show(await open_id(rig)))["reading"]["fields"]["device"]
        assert (shown["value"], shown["candidate"], shown["confidence"]) == (None, "press7", 0.5)
        await rig.core.desk.approve(await open_id(rig), "ada")
        (row,) = await rig.tell(held(3)[2])
        assert row.state == Outcome.TICKET
        assert rig.tickets()[0].intent.ticket.asset == "press/press7"


RULED = (
    SITE
    + """
rules:
  - {id: fast, when: {text: "at [0-9]{4} rpm"}, severity: error}
"""
)


def coded(code: int, rpm: int = 100) -> str:
    return f"press7 spindle grinds at {rpm} rpm, error {code}"


async def test_the_device_is_asked_once_and_not_for_each_code(tmp_path: Path) -> None:
    """What the codes mean is asked for each of them."""
    severe = {"17": "error", "18": "critical"}

    def says(line: str) -> Verdict:
        code = line.split()[-1]
        guess = FieldValue(Span(0, 6), None, confidence=0.5, tier=Tier.MODEL)
        return replace(
            verdict(line, severe.get(code)), extraction=Extraction({"device": guess}, "scripted", Tier.MODEL)
        )

    async with Rig(tmp_path, REQUIRED, ScriptedReader(says)) as rig:
        await rig.tell(*(coded(code, rpm) for code in (17, 18, 19) for rpm in (100, 200)))
        assert rig.counts().review == 6
        answer = await rig.core.desk.correct(1, "ada", Correction(values={"device": "press7"}))
        assert (answer["answered"], rig.counts().review) == (4, 2)
        assert rig.number("SELECT count(*) FROM openings WHERE severity = 'critical'") == 1
        assert {row.intent.ticket.asset for row in rig.tickets()} == {"press/press7"}
        severe["20"] = "error"
        (new, unknown) = await rig.tell(coded(20), coded(21))
        assert (new.state, unknown.reason) == (Outcome.TICKET, "unsure_severity")
        left = {question.asked.reason for question in rig.questions() if question.state is ReviewState.OPEN}
        assert left == {"unsure_severity"}
        rig.assert_sound()


async def test_a_line_without_a_severity_is_never_let_go(tmp_path: Path) -> None:
    """Not even with others of its question, of which a rule knows how severe they are."""
    says = iter(["info", "error", "info"])
    async with Rig(tmp_path, RULED, ScriptedReader(lambda line: verdict(line, next(says)))) as rig:
        await rig.tell(*(f"press7 spindle grinds at {rpm} rpm" for rpm in (1000, 10, 20)))
        assert {reason for _, reason in rig.states()} == {questions.DISPUTED}
        answer = await rig.core.desk.correct(1, "ada", Correction(values={"device": "press7"}))
        assert (answer["answered"], rig.counts().review) == (1, 2)
        with pytest.raises(ReviewRefused, match="nobody knows how severe"):
            await rig.core.desk.correct(2, "ada", Correction(values={"device": "press7"}))
        rig.assert_sound()


async def test_only_what_was_shown_can_be_approved(rig: Rig) -> None:
    """A line that was asked unread, whose pattern somebody has read since."""
    await rig.accept(*held(1))
    await overdue(rig)
    rig.reader.says = lambda line: verdict(line, "error", device=line.split()[0])
    await rig.tell(held(2)[1])
    (question,) = rig.questions()
    with pytest.raises(ReviewRefused, match="it was shown without a severity, and is read as error by now"):
        await rig.core.desk.approve(question.review_id, "ada")
    assert (await rig.core.desk.correct(question.review_id, "ada", Correction(severity="info")))["answered"]


async def test_what_nobody_has_read_is_read_with_the_next_line(rig: Rig) -> None:
    """A person who answers a line that was asked unread says nothing of what he does not mention."""
    await rig.accept(*held(1))
    await overdue(rig)
    await rig.core.desk.correct(await open_id(rig), "ada", Correction(severity="error"))
    assert rig.tickets()[0].intent.ticket.asset == "press"
    rig.reader.says = lambda line: verdict(line, "info", device=line.split()[0])
    (row, _) = await rig.tell(*held(3)[1:])
    assert row.state == Outcome.TICKET, "how severe it is stands as the person said"
    assert rig.tickets()[0].intent.ticket.asset == "press/press7"
    asked = len(rig.reader.texts)
    await rig.tell(held(4)[3])
    assert len(rig.reader.texts) == asked, "and is read once"
    (entry,) = rig.core.book.entries()
    assert entry.by_person


CLEARS = (
    SITE
    + """
rules:
  - {id: jam, when: {text: "jams"}, severity: error}
  - {id: free, when: {text: "runs free"}, clears: jam}
"""
)


@pytest.mark.parametrize(("answer", "ended"), [("approve", 2), ("reject", 0)])
async def test_a_return_that_may_be_of_several_alarms_is_a_persons_to_decide(
    tmp_path: Path, answer: str, ended: int
) -> None:
    def says(line: str) -> Verdict:
        return verdict(line, "info", **({"device": line.split()[0]} if "jams" in line else {}))

    async with Rig(tmp_path, CLEARS, ScriptedReader(says)) as rig:
        await rig.tell("gripper1 jams", "gripper2 jams")
        (back,) = await rig.tell("all runs free again")
        assert (back.state, back.reason) == (Outcome.REVIEW, "ambiguous_return")
        shown = await rig.core.desk.show(await open_id(rig))
        assert "press/gripper1 and press/gripper2" in shown["reading"]["details"][0]
        if answer == "approve":
            await rig.core.desk.approve(await open_id(rig), "ada")
        else:
            await rig.core.desk.reject(await open_id(rig), "ada", "only one of them")
        assert rig.number("SELECT count(*) FROM openings WHERE cleared_seq IS NOT NULL") == ended
        assert rig.counts().review == 0
        rig.assert_sound()


async def test_an_answer_about_something_else_ends_no_alarm_unasked(tmp_path: Path) -> None:
    """The line was asked unread, and its answer says nothing of the alarms that it may be about."""
    says = ScriptedReader(lambda line: verdict(line, "info", device=line.split()[0]))
    async with Rig(tmp_path, CLEARS, says) as rig:
        await rig.tell("gripper1 jams", "gripper2 jams")
        await rig.accept("all runs free again")
        await overdue(rig)
        absent = Correction(severity="info", nulls={"device": "absent", "temperature": "absent"})
        await rig.core.desk.correct(await open_id(rig), "ada", absent)
        assert [q.asked.reason for q in rig.questions() if q.state is ReviewState.OPEN] == [
            "ambiguous_return"
        ]
        assert rig.number("SELECT count(*) FROM openings WHERE cleared_seq IS NOT NULL") == 0
        await rig.core.desk.approve(await open_id(rig), "ada")
        assert rig.number("SELECT count(*) FROM openings WHERE cleared_seq IS NOT NULL") == 2
        rig.assert_sound()
