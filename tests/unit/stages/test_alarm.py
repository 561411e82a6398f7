"""One alarm a key: openings, occurrences, returns to normal, tickets, whenever a line is read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from making import Plant, change, line, reading

from pipeline.stages.facts import Facts
from pipeline.stages.route import RouteConfig
from pipeline.store import outbox, tables
from pipeline.store.tables import clears, events, openings
from pipeline.store.tables import outbox as outbox_table
from schemas.events import EventId
from schemas.extraction import Severity
from schemas.ticket import Outcome

FAULT, CLEAR = "raise", "clear"


@pytest.fixture
def plant() -> Plant:
    return Plant()


def at(position: int, kind: str = FAULT, **given: Any) -> Any:
    return change(line(at=position), kind, **given)


def spans(plant: Plant) -> list[tuple[int, int, int | None, int]]:
    """(opened, last, cleared, occurrences) of every opening, by position."""
    rows = plant.rows(openings, "opened_seq", "opened_idx")
    return [(row["opened_seq"], row["last_seq"], row["cleared_seq"], row["occurrences"]) for row in rows]


def tickets(plant: Plant) -> list[str]:
    return [row["key"].rpartition("-")[2] for row in plant.rows(outbox_table)]


def test_a_fault_opens_and_repeats_count_in_place(plant: Plant) -> None:
    settled = plant.apply(at(1), at(2), at(3))
    assert [(done.outcome, done.reason) for done in settled] == [
        (Outcome.TICKET, "opened"),
        (Outcome.TICKET, "occurrence"),
        (Outcome.TICKET, "occurrence"),
    ]
    assert len({done.alarm_id for done in settled}) == 1
    assert plant.apply(at(4))[0].alarm_id == settled[0].alarm_id
    assert spans(plant) == [(1, 4, None, 4)]
    assert tickets(plant) == ["1"]


def test_fault_clear_fault_is_two_openings_and_two_tickets(plant: Plant) -> None:
    settled = plant.apply(at(1), at(2, CLEAR), at(3))
    assert [done.reason for done in settled] == ["opened", "return_to_normal", "opened"]
    assert spans(plant) == [(1, 1, 2, 1), (3, 3, None, 1)]
    assert tickets(plant) == ["1", "2"]
    assert len({row["key"] for row in plant.rows(outbox_table)}) == 2


def test_the_same_within_one_payload(plant: Plant) -> None:
    parts = [(0, FAULT), (1, CLEAR), (2, FAULT), (3, FAULT), (4, CLEAR)]
    plant.apply(*(change(line(at=EventId(7, index)), kind) for index, kind in parts))
    rows = plant.rows(openings)
    assert [(row["opened_idx"], row["cleared_idx"], row["occurrences"]) for row in rows] == [
        (0, 1, 1),
        (2, 4, 2),
    ]


def test_across_a_restart(plant: Plant) -> None:
    plant.apply(at(1))
    plant.alarms.forget()
    plant.apply(at(2, CLEAR))
    plant.alarms.forget()
    plant.apply(at(3))
    assert spans(plant) == [(1, 1, 2, 1), (3, 3, None, 1)]


def test_a_fault_read_after_its_return_opens_as_cleared(plant: Plant) -> None:
    plant.apply(at(2, CLEAR))
    settled = plant.apply(at(1))
    assert (settled[0].outcome, settled[0].reason) == (Outcome.TICKET, "opened")
    assert spans(plant) == [(1, 1, 2, 1)]
    (row,) = plant.rows(outbox_table)
    assert row["ticket"]["state"] == "cleared"


def test_a_late_fault_in_the_time_of_an_earlier_opening_is_its_occurrence(plant: Plant) -> None:
    plant.apply(at(1), at(5, CLEAR), at(6), at(9, CLEAR), at(10))
    plant.apply(at(3), at(8))
    assert spans(plant) == [(1, 3, 5, 2), (6, 8, 9, 2), (10, 10, None, 1)]
    assert len(tickets(plant)) == 3


def test_a_late_fault_between_openings(plant: Plant) -> None:
    plant.apply(at(1), at(2, CLEAR), at(6), at(7, CLEAR))
    plant.apply(at(4))
    assert spans(plant) == [(1, 1, 2, 1), (4, 6, 7, 2)], "no return lies between 4 and 6"


def test_a_late_return_ends_what_is_behind_it_nothing(plant: Plant) -> None:
    plant.apply(at(1), at(3))
    plant.apply(at(5, CLEAR))
    plant.apply(at(4, CLEAR))
    assert spans(plant) == [(1, 3, 4, 2)]


@pytest.mark.parametrize("forget", [False, True])
@pytest.mark.parametrize("together", [False, True])
def test_a_late_return_splits_what_came_behind_it(plant: Plant, forget: bool, together: bool) -> None:
    plant.apply(at(1), at(2), at(4))
    if forget:
        plant.alarms.forget()
    plant.apply(*([at(5), at(3, CLEAR)] if together else [at(5)]))
    if not together:
        plant.apply(at(3, CLEAR))
    assert spans(plant) == [(1, 2, 3, 2), (4, 5, None, 2)]
    assert tickets(plant) == ["1", "2"]
    reasons = {row["seq"]: (row["reason"], row["opening_id"]) for row in plant.rows(events, "seq")}
    assert reasons[1] == ("opened", 1) and reasons[2] == ("occurrence", 1)
    assert reasons[4] == ("opened", 2) and reasons[5] == ("occurrence", 2)
    plant.apply(at(6))
    assert spans(plant)[1] == (4, 6, None, 3)


def test_the_ticket_of_a_split_says_whose_line_it_shows(plant: Plant) -> None:
    plant.apply(at(1), at(3))
    plant.apply(at(2, CLEAR))
    first, second = (row["ticket"] for row in plant.rows(outbox_table))
    assert second["evidence"]["event"] == "3.0" and "earlier one" in second["evidence"]["note"]
    assert (second["first_seen"], second["occurrences"]) == (second["last_seen"], 1)
    assert first["key"] != second["key"]


def test_a_rollback_leaves_nothing_behind(plant: Plant) -> None:
    plant.apply(at(1))
    plant.apply(at(2), at(3, CLEAR), at(4), fail=True)
    assert spans(plant) == [(1, 1, None, 1)]
    plant.apply(at(2), at(3, CLEAR), at(4))
    assert spans(plant) == [(1, 2, 3, 2), (4, 4, None, 1)]
    assert tickets(plant) == ["1", "2"]


def test_warnings_are_alarms_without_ticket_until_they_get_worse(plant: Plant) -> None:
    (quiet,) = plant.apply(at(1, severity=Severity.WARNING))
    assert (quiet.outcome, quiet.reason) == (Outcome.DISCARD, "below_ticket_from")
    assert quiet.alarm_id is not None and not tickets(plant)
    (worse,) = plant.apply(at(2, severity=Severity.CRITICAL))
    assert (worse.outcome, worse.reason) == (Outcome.TICKET, "opened")
    (better,) = plant.apply(at(3, severity=Severity.WARNING))
    assert (better.outcome, better.reason) == (Outcome.TICKET, "occurrence")
    (row,) = plant.rows(openings)
    assert (row["severity"], row["occurrences"]) == ("critical", 3)
    assert len(tickets(plant)) == 1


def test_observing_sends_nothing_and_going_live_sends_what_is_open(plant: Plant) -> None:
    (observed,) = plant.apply(at(1, live=False))
    assert (observed.outcome, observed.reason) == (Outcome.DISCARD, "observed")
    assert not tickets(plant)
    (live,) = plant.apply(at(2))
    assert (live.outcome, live.reason) == (Outcome.TICKET, "opened")
    assert spans(plant) == [(1, 2, None, 2)]


def test_routes() -> None:
    plant = Plant(
        [
            RouteConfig(id="pumps", sink="pumps", assets=["pump*"], ticket_from=Severity.CRITICAL),
            RouteConfig(
                id="sensors", sink="sensors", categories=["sensor_fault"], ticket_from=Severity.WARNING
            ),
            RouteConfig(id="other", sink="other", sources=["elsewhere"]),
        ]
    )
    pump = {"facts": Facts("pump 1", True)}
    settled = plant.apply(
        at(1, **pump),
        at(2, cause="E1", severity=Severity.WARNING, category="sensor_fault"),
        at(3, cause="E2"),
        at(4, cause="E3", severity=Severity.CRITICAL, **pump),
    )
    assert [done.reason for done in settled] == ["below_ticket_from", "opened", "no_route", "opened"]
    assert [row["sink"] for row in plant.rows(outbox_table)] == ["sensors", "pumps"]


def test_keys_are_subject_and_cause(plant: Plant) -> None:
    fans = [Facts("press", True, f"Fan {n}") for n in (2, 3)]
    plant.apply(
        at(1, facts=fans[0]), at(2, facts=fans[1]), at(3, facts=fans[0], cause="E9"), at(4, facts=fans[0])
    )
    rows = plant.rows(openings)
    assert [(row["subject"], row["cause"], row["occurrences"]) for row in rows] == [
        ("press/Fan 2", "E207", 2),
        ("press/Fan 3", "E207", 1),
        ("press/Fan 2", "E9", 1),
    ]


FAN2, FAN3 = (Facts("press", True, f"Fan {n}") for n in (2, 3))
PRESS = Facts("press", True)
UNSURE = Facts("press", True, unsure=True)
RETURNED, ASKED = "return_to_normal", "ambiguous_return"


@pytest.mark.parametrize(
    ("faults", "back", "reason", "ended"),
    [
        ([FAN2, FAN3], FAN2, RETURNED, [0]),
        ([PRESS], FAN2, RETURNED, [0]),  # the fault did not say which
        ([FAN2], PRESS, RETURNED, [0]),  # the return does not
        ([FAN2], FAN3, RETURNED, []),  # another one's
        ([FAN2], Facts("press", True, "FAN2"), RETURNED, [0]),  # written otherwise
        ([PRESS], UNSURE, RETURNED, [0]),
        ([FAN2, FAN3], PRESS, ASKED, []),
        ([PRESS, FAN2], PRESS, ASKED, []),
        ([PRESS, FAN2], FAN3, ASKED, []),
        ([PRESS, FAN2], FAN2, RETURNED, [1]),
        ([FAN2], UNSURE, ASKED, []),
        ([], UNSURE, RETURNED, []),
        ([Facts("press 2", True, "Fan 2")], PRESS, RETURNED, []),
        ([Facts("press 2", True)], FAN2, RETURNED, []),
    ],
)
def test_which_alarm_a_return_ends(
    plant: Plant, faults: list[Facts], back: Facts, reason: str, ended: list[int]
) -> None:
    plant.apply(*(at(n + 1, facts=facts) for n, facts in enumerate(faults)))
    (settled,) = plant.apply(at(9, CLEAR, facts=back))
    assert settled.reason == reason
    assert settled.outcome is (Outcome.REVIEW if reason == ASKED else Outcome.DISCARD)
    assert [n for n, row in enumerate(plant.rows(openings)) if row["cleared_seq"] == 9] == ended
    asked = plant.rows(tables.reviews)
    assert [row["reason"] for row in asked] == [ASKED] * (reason == ASKED)
    assert all(facts.subject in asked[0]["reading"]["details"][0] for facts in faults if asked)


def test_another_cause_is_another_alarm(plant: Plant) -> None:
    plant.apply(at(1, facts=PRESS, cause="E9"))
    plant.apply(at(2, CLEAR, facts=FAN2, cause="E207"))
    assert [row["cleared_seq"] for row in plant.rows(openings)] == [None]


def test_a_component_that_its_own_faults_name_has_no_part_in_others(plant: Plant) -> None:
    """The return is told twice; the fault in between is somebody else's."""
    plant.apply(at(1, facts=FAN2), at(2, CLEAR, facts=FAN2), at(3, facts=PRESS), at(4, CLEAR, facts=FAN2))
    assert [row["cleared_seq"] for row in plant.rows(openings)] == [2, None]


