"""A batch of the journal is settled whole, or not at all; what cannot be read now waits or is asked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from rig import SITE, Rig, ScriptedReader, verdict

from pipeline.patterns import Lesson, Trust, keep, learn, sign
from pipeline.stages import settle
from schemas.errors import StoreUnavailable
from schemas.extraction import Choice, Extraction, Tier, Transition
from schemas.ticket import Outcome

RULES = """
rules:
  - {id: hot, when: {text: hot}, severity: error}
  - {id: alive, when: {text: heartbeat}, discard: true}
"""


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with Rig(tmp_path, SITE + RULES) as rig:
        yield rig
        rig.assert_sound()


async def test_lines_of_new_patterns_are_unread_in_both_tables(rig: Rig) -> None:
    await rig.accept("bearing hot", "bearing hot", "belt squeaks", "heartbeat", b"\x81")
    await rig.settle()
    assert [state for state, _ in rig.states()] == ["unread", "unread", "unread", "discard", "review"]
    both = "SELECT count(*) FROM unread JOIN events USING (seq, idx) WHERE state = 'unread'"
    assert rig.number(both) == rig.number("SELECT count(*) FROM unread") == 3
    assert rig.counts().pending == 3
    await rig.read()
    assert rig.counts().pending == 0


async def test_what_was_not_committed_is_repeated_without_double_effects(rig: Rig) -> None:
    """Also when the store refuses at the very end, with everything written and the alarms in memory."""
    await rig.tell("spindle hot")
    await rig.accept("spindle hot", "heartbeat", "belt squeaks", b"\x81")
    rig.failures = 1
    with pytest.raises(StoreUnavailable):
        await rig.fast.step()
    assert rig.number("SELECT count(*) FROM events") == 1
    await rig.fast._in_thread(rig.fast._restore)
    await rig.settle()
    await rig.read()
    known = rig.counts()
    assert (known.tickets, known.occurrences, known.discarded, known.pending) == (2, 1, 1, 0)
    assert rig.number("SELECT sum(occurrences) FROM openings") == 3
    assert len(rig.tickets()) == 2
    assert len(rig.questions()) == 1


async def test_an_alarm_that_was_not_committed_is_opened_by_whoever_comes_next(rig: Rig) -> None:
    """The read lane failed with the opening in memory; the next commit is another lane's."""
    await rig.accept("spindle hot")
    await rig.settle()
    rig.failures = 1
    with pytest.raises(StoreUnavailable):
        await rig.slow.step()
    assert rig.tickets() == []
    await rig.read()
    await rig.tell("spindle hot")
    assert [state for state, _ in rig.states()] == [Outcome.TICKET, Outcome.TICKET]
    assert len(rig.tickets()) == 1


async def test_the_check_of_a_plan_survives_a_batch_that_failed(rig: Rig) -> None:
    await rig.tell("belt squeaks at 1 rpm")
    await rig.accept("belt squeaks at 2 rpm")
    rig.failures = 1
    with pytest.raises(StoreUnavailable):
        await rig.fast.step()
    await rig.fast._in_thread(rig.fast._restore)
    await rig.settle()
    assert [line.text for line, _ in rig.fast.checks] == ["belt squeaks at 2 rpm"]


async def test_beyond_the_limit_lines_are_asked_raw(tmp_path: Path) -> None:
    async with Rig(tmp_path, SITE + "limits: {unread_max: 2}\n") as rig:
        await rig.accept("belt squeaks", "spindle hot", "belt squeaks", "oven cold")
        await rig.settle()
        overflow = ("review", "unread_overflow")
        assert rig.states() == [("unread", ""), ("unread", ""), overflow, overflow]
        assert [question.asked.reason for question in rig.questions()] == ["unread_overflow"] * 2
        await rig.read()
        assert rig.counts().review == 2
        rig.assert_sound()


async def test_messages_of_a_source_that_has_left_are_kept_for_a_person(rig: Rig) -> None:
    await rig.accept("bearing hot", source="line9")
    await rig.settle()
    assert rig.states() == [("review", settle.UNKNOWN_SOURCE)]


async def test_a_redelivered_message_is_a_repeat(rig: Rig) -> None:
    await rig.accept("belt squeaks", qos=1, position=1, connection="a")
    await rig.accept("spindle hot", qos=1, position=2, connection="a")
    await rig.accept("spindle hot", qos=1, position=2, connection="b", duplicate=True)
    await rig.accept("spindle hot", qos=1, position=3, connection="b")
    await rig.settle()
    await rig.read()
    assert [state for state, _ in rig.states()] == ["ticket", "ticket", "repeat", "ticket"]
    (repeat,) = rig.events(3)
    assert (repeat.reason, repeat.of and repeat.of.seq) == ("redelivered", 2)


