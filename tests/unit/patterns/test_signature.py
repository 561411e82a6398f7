"""What is masked, what stays, and what may never meet in one pattern."""

from __future__ import annotations

import re

import pytest

from pipeline.patterns.signature import VARIANT_MAX, sign, variant

MASKED = [
    # times, in the forms machines write
    ("2026-01-05T08:00:01.250Z E", "<time> E"),
    ("2026-01-05 08:00:01,250 E", "<time> E"),
    ("2026-01-05 08:00:01+01:00 E", "<time> E"),
    ("2005-06-03-15.42.50.675872 E", "<time> E"),
    ("20171223-22:15:29:606|E", "<time>|E"),
    ("20171224-0:28:0:83|E", "<time>|E"),
    ("20260105T080001Z E", "<time> E"),
    ("05.01.2026 08:00:01 E", "<time> E"),
    ("01/05/26 08:00:01 PM E", "<time> E"),
    ("9/Jul/2005:12:16:49 +0000] E", "<time>] E"),
    ("5 Mai 2026 10:00:01 E", "<time> E"),
    ("Jun  7 22:31:32 E", "<time> E"),
    ("Sat Jul  9 12:16:49 2005 E", "<time> E"),
    ("Mo 05.01.2026 08:00 E", "<time> E"),
    ("2026年1月5日 08时00分01秒 E", "<time> E"),
    ("11/15/2019 | 18:50:40 E", "<time> |<time> E"),
    ("at 18:50:40, 85", "at <time>, <num>"),
    ("18:50:40,85,3", "<time>,<num>,<num>"),
    # numbers: sign, decimal mark, unit glued or apart
    ("T -3.4 °C", "T <num> °C"),
    ("T -3,4 °C", "T <num> °C"),
    ("T:21.50", "T:<num>"),
    ("T=+7e-3", "T=<num>"),
    ("80°C 231V 30ms 4.2kW", "<num>°C <num>V <num>ms <num>kW"),
    ("FS:750,12000|Ov:100,100>", "FS:<num>,<num>|Ov:<num>,<num>>"),
    ("MPos:12.500,-4.000,0.000", "MPos:<num>,<num>,<num>"),
    ("registers 5018-5019", "registers <num>-<num>"),
    ("[   48.45] x", "[<num>] x"),
    ("speed 1.234,5 rpm", "speed <num> rpm"),
    ("９２度", "<num>度"),
    ("T −5 °C", "T <num> °C"),
    # addresses
    ("from 10.1.2.3:502 to fe80::1", "from <addr>:<num> to <addr>"),
    ("mac 00:11:43:e3:ba:c3 up", "mac <mac> up"),
    ("mac AB-11-43-E3-BA-C3 up", "mac <mac> up"),
    ("iar 0x00106bc4", "iar <hex>"),
    ("trap 8c00004f000800c2", "trap <id>"),
    ("{6ba7b810-9dad-11d1-80b4-00c04fd430c8}", "{<uuid>}"),
    ("v6.1.7601.23505", "v<addr>"),
    ("PCI 0000:00:1d.0 and 0000:00:02.0", "PCI <addr> and <addr>"),
    ("from 1.2.3.4 (dsl-chn.touchtel.in) x", "from <addr> (<host>) x"),
    ("to mail.plant.local now", "to <host> now"),
    ("GET http://plc.local:80/cgi", "GET <url>/cgi"),
    # paths, names
    ("open /var/log/x.log:41", "open <path>:<num>"),
    (r"load C:\Windows\sys.dll", "load <path>"),
    ("user=op-7 rhost=pc.x user=root", "user=<name> rhost=<name> user=root"),
    ("""topic 'zigbee2mqtt/Halle Nord', x""", "topic '<name>', x"),
    ('{"asset_id":"C-301","t":1}', '{"asset_id":"<name>","t":<num>}'),
    # ids keep every letter that could be a word
    ("Pump 3 and axis2", "Pump <num> and axis<num>"),
    ("node-190 R02-M0-NA-C:J16-U11", "node-<num> <id>:<id>"),
    ("M-EXTRUDER-3", "M-EXTRUDER-<num>"),
    ("pv2_phase_1_volts", "pv<num>_phase_<num>_volts"),
    ("T0:210.4 /210 T1:24", "T<num>:<num> /<num> T<num>:<num>"),
    ("core.4900", "core.<num>"),
    ("sensor DS18B20", "sensor <id>"),
    # Chinese and German neighbours
    ("温度92度", "温度<num>度"),
    ("二车间3号空压机", "二车间<num>号空压机"),
    ("轴承温度过高 92℃", "轴承温度过高 <num>℃"),
    ("Störung Pumpe3 läuft", "Störung Pumpe<num> läuft"),
    # words stay
    ("android.intent.action.SCREEN_ON", "android.intent.action.SCREEN_ON"),
    ("//action:poweroff", "//action:poweroff"),
    ("Input/output error", "Input/output error"),
    ("May have 3", "May have <num>"),
]  # fmt: skip