def test_a_person_may_say_that_it_ends_them_all(plant: Plant) -> None:
    plant.apply(at(1, facts=FAN2), at(2, facts=FAN3))
    back = at(3, CLEAR, facts=PRESS)
    plant.apply(replace(back, confirmed=True))
    assert [row["cleared_seq"] for row in plant.rows(openings)] == [3, 3]


def test_a_return_that_waited_for_its_fault_ends_one_alarm(plant: Plant) -> None:
    """Which was read late; the next one is not its."""
    plant.apply(at(5, CLEAR, facts=PRESS))
    plant.apply(at(1, facts=FAN2))
    plant.alarms.forget()
    plant.apply(at(2, facts=FAN3), at(3, facts=FAN2))
    assert [row["cleared_seq"] for row in plant.rows(openings)] == [5, None]
    plant.apply(at(7, facts=PRESS), at(8, CLEAR, facts=FAN3))
    plant.apply(at(9, CLEAR, facts=PRESS))
    plant.apply(at(6, facts=Facts("press", True, "Fan 4")))
    assert [row["cleared_seq"] for row in plant.rows(openings)] == [5, 8, 9, None], "9 ended the press's own"


def test_readings_return_by_value_and_leave_no_trace_of_normal_ones(plant: Plant) -> None:
    def temp(position: int, kind: str, *returns: str) -> Any:
        return change(reading(at=position), kind, cause="hot" if kind == FAULT else None, returns=returns)

    settled = plant.apply(temp(1, "none", "hot"), temp(2, FAULT), temp(3, "none"), temp(4, "none", "hot"))
    assert [(done.outcome, done.reason) for done in settled] == [
        (Outcome.DISCARD, "routine"),
        (Outcome.TICKET, "opened"),
        (Outcome.DISCARD, "routine"),
        (Outcome.DISCARD, "return_to_normal"),
    ]
    assert spans(plant) == [(2, 2, 4, 1)]
    plant.apply(*(temp(5 + n, "none", "hot") for n in range(20)))
    assert [row["seq"] for row in plant.rows(clears, "seq")] == [4]