async def test_a_redelivered_message_is_known_again_after_a_restart(tmp_path: Path) -> None:
    async with Rig(tmp_path) as rig:
        await rig.accept("belt squeaks", qos=1, position=1, connection="a")
        await rig.settle()
    async with Rig(tmp_path) as rig:
        await rig.fast._in_thread(rig.fast._restore)
        await rig.accept("belt squeaks", qos=1, position=1, connection="b")
        await rig.settle()
        assert [state for state, _ in rig.states()] == ["unread", "repeat"]
        rig.assert_sound()


async def test_an_equal_line_with_its_time_is_one_within_the_window(rig: Rig) -> None:
    stamped = "2026-03-02 12:00:01 belt squeaks"
    await rig.accept(stamped, stamped, "belt squeaks", "belt squeaks")
    await rig.settle()
    assert rig.states()[1] == ("repeat", "same_content")
    assert [state for state, _ in rig.states()] == ["unread", "repeat", "unread", "unread"]


async def test_a_retained_message_opens_once_and_tells_nothing_new_after(rig: Rig) -> None:
    await rig.tell("spindle hot")
    (row,) = await rig.tell("spindle hot", retain=True)
    assert (row.state, row.reason) == (Outcome.REPEAT, "retained_known")
    assert len(rig.tickets()) == 1


async def _teach(rig: Rig, text: str, trust: Trust, severity: str = "error") -> None:
    plan = learn(text, sign(text), Extraction({}, "scripted"), rig.site.profiles["line"])
    assert plan is not None
    lesson = Lesson(
        plan, Choice(severity, 0.95, Tier.MODEL), transition=Transition.RAISE, trust=trust, taught_by="m"
    )
    teaching = rig.core.book.propose("line", text, lesson, 1)
    assert teaching is not None
    kept = await rig.write(lambda connection: keep(connection, rig.core.book, teaching))
    assert kept is not None
    rig.core.book.commit(teaching, kept)


async def test_a_disputed_pattern_is_asked_and_not_guessed(rig: Rig) -> None:
    await _teach(rig, "belt squeaks at 1 rpm", Trust.DISPUTED)
    (row,) = await rig.tell("belt squeaks at 2 rpm")
    assert (row.state, row.reason, row.pattern_id) == (Outcome.REVIEW, "disputed", 1)
    assert rig.reader.texts == []


async def test_a_field_that_is_defined_anew_is_read_anew(tmp_path: Path) -> None:
    reader = ScriptedReader(lambda line: verdict(line, device=line.split()[0]))
    async with Rig(tmp_path, reader=reader) as rig:
        await rig.tell("press7 squeaks")
    changed = SITE.replace("range: [-40, 200]", "range: [0, 90]")
    async with Rig(tmp_path, changed, reader) as rig:
        asked = len(reader.texts)
        await rig.accept("press7 squeaks")
        await rig.settle()
        assert rig.states()[-1] == ("unread", "")
        await rig.read()
        assert len(reader.texts) == asked + 1
        await rig.tell("press7 squeaks")
        assert len(reader.texts) == asked + 1
        assert len(rig.core.book) == 1
        assert {state for state, _ in rig.states()} == {"ticket"}
        rig.assert_sound()


async def test_a_record_of_several_messages_is_one_event(tmp_path: Path) -> None:
    site = SITE.replace("mode: live", "mode: live, framing: multiline, multiline: {start: '^[A-Z]'}")
    async with Rig(tmp_path, site) as rig:
        await rig.accept("Traceback", "  at line 1", "  at line 2")
        await rig.settle()
        assert rig.counts().open_records == 1
        rig.failures = 1
        with pytest.raises(StoreUnavailable):
            await rig.fast.step_records(everything=True)
        await rig.fast._in_thread(rig.fast._restore)
        await rig.fast.step_records(everything=True)
        await rig.read()
        assert [state for state, _ in rig.states()] == ["ticket", "part_of", "part_of"]
        (ticket,) = rig.tickets()
        assert ticket.intent.ticket.line == "Traceback\n  at line 1\n  at line 2"
        rig.assert_sound()
