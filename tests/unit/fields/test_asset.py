"""Names of equipment, as D1 to D7 of the labelling rules have them: all are offered, the reader chooses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pipeline.fields import Context, FieldConfig, Profile, normalise
from schemas.extraction import Candidate, FieldType, Span

Offered = Callable[..., dict[str, Candidate]]


@pytest.mark.parametrize(
    ("line", "raw"),
    [
        # by key
        ("Heating failed! Heater_ID: E0", "E0"),
        ('{"CustomName":"Symo Halle Nord"}', "Symo Halle Nord"),
        ("host=edge-03,name=chiller_2 p=1", "chiller_2"),
        ('{"设备":"空压机-03"}', "空压机-03"),
        ('{"Gerät":"Mischer 7"}', "Mischer 7"),
        ("Device: /dev/sda [SAT], SMART", "/dev/sda"),
        ('{"DS18B20":{"Temperature":21.5}}', "DS18B20"),
        # class word and number
        ("%ENVMON-3-FAN: Fan 2 not rotating", "Fan 2"),
        ("mce: CPU2: Core temperature", "CPU2"),
        ("sending to slave 12 count 4", "slave 12"),
        ("Fan #0x42 lower critical", "Fan #0x42"),
        ("Preflight Fail: Accel Sensor 1 missing", "Accel Sensor 1"),
        ("10:00:00 Schweißzelle 6 Überstrom", "Schweißzelle 6"),
        ("Lathe 4: chuck pressure low", "Lathe 4"),
        ("Chaudière n°3 défaut", "Chaudière n°3"),
        ("TruLaser 3030 #2 Störung", "TruLaser 3030 #2"),
        ("Kühlmittelpumpe P-204 Druck", "Kühlmittelpumpe P-204"),
        # places
        ("SRVO-062 alarm (Group:1 Axis:3)", "Group:1 Axis:3"),
        ("报警(组:1 轴:2)", "组:1 轴:2"),
        ("pack 3 cell 11 undervoltage", "pack 3 cell 11"),
        # after a class word or a preposition
        ("Communications with UPS rack2-eco lost", "rack2-eco"),
        ("UPS ups@10.20.0.15 is unavailable", "ups@10.20.0.15"),
        ("Received PUBLISH from cnc-gw-2 (d0)", "cnc-gw-2"),
        ("CONNECT from 10.3.0.44.", "10.3.0.44"),
        ("thermal thermal_zone0: critical", "thermal_zone0"),
        ("Anlage Aufzug Nord: Türstörung", "Aufzug Nord"),
        # host
        ("Jan 07 22:35:41 edge7 nut-monitor[41]: Reloading", "edge7"),
        ("<189>431: sw-cell4: Nov  3 09:30:37.480: %SYS-5-X: y", "sw-cell4"),
        # quotes, topics
        ("[17:58:27]: 'Framledning VP1': new state 378", "Framledning VP1"),
        ("topic 'zigbee2mqtt/Temperatur Werkstatt', payload", "Temperatur Werkstatt"),
        ('MonitoredItem "Reaktor_R21.Innentemperatur" ok', "Reaktor_R21.Innentemperatur"),
        # tags and their parts
        ("- x R14-M1-N3-C:J11-U01 RAS KERNEL", "R14-M1-N3-C:J11-U01"),
        ("CPU_SrcID#1_Ha#0_Chan#0 (channel:0)", "CPU_SrcID#1_Ha#0_Chan#0"),
        ("%SFF-5-X: Te1/1/4: low alarm", "Te1/1/4"),
        ("RC ERROR: RC3_MIN < 800.", "RC3"),
        ("Retrying connect to server: msra-sb-12:8030.", "msra-sb-12"),
        ("STA 11:22:33:44:55:66 deauthenticated", "11:22:33:44:55:66"),
        # Chinese
        ("Device 大连机床VDL850-007 is not connected", "大连机床VDL850-007"),
        ("Device 二车间3号空压机 is not connected", "二车间3号空压机"),
        ("110kV云溪变 10kV 1163开关 SF6气压低", "10kV 1163开关"),
        ("110kV云溪变 站用配变 温度高", "站用配变"),
        ("[报警] 2#注塑机 料筒温度", "2#注塑机"),
        ("逆变器08 组串3 直流电压", "组串3"),
        # columns, last word
        ("a;K;Kühlmittelpumpe P-204;Druck", "Kühlmittelpumpe P-204"),
        ("C153A2: Protective stop : Elbow", "Elbow"),
    ],
)
def test_asset(offered: Offered, line: str, raw: str) -> None:
    assert raw in offered(line, FieldType.ASSET)


@pytest.mark.parametrize(
    ("line", "raw"),
    [
        ("user=root level=error pid=4711", "root"),
        ("Temperature 58 Celsius", "58"),
        ("2024-01-01 10:00:00 ERROR failed", "ERROR"),
        ("read 12.5bar at v1.2.3", "v1.2.3"),
    ],
)
def test_no_asset(offered: Offered, line: str, raw: str) -> None:
    assert raw not in offered(line, FieldType.ASSET)


def test_known_assets_are_found_however_they_look(offered: Offered, berlin: Context) -> None:
    config = FieldConfig(type="asset", description="machine", known=["Alte Presse", "Bär"])
    found = offered("an der Alte Presse ist Bär los", FieldType.ASSET, Profile(fields={"m": config}))
    assert {raw for raw, candidate in found.items() if candidate.form == "known"} == {"Alte Presse", "Bär"}


@pytest.mark.parametrize(
    ("raw", "value", "problem"),
    [
        ("Pump 3", "Pump 3", None),
        ("pump  3", "Pump 3", None),
        ("PUMP3", "Pump 3", None),
        ("Pump 4", "Pump 4", "unknown_asset"),
    ],
)
def test_known_assets_give_their_listed_name(
    berlin: Context, raw: str, value: str, problem: str | None
) -> None:
    config = FieldConfig(type="asset", description="machine", known=["Pump 3", "Fan 1"])
    worth = normalise(raw, Span(0, len(raw)), config, berlin)
    assert (worth.value, worth.problem) == (value, problem)