def test_a_line_and_a_reading_of_one_document_are_one_alarm(plant: Plant) -> None:
    document = EventId(7, 0)
    text = '{"msg":"bearing hot","temp":93}'
    line_change = change(line(text, at=document), cause="pattern:3", severity=Severity.CRITICAL)
    reading_change = change(reading(at=EventId(7, 1)), cause="hot", document=document)
    settled = plant.apply(line_change, reading_change)
    assert [done.reason for done in settled] == ["occurrence", "opened"]
    (row,) = plant.rows(openings)
    assert (row["cause"], row["severity"], row["occurrences"]) == ("hot", "critical", 1)


@pytest.mark.parametrize("cleared", [False, True])
def test_also_when_the_line_is_read_late(plant: Plant, cleared: bool) -> None:
    document = EventId(7, 0)
    plant.apply(change(reading(at=EventId(7, 1)), cause="hot", document=document))
    if cleared:
        plant.apply(
            change(reading(at=8), "none", cause=None, returns=("hot",)), change(reading(at=9), cause="hot")
        )
    plant.alarms.forget()
    late = change(line('{"msg":"bearing hot","temp":93}', at=document), cause="pattern:3")
    (settled,) = plant.apply(late)
    assert (settled.reason, settled.alarm_id) == ("occurrence", 1)
    assert plant.rows(openings)[0]["occurrences"] == 1


