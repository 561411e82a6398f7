"""Codes by their place and by their shape, as E1 to E8 of the labelling rules have them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pipeline.fields import Context, FieldConfig, Profile, normalise
from schemas.extraction import Candidate, FieldType, Span

Offered = Callable[..., dict[str, Candidate]]


@pytest.mark.parametrize(
    ("line", "raw", "form"),
    [
        ("ALARM:1", "ALARM:1", "class_number"),
        ("error:20", "error:20", "class_number"),
        ("%LINK-3-UPDOWN: Interface down", "%LINK-3-UPDOWN", "mnemonic"),
        ("IFNET/4/LINK_STATE: changed", "IFNET/4/LINK_STATE", "mnemonic"),
        ("engine SPN 157 FMI 16 active", "SPN 157 FMI 16", "spn_fmi"),
        ("Under-voltage detected! (0x00050005)", "0x00050005", "hex"),
        ("EtherCAT failed, AL status code 0x001D", "0x001D", "labelled"),
        ("ERR. C051H station=5", "C051H", "labelled"),
        ("Event ID 16# 4562 STOP", "16# 4562", "labelled"),
        ("i2c TXABRT=I2C_TXABRT_ABRT_7B_ADDR", "I2C_TXABRT_ABRT_7B_ADDR", "constant"),
        ("quality BadSensorFailure", "BadSensorFailure", "status_name"),
        ("connect: ECONNREFUSED", "ECONNREFUSED", "errno_name"),
        ("SRVO-062 BZAL alarm (Group:1 Axis:3)", "SRVO-062", "letters_digits"),
        ("C153A2: Protective stop", "C153A2", "letters_digits"),
        ("IS620P-07 Er.740 编码器干扰", "Er.740", "letters_digits"),
        ("usb 1-1.3: descriptor read, error -71", "-71", "labelled"),
        ("sensor_read,172 ret = -5", "-5", "labelled"),
        ("Connection failed: [Errno 111] refused", "111", "labelled"),
        ("failed (Data request failed with 'No route' (205))", "205", "parenthesised"),
        ("open /dev/led0 failed (22)", "22", "labelled"),
        ("303 | DC module overheating | Alarm", "303", "leading"),
        ("Alarm;4711;K;Pumpe", "4711", "labelled"),
        ("25201 Axis Z1 drive fault", "25201", "event_number"),
        ('"POST /api HTTP/1.1" 502 157', "502", "http_status"),
        ("MB_MASTER: 读取寄存器失败: 263", "263", "labelled"),
        ("错误代码：226", "226", "labelled"),
        ("3号电梯 故障代码E38 层门", "E38", "labelled"),
        ("Störung 4242: Resonatordruck", "4242", "labelled"),
        ("Fehler F08 Drehzahl", "F08", "labelled"),
        ("received hmu Currenterror QQ=f1: 701;-;-", "701", "labelled"),
        ('{"print_error":117473284,"hms":[]}', "117473284", "labelled"),
        ('{"errorCode":"GroundFailure"}', "GroundFailure", "labelled"),
        ("area:DRAM err_code:0008:00c2 socket:1", "0008:00c2", "labelled"),
        ("KERNDTLB 1118539147 2005.06.11 R30", "KERNDTLB", "leading_caps"),
    ],
)
def test_code(offered: Offered, line: str, raw: str, form: str) -> None:
    found = offered(line, FieldType.CODE)
    assert raw in found, found
    assert found[raw].form == form


def test_an_all_ones_register_is_bad(offered: Offered) -> None:
    assert offered("status 0xFFFF", FieldType.CODE)["0xFFFF"].bad


def test_known_codes_are_found_however_they_look(offered: Offered) -> None:
    config = FieldConfig(type="code", description="fault", known=["Übertemp", "7"])
    profile = Profile(fields={"code": config})
    found = offered("Presse: Übertemp an Zone 7", FieldType.CODE, profile)
    assert {raw for raw, candidate in found.items() if candidate.form == "known"} == {"Übertemp", "7"}


def test_codes_keep_their_case_and_unknown_ones_are_refused(berlin: Context) -> None:
    config = FieldConfig(type="code", description="fault", known=["E207", "F1"])

    def worth(raw: str) -> tuple[object, str | None]:
        found = normalise(raw, Span(0, len(raw)), config, berlin)
        return found.value, found.problem

    assert worth("E207") == ("E207", None)
    assert worth("e207") == ("e207", "unknown_code")
    free = FieldConfig(type="code", description="fault")
    assert normalise("e207", Span(0, 4), free, berlin).problem is None
