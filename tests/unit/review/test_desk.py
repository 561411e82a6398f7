"""What a person answers is taught to the pattern, and every event held for that question follows it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from making import line
from queue_of import held, open_id, overdue, unsure
from rig import SITE, Rig, ScriptedReader, verdict
from sqlalchemy import Connection, text

from pipeline.patterns import Trust
from pipeline.review import Correction, ReviewRefused
from pipeline.review import desk as desk_module
from pipeline.review.desk import SHOWN_BYTES
from pipeline.stages import questions
from pipeline.stages.encodings import legible
from pipeline.store import outbox, reviews
from pipeline.store.outbox import OutboxState
from pipeline.store.reviews import NewReview, ReviewState
from schemas.events import EventId
from schemas.extraction import Severity
from schemas.ticket import Outcome


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with Rig(tmp_path, reader=ScriptedReader(unsure)) as rig:
        yield rig
        rig.assert_sound()


def states(rig: Rig) -> list[ReviewState]:
    return [question.state for question in rig.questions()]


async def test_the_queue_is_grouped_by_question(rig: Rig) -> None:
    await rig.tell(*held(3))
    await rig.tell("oven1 belt squeaks", b"\x81")
    groups = await rig.core.desk.list()
    assert [(group["n"], group["reason"]) for group in groups] == [
        (3, "unsure_severity"),
        (1, "undecodable"),
        (1, "unsure_severity"),
    ]
    assert groups[0]["line"] == "press7 spindle grinds at 100 rpm"
    assert len(await rig.core.desk.list(limit=1)) == 1
    shown = await rig.core.desk.show(groups[0]["id"])
    assert (shown["state"], shown["reason"], shown["event"]) == ("open", "unsure_severity", "1.0")
    assert shown["reading"]["reasons"] == ["unsure_severity"]


async def test_a_correction_lets_every_held_event_go(rig: Rig) -> None:
    await rig.tell(*held(5))
    assert rig.counts().review == 5
    answer = await rig.core.desk.correct(await open_id(rig), "ada", Correction(severity="error"))
    assert answer == {"answered": 5, "pattern_id": 1}
    known = rig.counts()
    assert (known.tickets, known.occurrences, known.review) == (1, 4, 0)
    assert states(rig) == [ReviewState.CORRECTED] * 5
    (ticket,) = rig.tickets()
    assert (ticket.intent.ticket.asset, ticket.intent.ticket.severity) == ("press/press7", Severity.ERROR)
    assert rig.tickets_put.is_set()


async def test_a_correction_is_taught_as_the_persons_and_holds_for_what_follows(rig: Rig) -> None:
    await rig.tell(*held(1))
    await rig.core.desk.correct(await open_id(rig), "ada", Correction(severity="info"))
    (entry,) = rig.core.book.entries()
    (taught,) = entry.variants.values()
    assert (taught.lesson.taught_by, taught.trust) == ("person:ada", Trust.TRUSTED)
    asked = len(rig.reader.texts)
    (row,) = await rig.tell("press7 spindle grinds at 999 rpm")
    assert (row.state, row.reason) == (Outcome.DISCARD, "routine")
    assert len(rig.reader.texts) == asked, "a taught pattern is not read again"


async def test_later_readings_do_not_overwrite_a_person(rig: Rig) -> None:
    """Also when the model was reading the pattern while the person answered."""
    (row,) = await rig.tell(*held(1))
    match = rig.core.book.match("line", held(1)[0])
    rig.fast.checks.append((line(held(2)[1], at=row.id), match))
    await rig.core.desk.correct(await open_id(rig), "ada", Correction(severity="error"))
    rig.reader.says = lambda line: verdict(line, "info")
    await rig.read()
    (row,) = await rig.tell("press7 spindle grinds at 300 rpm")
    assert row.state == Outcome.TICKET
    (entry,) = rig.core.book.entries()
    assert entry.by_person


async def test_approving_teaches_what_was_read(rig: Rig) -> None:
    rig.reader.says = lambda line: verdict(line, "error", 0.95, temperature=line.split()[2])
    await rig.tell("zone reads 900 °C", "zone reads 901 °C")
    assert [question.asked.reason for question in rig.questions()] == ["out_of_range"] * 2
    answer = await rig.core.desk.approve(await open_id(rig), "ada")
    assert answer["answered"] == 2
    assert [state for state, _ in rig.states()] == [Outcome.TICKET, Outcome.TICKET]
    assert states(rig) == [ReviewState.APPROVED] * 2
    (entry,) = rig.core.book.entries()
    assert entry.by_person
    assert "seen by ada" in str(rig.tickets()[0].intent.ticket.evidence)


async def test_approving_only_one_leaves_the_others(rig: Rig) -> None:
    rig.reader.says = lambda line: verdict(line, "error", 0.95, temperature=line.split()[2])
    await rig.tell("zone reads 900 °C", "zone reads 901 °C")
    assert (await rig.core.desk.approve(await open_id(rig), "ada", group=False))["answered"] == 1
    assert states(rig) == [ReviewState.APPROVED, ReviewState.OPEN]


async def test_what_nobody_knows_cannot_be_approved(rig: Rig) -> None:
    await rig.tell(*held(1))
    with pytest.raises(ReviewRefused, match="nobody knows how severe this is yet"):
        await rig.core.desk.approve(await open_id(rig), "ada")
    assert states(rig) == [ReviewState.OPEN]
    await rig.core.desk.correct(await open_id(rig), "ada", Correction(severity="info"))


async def test_an_answer_reaches_all_of_a_long_queue(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """In chunks, so that nobody waits long behind it."""
    monkeypatch.setattr(desk_module, "REPLAY_CHUNK", 4)
    await rig.tell(*held(11))
    await rig.tell("oven1 belt squeaks")
    first, _ = await rig.core.desk.list()
    answer = await rig.core.desk.correct(first["id"], "ada", Correction(severity="warning"))
    assert answer["answered"] == 11
    assert [group["line"] for group in await rig.core.desk.list()] == ["oven1 belt squeaks"]


async def test_an_answer_reaches_what_was_asked_before_the_pattern_was_known(rig: Rig) -> None:
    await rig.accept(*held(2))
    await overdue(rig)
    await rig.tell("press7 spindle grinds at 300 rpm")
    assert {question.asked.reason for question in rig.questions()} == {"unread_too_long", "unsure_severity"}
    newest = rig.questions()[-1]
    answer = await rig.core.desk.correct(newest.review_id, "ada", Correction(severity="error"))
    assert answer["answered"] == 3


@pytest.mark.parametrize(("group", "left"), [(False, 4), (True, 0)])
async def test_rejecting_discards_and_teaches_nothing(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, group: bool, left: int
) -> None:
    monkeypatch.setattr(desk_module, "REPLAY_CHUNK", 2)
    await rig.tell(*held(5))
    answer = await rig.core.desk.reject(await open_id(rig), "ada", "test run", group=group)
    assert answer == {"answered": 5 - left}
    known = rig.counts()
    assert (known.review, known.discarded) == (left, 5 - left)
    assert rig.states()[0] == (Outcome.DISCARD, "rejected_by_person")
    first = rig.questions()[0]
    assert (first.state, first.resolved_by, first.resolution) == (
        ReviewState.REJECTED,
        "ada",
        {"why": "test run"},
    )
    (entry,) = rig.core.book.entries()
    assert not entry.by_person


async def test_what_is_no_text_can_only_be_rejected(rig: Rig) -> None:
    await rig.tell(b"\x81")
    review_id = await open_id(rig)
    words = "never read as a line; reject it with a reason"
    with pytest.raises(ReviewRefused, match=words):
        await rig.core.desk.approve(review_id, "ada")
    with pytest.raises(ReviewRefused, match=words):
        await rig.core.desk.correct(review_id, "ada", Correction(severity="error"))
    await rig.core.desk.reject(review_id, "ada", "noise")
    assert rig.states() == [(Outcome.DISCARD, "rejected_by_person")]


LONG = "x" * 3000 + "ü" * 600_000


@pytest.mark.parametrize(
    ("payload", "reason", "head"),
    [
        (LONG.encode(), "payload_too_large", "x" * 3000 + "ü" * 548),
        (LONG[:20_000].encode(), "line_too_long", "x" * 3000 + "ü" * 548),
        (b"[" * 5000, "json_too_deep", "[" * 4096),
        (LONG[1:].encode(), "payload_too_large", "x" * 2999 + "ü" * 548 + "\\xc3"),
        (b"\xff" * 5000, "undecodable", "\\xff" * 4096),
        (LONG.encode("utf-16"), "payload_too_large", "x" * 2047),
        ("Größe ".encode("cp1252") * 200_000, "payload_too_large", "Größe " * 682 + "Größ"),
    ],
)
async def test_what_was_never_read_is_legible_and_says_what_is_not_there(
    tmp_path: Path, payload: bytes, reason: str, head: str
) -> None:
    cut = f"the first 4096 of {len(payload)} bytes"
    async with Rig(tmp_path) as rig:
        await rig.tell(payload)
        (listed,) = await rig.core.desk.list()
        assert (listed["reason"], listed["line"], listed["cut"]) == (reason, head, cut)
        shown = await rig.core.desk.show(listed["id"])
        assert shown["line"] == legible(payload[:SHOWN_BYTES])
        assert ("cut" in shown) is (len(payload) > SHOWN_BYTES)
        await rig.write(lambda connection: connection.execute(text("UPDATE journal SET payload = x''")))
        gone = await rig.core.desk.show(listed["id"])
        assert (gone["line"], gone["cut"]) == (head, cut)


async def test_a_question_is_answered_once(rig: Rig) -> None:
    await rig.tell(*held(1))
    review_id = await open_id(rig)
    await rig.core.desk.reject(review_id, "ada", "noise")
    words = f"question {review_id} is rejected by ada already"
    with pytest.raises(ReviewRefused, match=words):
        await rig.core.desk.reject(review_id, "bob", "noise")
    with pytest.raises(ReviewRefused, match=words):
        await rig.core.desk.approve(review_id, "bob")
    with pytest.raises(ReviewRefused, match=words):
        await rig.core.desk.correct(review_id, "bob", Correction(severity="error"))
    with pytest.raises(ReviewRefused, match="there is no question 77; `andon review list` shows"):
        await rig.core.desk.show(77)


async def test_a_refused_answer_changes_nothing(rig: Rig) -> None:
    await rig.tell(*held(2))
    with pytest.raises(ReviewRefused, match="is not configured"):
        await rig.core.desk.correct(await open_id(rig), "ada", Correction(severity="doom"))
    rig.failures = 1
    with pytest.raises(Exception, match="no space left"):
        await rig.core.desk.correct(await open_id(rig), "ada", Correction(severity="error"))
    assert rig.counts().review == 2
    assert (await rig.core.desk.correct(await open_id(rig), "ada", Correction(severity="error")))[
        "answered"
    ] == 2


async def test_an_observing_source_opens_no_ticket(tmp_path: Path) -> None:
    async with Rig(tmp_path, SITE.replace("mode: live", "mode: observe"), ScriptedReader(unsure)) as rig:
        await rig.tell(*held(2))
        await rig.core.desk.correct(await open_id(rig), "ada", Correction(severity="error"))
        assert (rig.counts().review, rig.tickets()) == (0, [])
        rig.assert_sound()


async def test_a_source_that_has_left_can_only_be_rejected(tmp_path: Path) -> None:
    async with Rig(tmp_path, reader=ScriptedReader(unsure)) as rig:
        await rig.tell(*held(1))
    async with Rig(tmp_path, SITE.replace("line7:", "line8:")) as rig:
        review_id = await open_id(rig)
        with pytest.raises(ReviewRefused, match="knows no source 'line7' any more; reject it instead"):
            await rig.core.desk.correct(review_id, "ada", Correction(severity="error"))
        await rig.core.desk.reject(review_id, "ada", "gone")
        rig.assert_sound()


def _dead(connection: Connection) -> None:
    for row in outbox.recent(connection, 10):
        outbox.finish(connection, row.id, OutboxState.DEAD, at_us=1, error="400")
        question = NewReview(
            id=EventId(int(str(row.intent.ticket.evidence["event"]).partition(".")[0]), 0),
            source="line7",
            topic="plant/press/log",
            group_key="dead_letter:board",
            reason="dead_letter",
            created_at_us=1,
            event={"text": row.intent.ticket.line},
            reading={"key": row.intent.ticket.key, "sink": row.intent.sink},
        )
        reviews.put(connection, [question])


@pytest.mark.parametrize(("group", "again"), [(False, 1), (True, 2)])
async def test_a_dead_letter_is_sent_again(rig: Rig, group: bool, again: int) -> None:
    rig.reader.says = lambda line: verdict(line, "error", device=line.split()[0])
    await rig.tell("press7 spindle grinds", "oven1 belt squeaks")
    await rig.write(_dead)
    answer = await rig.core.desk.approve(await open_id(rig), "ada", group=group)
    assert answer == {"answered": again}
    assert [row.state for row in rig.tickets()].count(OutboxState.QUEUED) == again
    assert rig.counts().tickets == 2, "the events have their outcome already"


async def test_a_dead_letter_that_is_rejected_keeps_its_event(rig: Rig) -> None:
    rig.reader.says = lambda line: verdict(line, "error")
    await rig.tell("press7 spindle grinds")
    await rig.write(_dead)
    with pytest.raises(ReviewRefused, match="never read as a line"):
        await rig.core.desk.correct(await open_id(rig), "ada", Correction(severity="error"))
    await rig.core.desk.reject(await open_id(rig), "ada", "done by hand")
    assert rig.tickets()[0].state is OutboxState.DEAD
    assert rig.counts().tickets == 1


async def test_what_is_disputed_is_settled_by_a_person(rig: Rig) -> None:
    says = iter(["info", "error", "info"])
    rig.reader.says = lambda line: verdict(line, next(says))
    await rig.tell(*held(3))
    assert {reason for _, reason in rig.states()} == {questions.DISPUTED}
    await rig.core.desk.correct(await open_id(rig), "ada", Correction(severity="warning"))
    assert rig.counts().review == 0
    (row,) = await rig.tell("press7 spindle grinds at 300 rpm")
    assert row.state != Outcome.REVIEW