def test_readings_of_the_next_line_in_a_payload_do_not_take_this_one(plant: Plant) -> None:
    plant.apply(
        change(line('{"a":1}', at=EventId(7, 2)), cause="pattern:1"),
        change(reading(at=EventId(7, 3)), cause="hot", document=EventId(7, 2)),
    )
    plant.apply(change(line('{"b":2}', at=EventId(7, 0)), cause="pattern:2"))
    assert len(plant.rows(openings)) == 2


def test_retained_messages_raise_only_what_is_not_known(plant: Plant) -> None:
    stamp = "2026-01-02T03:04:05Z E207"
    (first,) = plant.apply(change(line(stamp, at=1, retain=True)))
    assert first.reason == "opened"
    (again,) = plant.apply(change(line(stamp, at=2, retain=True)))
    assert (again.outcome, again.reason, again.of) == (Outcome.REPEAT, "retained_known", EventId(1, 0))
    assert spans(plant) == [(1, 1, None, 1)]
    plant.apply(at(3, CLEAR))
    (after,) = plant.apply(change(line(stamp, at=4, retain=True)))
    assert after.outcome is Outcome.REPEAT, "the very event that raised the last one"
    (new,) = plant.apply(change(line("2026-01-03T03:04:05Z E207", at=5, retain=True)))
    assert new.reason == "opened"


def test_lines_that_stand_for_repeats_count_them(plant: Plant) -> None:
    plant.apply(change(line(repeated=9)))
    assert plant.rows(openings)[0]["occurrences"] == 9


def test_the_idempotency_key_depends_on_site_subject_cause_and_number_only() -> None:
    one, other, elsewhere = Plant(), Plant(), Plant()
    elsewhere.alarms._site = "hall-3"
    for each in (one, other, elsewhere):
        each.apply(at(1, severity=Severity.ERROR), at(2, CLEAR))
    other.apply(at(3))
    keys = [[row["key"] for row in each.rows(outbox_table)] for each in (one, other, elsewhere)]
    assert keys[0][0] == keys[1][0] != keys[1][1]
    assert keys[2][0] != keys[0][0]


def test_a_ticket_is_complete_and_survives_the_outbox(plant: Plant) -> None:
    plant.apply(change(line("bearing hot", at=1), category="process_alarm"))
    with plant.engine.connect() as connection:
        (row,) = outbox.recent(connection, 10)
    ticket = row.intent.ticket
    assert (ticket.asset, ticket.cause, ticket.category, ticket.severity) == (
        "press",
        "E207",
        "process_alarm",
        Severity.ERROR,
    )
    assert ticket.title == "ERROR press: E207: bearing hot"
    assert "Occurrences: 1" in ticket.body and ticket.first_seen == "2026-03-02T12:00:01Z"
    assert outbox.load_ticket(outbox.dump_ticket(ticket)) == ticket


def test_the_cache_is_bounded(plant: Plant) -> None:
    plant.alarms._keys._max = 10
    for n in range(40):
        plant.apply(at(n + 1, facts=Facts(f"press {n % 20}", True)))
    assert len(plant.alarms._keys._states) <= 10
    assert all(row["occurrences"] == 2 for row in plant.rows(openings))
