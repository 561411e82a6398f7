"""Times in every form that devices write; which one is the event's; what they are worth."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from pipeline.fields import Context, candidates, timestamp
from schemas.extraction import FieldType, Null

PICKED = [
    # ISO 8601 and its relatives
    ("2025-10-15 15:15:34.702 - |ERROR| - x", "2025-10-15 15:15:34.702"),
    ("2024-02-11 09:36:45,388 - octoprint - WARNING", "2024-02-11 09:36:45,388"),
    ('{"time":"2021-09-14T06:32:07.507569+00:00"}', "2021-09-14T06:32:07.507569+00:00"),
    ("2022-10-14T20:23:38+05:30 E! [inputs.modbus]", "2022-10-14T20:23:38+05:30"),
    ("2024-07-31T09:38:07Z E! x", "2024-07-31T09:38:07Z"),
    ("20250202T132501Z PS-14 pump 2", "20250202T132501Z"),
    ('"ts":"20231120042700","p_ac":0', "20231120042700"),
    ("2014-02-15_18:30:13 Kessel_Keller", "2014-02-15_18:30:13"),
    ("2016.10.31 21:57:50 3: CUL_HM", "2016.10.31 21:57:50"),
    ("2005.06.03 R14 2005-06-03-15.43.31.120448 R14", "2005-06-03-15.43.31.120448"),
    ("20171223-22:15:29:606|Step_LSC|3000", "20171223-22:15:29:606"),
    ("081109 203615 148 INFO dfs", "081109 203615"),
    # day, month, year in other orders, columns
    ("16.10.2022 16:09:32 Störung", "16.10.2022 16:09:32"),
    ("Fr 15.03.2024 22:47:18 Presse 5", "Fr 15.03.2024 22:47:18"),
    ("15/03/2024 22.50.12 CALDAIA 2", "15/03/2024 22.50.12"),
    ("1/9/2025 3:07:55 PM  PanelView01", "1/9/2025 3:07:55 PM"),
    ("SEL | 11/15/2019 | 18:50:40 | Fan", "11/15/2019 | 18:50:40"),
    ("18.09.2023;14:07:45;Alarm;4711", "18.09.2023;14:07:45"),
    ("16-10-12 01:02:33 homeassistant.core", "16-10-12 01:02:33"),
    ("13:29:55 02-Feb-25 EST /AHU_07", "13:29:55 02-Feb-25 EST"),
    ("bus 10:53:21;13.01.2021 ok", "10:53:21;13.01.2021"),
    # month names
    ("Mar  3 11:15:10 edge7 kernel: x", "Mar  3 11:15:10"),
    ("gen 23 10:54:38 stazione-4 mosquitto[4300]: 1453542878: x", "gen 23 10:54:38"),
    ("*Oct  4 17:37:39.623: %ENVMON-4-FAN", "Oct  4 17:37:39.623"),
    ("Login at 09:51:27 UTC Thu Nov 3 2022", "09:51:27 UTC Thu Nov 3 2022"),
    ("03-Jul-2024 02:45:33 BACnet", "03-Jul-2024 02:45:33"),
    ("Nov-20-2023 04:21 QTN-200", "Nov-20-2023 04:21"),
    ("2 févr. 2025 13:51 Chaudière", "2 févr. 2025 13:51"),
    ('x - - [21/Oct/2024:13:55:36 +0200] "POST', "21/Oct/2024:13:55:36 +0200"),
    # Chinese
    ("2025年02月18日 09:41:05 3号电梯", "2025年02月18日 09:41:05"),
    ("2023年11月20日 04时28分30秒 报警", "2023年11月20日 04时28分30秒"),
    ("2024年5月11日 下午3:04 停机", "2024年5月11日 下午3:04"),
    # time of day only
    ("[17:58:27][V][sensor:076]: x", "17:58:27"),
    ("13:39:12.5 05车 牵引", "13:39:12.5"),
    # epochs: s, ms, µs, ns
    ("1664317140: Client x disconnected", "1664317140"),
    ("[ INFO] [1573674017.322336741]: PROTECTIVE_STOP", "1573674017.322336741"),
    ('{"raiseTime":1718961000000,"causeId":1}', "1718961000000"),
    ('{"ts":1719837465123456}', "1719837465123456"),
    ("modbus,host=edge motor=1 1697013405000000000", "1697013405000000000"),
    # T1: date and time beat either alone; readable beats epoch; else the first
    ("- 1131567773 2005.11.09 dn17 Nov 9 12:22:53 dn17", "Nov 9 12:22:53"),
    ("19:04:12.882 MQT: {\"Time\":\"2024-11-30T19:04:12\"}", "2024-11-30T19:04:12"),
    ("2019-11-12 10:00:00 seen 2018-11-12 10:00:00", "2019-11-12 10:00:00"),
    # T4: these are no event times
    ("[76747.163508] mce: CPU2: x", None),
    ("E (7752) MB_MASTER: x", None),
    ("uptime: 12:03:44, load 3", None),
    ("took longer than the update interval 0:00:10", None),
    ("mosquitto 0.15 (build date 2013-08-23 19:54:51+0000) starting", None),
    ("next run 2025-01-01 10:00:00", None),
    ("Alarm #37, since 2024-03-15 22:51:00", None),
    ('{"print_error":1174732840}', None),
    ("v1.2.24 on 10.0.0.12:5020, MAC 00:11:22:33:44:55", None),
    ("setpoint set 40 °C, ratio 12:99", None),
]  # fmt: skip


@pytest.mark.parametrize(("line", "span"), PICKED)
def test_pick(line: str, span: str | None) -> None:
    picked = timestamp.pick(line, candidates(line))
    assert (picked.span.of(line) if picked else None) == span


@pytest.mark.parametrize(
    ("line", "span"),
    [
        ("[  48.450854] i2c", "48.450854"),
        ("uptime 12:03:44 x", "12:03:44"),
        ("运行时间 12:03:44", "12:03:44"),
    ],
)
def test_uptimes_are_marked_and_are_no_times(line: str, span: str) -> None:
    marked = [c for c in candidates(line) if c.form == "uptime"]
    assert [c.span.of(line) for c in marked] == [span]
    assert FieldType.TIMESTAMP not in marked[0].types


VALUES = [
    ("2024-02-11 09:36:45,388", "2024-02-11T08:36:45.388Z"),
    ("2024-07-31T09:38:07Z", "2024-07-31T09:38:07Z"),
    ("2022-10-14T20:23:38+05:30", "2022-10-14T14:53:38Z"),
    ("2024-01-01T00:00:00.123456789Z", "2024-01-01T00:00:00.123456Z"),
    ("21/Oct/2024:13:55:36 +0200", "2024-10-21T11:55:36Z"),
    ("20171223-22:15:29:606", "2017-12-23T21:15:29.606Z"),
    ("11/15/2019 | 18:50:40", "2019-11-15T17:50:40Z"),
    ("16.10.2022 16:09:32", "2022-10-16T14:09:32Z"),
    ("2024年5月11日 下午3:04", "2024-05-11T13:04:00Z"),
    ("12/31/24 11:59:59 PM", "2024-12-31T22:59:59Z"),
    ("12:30:00 AM", "2025-05-31T22:30:00Z"),
    ("2005-06-03-15.43.31.120448", "2005-06-03T13:43:31.120448Z"),
    ("09:51:27 UTC Thu Nov 3 2022", "2022-11-03T09:51:27Z"),
    ("13:29:55 02-Feb-25 EST", "2025-02-02T18:29:55Z"),
    ("2024-01-01 24:00:00", "2024-01-01T23:00:00Z"),
    ("2024-02-11", "2024-02-10T23:00:00Z"),
    # no year: the latest that is not in the future
    ("Mar  3 11:15:10", "2025-03-03T10:15:10Z"),
    ("Jun 14 11:15:10", "2024-06-14T09:15:10Z"),
    ("Feb 29 10:00:00", "2024-02-29T09:00:00Z"),
    ("gen 23 10:54:38", "2025-01-23T09:54:38Z"),
    # no date: the latest that is not in the future
    ("13:58:27", "2025-06-01T11:58:27Z"),
    ("14:30:00", "2025-06-01T12:30:00Z"),
    ("17:58:27", "2025-05-31T15:58:27Z"),
    ("03:00:00", "2025-06-01T01:00:00Z"),
    # epochs by magnitude
    ("1718362912", "2024-06-14T11:01:52Z"),
    ("1718362912500", "2024-06-14T11:01:52.500Z"),
    ("1697014050000000000", "2023-10-11T08:47:30Z"),
    # of two readings of a date, the one near the arrival
    ("01/06/2025 10:00", "2025-06-01T08:00:00Z"),
    ("06/01/2025 10:00", "2025-06-01T08:00:00Z"),
]


@pytest.mark.parametrize(("raw", "value"), VALUES)
def test_value(raw: str, value: str, berlin: Context) -> None:
    assert timestamp.normalise(raw, berlin).value == value


@pytest.mark.parametrize(("raw", "value"), VALUES)
def test_value_by_learnt_form(raw: str, value: str, berlin: Context) -> None:
    learnt = replace(berlin, form=timestamp.form_of(raw))
    assert learnt.form
    assert timestamp.normalise(raw, learnt).value == value


def test_a_wrong_form_is_looked_up_again(berlin: Context) -> None:
    assert timestamp.normalise("16.10.2022 16:09:32", replace(berlin, form="hms")).value is not None


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ("228182400", "bad_time"),  # seconds since another year than 1970
        ("1970-01-01 00:00:12", "bad_time"),  # a clock that was never set
        ("2000-01-01 00:03:00", "bad_time"),
        ("2026-01-01 00:00:00", "bad_time"),  # half a year ahead
        ("2024-02-30 10:00:00", "bad_time"),
        ("25:00:00", "bad_time"),
        ("13:00:00 PM", "bad_time"),
        ("xyz", "bad_time"),
        ("", "bad_time"),
        ("2024-01-01 10:00:00 +99:00", "bad_time"),
    ],
)
def test_no_time(raw: str, problem: str, berlin: Context) -> None:
    worth = timestamp.normalise(raw, berlin)
    assert (worth.value, worth.null, worth.problem) == (None, Null.BAD, problem)


@pytest.mark.parametrize("raw", ["03/04/2025 10:00", "05-06-07 10:00:00", "10:00 CST"])
def test_two_readings_are_left_to_people(raw: str, berlin: Context) -> None:
    worth = timestamp.normalise(raw, berlin)
    assert (worth.value, worth.null, worth.problem) == (None, Null.UNSURE, "ambiguous_time")


@pytest.mark.parametrize(("order", "month"), [("dmy", 4), ("mdy", 3)])
def test_a_learnt_order_settles_it(order: str, month: int, berlin: Context) -> None:
    worth = timestamp.normalise("03/04/2025 10:00", replace(berlin, convention=order))
    assert datetime.fromisoformat(str(worth.value)).month == month


def test_learning_the_order() -> None:
    assert timestamp.learn_order(["03/04/2025 10:00", "13/04/2025 10:00"]) == "dmy"
    assert timestamp.learn_order(["03/04/2025 10:00", "03/14/2025 10:00"]) == "mdy"
    assert timestamp.learn_order(["03/04/2025 10:00"]) is None
    assert timestamp.learn_order(["13/04/2025 10:00", "03/14/2025 10:00"]) is None


def test_a_zone_of_several_meanings_is_the_sources_own() -> None:
    shanghai = Context(ZoneInfo("Asia/Shanghai"), datetime(2025, 6, 1, 12, 0, tzinfo=UTC))
    assert timestamp.normalise("2025-06-01 10:00:00 CST", shanghai).value == "2025-06-01T02:00:00Z"


@pytest.mark.parametrize(("hour", "minute"), [(0, 30), (1, 30)])
def test_the_hour_that_comes_twice_is_the_one_near_the_arrival(hour: int, minute: int) -> None:
    arrived = datetime(2024, 10, 27, hour, minute, 5, tzinfo=UTC)
    context = Context(ZoneInfo("Europe/Berlin"), arrived)
    assert timestamp.normalise("2024-10-27 02:30:00", context).value == f"2024-10-27T0{hour}:30:00Z"


def test_turn_of_the_year() -> None:
    context = Context(UTC, datetime(2024, 12, 31, 23, 59, 59, tzinfo=UTC))
    assert timestamp.normalise("Jan  1 00:00:01", context).value == "2025-01-01T00:00:01Z"
    context = Context(UTC, datetime(2025, 1, 1, 0, 0, 1, tzinfo=UTC))
    assert timestamp.normalise("Dec 31 23:59:59", context).value == "2024-12-31T23:59:59Z"


def test_a_keyed_epoch_that_cannot_be_keeps_its_span(berlin: Context) -> None:
    line = '{"ts_dev":228182400,"temp":21.5}'
    picked = timestamp.pick(line, candidates(line))
    assert picked is not None
    assert picked.bad
    assert timestamp.normalise(picked.span.of(line), berlin).null is Null.BAD