ENUMERABLE = [
    ("Error 38", "Error <code>", "38"),
    ('{"code":33}', '{"code":<code>}', "33"),
    ("[Errno 111] refused", "[Errno <code>] refused", "111"),
    ("ret = -5", "ret = <code>", "-5"),
    ("error -71", "error <code>", "-71"),
    ("ALARM:1", "ALARM:<code>", "1"),
    ("drive F30002 stopped", "drive <code> stopped", "F30002"),
    ("SRVO-001 stop", "<code> stop", "SRVO-001"),
    ("Alarm E207", "Alarm <code>", "E207"),
    ("failed: 0x80040005", "failed: <code>", "0x80040005"),
    ("HRESULT = 0x80040005", "HRESULT = <code>", "0x80040005"),
    ("Bad (0x80000000)", "Bad (<code>)", "0x80000000"),
    ('"GET /x HTTP/1.1" 503 12', '"GET /x HTTP/1.1" <code> <num>', "503"),
    ("HTTP status 404", "HTTP status <code>", "404"),
    ("exit code 137", "exit code <code>", "137"),
    ("exited abnormally with [1]", "exited abnormally with [<code>]", "1"),
    ("open /dev/led0 failed (22)", "open <path> failed (<code>)", "22"),
    ("<134>1 up", "<<<code>><num> up", "134"),
    ("%LINK-3-UPDOWN: x", "%LINK-<code>-UPDOWN: x", "3"),
    ("IFNET/4/LINK_STATE", "IFNET/<code>/LINK_STATE", "4"),
    ("错误代码：226", "错误代码：<code>", "226"),
    ("读取失败: 263", "读取失败: <code>", "263"),
    ("报警 E12", "报警 <code>", "E12"),
    ("Fehler 17 an Achse 2", "Fehler <code> an Achse <num>", "17"),
    ("Störung: 5", "Störung: <code>", "5"),
    ("errorCode=7, last_error=9", "errorCode=<code>, last_error=<code>", "7|9"),
    ("running=1", "running=<code>", "1"),
    ('"alarm":"E207"', '"alarm":"<code>"', "E207"),
    # and what is none
    ("error 30ms late", "error <num>ms late", ""),
    ("error rate 0.5", "error rate <num>", ""),
    ("errors 5", "errors <num>", ""),
    ("Received new state 378.000", "Received new state <num>", ""),
    ("status 1128887986", "status <num>", ""),
    ("error 1076189965 1", "error <num> <num>", ""),
    ("barcode: 4012345", "barcode: <num>", ""),
    ("PUMP-101 ok", "PUMP-<num> ok", ""),
    ("序号: 5", "序号: <num>", ""),
    ("running=0.7", "running=<num>", ""),
]


@pytest.mark.parametrize(("line", "expected"), MASKED)
def test_masked(line: str, expected: str) -> None:
    assert sign(line).text == expected


