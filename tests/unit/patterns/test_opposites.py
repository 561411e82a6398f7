"""Never two opposite events in one pattern: they would share one decision."""

from __future__ import annotations

from itertools import chain

import pytest

from pipeline.patterns.signature import sign, variant

_ENGLISH = (
    "on/off ON/OFF On/Off up/down UP/DOWN open/closed opened/closed opening/closing open/close "
    "started/stopped start/stop starting/stopping running/stopped run/halt enabled/disabled "
    "enable/disable active/inactive online/offline connected/disconnected connect/disconnect "
    "available/unavailable locked/unlocked armed/disarmed high/low HIGH/LOW hi/lo success/failure "
    "succeeded/failed ok/nok OK/FAULT pass/fail normal/abnormal normal/critical healthy/faulty "
    "valid/invalid true/false yes/no raised/cleared set/reset set/clr trip/reset alarm/rtn in/out "
    "inserted/removed attached/detached loaded/unloaded gained/lost lost/restored mounted/unmounted "
    "charging/discharging heating/cooling forward/reverse fwd/rev cw/ccw increase/decrease rising/falling "
    "over/under above/below full/empty hot/cold manual/auto remote/local busy/idle ready/unready "
    "allowed/denied accepted/rejected login/logout entered/left on/standby poweron/poweroff "
    "engaged/disengaged extended/retracted clamped/unclamped "
)

_GERMAN = (
    "ein/aus EIN/AUS auf/zu offen/geschlossen geöffnet/geschlossen gestartet/gestoppt läuft/steht "
    "aktiv/inaktiv aktiviert/deaktiviert verbunden/getrennt freigegeben/gesperrt "
    "erfolgreich/fehlgeschlagen gekommen/gegangen kommt/geht bereit/gestört ausgelöst/zurückgesetzt "
    "eingeschaltet/ausgeschaltet voll/leer hoch/niedrig heiß/kalt hand/automatik links/rechts "
    "vorwärts/rückwärts verriegelt/entriegelt überschritten/unterschritten "
)

_CHINESE = (
    "开/关 开启/关闭 打开/关闭 启动/停止 运行/停止 投入/退出 合闸/分闸 合位/分位 成功/失败 正常/异常 "
    "正常/故障 动作/复归 报警/恢复 告警/消除 在线/离线 连接/断开 接通/断路 有效/无效 允许/禁止 上升/下降 "
    "升高/降低 过高/过低 高/低 满/空 自动/手动 远方/就地 锁定/解锁 加载/卸载 充电/放电 投/切 通/断 "
    "合/分 启/停 "
)
PAIRS = [pair.split("/") for pair in (_ENGLISH + _GERMAN + _CHINESE).split()]

CONTEXTS = [
    "2026-01-05 08:00:01 Pump 3 {}",
    "Pump 3 {} after 12.5 s",
    "2026-01-05 08:00:01 {} valve-7 (TT-101)",
    "[{}] axis2",
    "state={}",
    "state: {}",
    'state is now "{}"',
    "Mode changed to '{}' at 12:30:05",
    '{{"id":"K1","state":"{}","t":21.5}}',
    '{{"device":"K1","{}":5}}',
    "plant/line1/pump3/{}",
    "topic 'plant/line1/pump3/{}', 5",
    "/api/v1/heater/{}",
    "device '{}' 5",
    "device={} t=5",
    "pump3_{}",
    "pump3_{}_2",
    "{}_pump3",
    "K1_{}_2",
    "K1-{}-2 t=5",
    "M0-{}-C1",
    "K1 {} 7",
    "relay.{}.k1",
    "RELAY_{} K1 12",
    "http://plc.local/{}",
    "{}: 5",
    "{}(3)",
    "设备3号{}",
    "水泵 {} 2号",
]


def test_there_are_enough_pairs() -> None:
    assert len(PAIRS) >= 120
    assert all(len(pair) == 2 and pair[0] != pair[1] for pair in PAIRS)


@pytest.mark.parametrize("context", CONTEXTS)
def test_opposites_never_share_a_pattern(context: str) -> None:
    met = [pair for pair in PAIRS if _key(context.format(pair[0])) == _key(context.format(pair[1]))]
    assert met == []


@pytest.mark.parametrize(
    "context", ["{}1", "1{}", "{}1{}", "a1{}2", "K{}1", "{}_1", "1_{}_2", "a1_{}", "x1-{}-y2"]
)
def test_opposites_glued_to_digits_never_share_a_pattern(context: str) -> None:
    met = [
        pair for pair in PAIRS if _key(context.replace("{}", pair[0])) == _key(context.replace("{}", pair[1]))
    ]
    assert met == []


@pytest.mark.parametrize(
    "key",
    "enabled running alarm fault active open closed ok status state value val ready online tripped".split(),
)
@pytest.mark.parametrize(
    "form", ["{}=0", "{}: 0", '"{}":0', '"{}": "0"', "pump_{}=0", '"pump{}":0', "last {} = 0"]
)
def test_zero_and_one_of_a_flag_never_share_a_variant(key: str, form: str) -> None:
    line = form.format(key.title() if "pump{" in form else key)
    assert _key(line) != _key(line.replace("0", "1"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Alarm E207 on axis 2", "Alarm E208 on axis 2"),
        ("status=200 in 5 ms", "status=500 in 5 ms"),
        ("exit code 0", "exit code 1"),
        ("error 0 after 5 s", "error 5 after 5 s"),
        ("SRVO-001 x", "SRVO-002 x"),
        ("F30002 x", "A30002 x"),
        ("<134>x", "<131>x"),
        ("%LINK-3-UPDOWN: x", "%LINK-5-UPDOWN: x"),
        ("level=3 x", "level=6 x"),
        ("返回值: 0", "返回值: -1"),
        ("故障码 12", "故障码 13"),
        ("HRESULT=0x80070005", "HRESULT=0x00000000"),
        ('{"CKType":"YX","Value":"0"}', '{"CKType":"YX","Value":"1"}'),
    ],
)
def test_values_that_decide_are_in_the_variant(one: str, other: str) -> None:
    assert sign(one).text == sign(other).text or _key(one) != _key(other)
    assert variant(one, sign(one)) != variant(other, sign(other)) or sign(one).text != sign(other).text


def _key(line: str) -> tuple[str, str]:
    signature = sign(line)
    return signature.text, variant(line, signature)


def test_every_word_of_every_pair_is_in_its_signature() -> None:
    for word in chain.from_iterable(PAIRS):
        assert word in sign(f"2026-01-05 08:00:01 Pump 3 {word} 5").text