@pytest.mark.parametrize(("line", "expected", "values"), ENUMERABLE)
def test_enumerable(line: str, expected: str, values: str) -> None:
    signature = sign(line)
    assert (signature.text, variant(line, signature)) == (expected, values)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Pump 3 hot", "Pump 14 hot"),
        ("T  80 x", "T 105 x"),
        ("[   48.4] x", "[515092.652821] x"),
        ("Jun  7 02:31:32 h", "Jun 17 22:31:32 h"),
        ("Sat Jul  9 12:16:49 2005", "Sun Jul 10 12:16:49 2005"),
        ("x 0x40", "x 0xEEFF"),
        ("CPU2: hot", "CPU6: hot"),
        ("温度92度", "温度105度"),
        ("T -5 °C", "T 12.5 °C"),
        ("user=op-1 x", "user=op.max x"),
        ("a\tb 1", "a b 2"),
        ("x 1 ", "x 2"),
    ],
)
def test_lines_of_one_pattern(one: str, other: str) -> None:
    assert sign(one).text == sign(other).text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("U1 230 I1 4", "I1 4 U1 230"),  # what a number is called belongs to the pattern
        ("T 80 °C", "T 80 °F"),
        ("T: 80", "T: nan"),
        ("x true", "x false"),
        ('{"a":null}', '{"a":"null"}'),
        ("//action:poweroff", "//action:pause"),
        ("SCREEN_ON", "SCREEN_OFF"),
        ("net.niff.up", "net.niff.down"),
        ("WARN x", "ERROR x"),
        ("a\nb", "a b"),
    ],
)
def test_lines_of_two_patterns(one: str, other: str) -> None:
    assert sign(one).text != sign(other).text


@pytest.mark.parametrize("kind", ["num", "time", "hex", "id", "code", "path", "name", "uuid"])
def test_text_cannot_pass_for_a_mask(kind: str) -> None:
    for line in (f"a <{kind}> b", f"a <<{kind}> b", f"a <<{kind}>> b"):
        signature = sign(line)
        assert signature.bounds == ()
        assert signature.text != f"a <{kind}> b"
    assert sign("a <num> 5").text == "a <<num> <num>"
    assert sign("a <5> b").text == "a <<<num>> b" != sign("a <<num>> b").text


def test_kinds_and_spans_are_exact() -> None:
    line = "  2026-01-05 08:00:01   Pump 3  at -4,5 °C  <x>"
    signature = sign(line)
    assert [(slot.kind, slot.span.of(line)) for slot in signature.slots] == [
        ("time", "2026-01-05 08:00:01"),
        ("num", "3"),
        ("num", "-4,5"),
    ]


def test_a_variant_is_bounded_and_still_tells_apart() -> None:
    long = " ".join(f"error={n}" for n in range(400))
    other = long + " error=401"
    assert len(variant(long, sign(long))) <= VARIANT_MAX
    assert variant(long, sign(long)) != variant(other.replace("=401", "=402"), sign(other))
    assert re.fullmatch(r".*#[0-9a-f]{32}", variant(long, sign(long)))


REPEATED = [
    "a.",
    "a-",
    "a_1-",
    "1,",
    "1.",
    "/a",
    "1:",
    "(",
    "a1",
    "Jan ",
    "fe80:",
    "'x",
    "a=",
    "x 1 ",
    "- ",
    "０",
    "-5",
]


@pytest.mark.parametrize("unit", REPEATED)
def test_long_repetitive_lines_are_signed(unit: str) -> None:
    """Each would take minutes if any form were tried again over the whole rest of the line."""
    line = unit * (100_000 // len(unit))
    assert len(sign(line).bounds) % 2 == 0


@pytest.mark.parametrize("line", ["", " ", "\ud800 5", "\x00\x01 7", "a\u0301 3", "🌡 92°C", "\u200b5"])
def test_odd_text(line: str) -> None:
    signature = sign(line)
    assert variant(line, signature) == ""
    assert all(line[slot.span.start : slot.span.end].strip() for slot in signature.slots)
