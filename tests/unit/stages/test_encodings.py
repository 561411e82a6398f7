"""Bytes to text: the encodings machines use, found or declared."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.stages.encodings import EVIDENCE_PAYLOADS, TextDecoder, Undecodable

GBK = "2026-01-05 08:00:01 轴承温度过高 92℃"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (
            b"\xef\xbb\xbf2026-01-05 08:00:01 ERROR drive F30002\r\n",
            "2026-01-05 08:00:01 ERROR drive F30002\n",
        ),
        (b"a\r\nb\r\n\r\nc\r", "a\nb\n\nc"),
        (b"T\x00e\x00m\x00p\x00 \x007\x001\x00", "Temp 71"),
        ("Temp 71".encode("utf-16-be"), "Temp 71"),
        ("温度 71".encode("utf-16"), "温度 71"),
        ("Temp 71".encode("utf-32"), "Temp 71"),
        (GBK.encode("gbk"), GBK),
        ("轴承温度 92°C".encode(), "轴承温度 92°C"),
        ("92°C Überdruck".encode("cp1252"), "92°C Überdruck"),
        ("Stößel: Größe süß".encode("cp1252"), "Stößel: Größe süß"),
        ("A轴 Größe 温".encode("gbk", "ignore"), "A轴 Gre 温"),
        (b"one\x00 stray NUL in a longer line", "one stray NUL in a longer line"),
        (b"", ""),
    ],
)
def test_found_by_itself(data: bytes, text: str) -> None:
    assert TextDecoder().decode(data) == text


def test_each_line_of_a_payload_has_its_own_code_page() -> None:
    data = "过高\n".encode("gbk") + "过高\n".encode() + b"plain"
    assert TextDecoder().decode(data) == "过高\n过高\nplain"


def test_gbk_declared_and_utf16_delivered() -> None:
    assert TextDecoder("gbk").decode(GBK.encode("utf-16-le")) == GBK


def test_a_wrong_declaration_is_found_out() -> None:
    assert TextDecoder("ascii").decode("轴承".encode()) == "轴承"


def test_declared_encoding_wins_where_bytes_fit_several() -> None:
    assert TextDecoder("shift_jis").decode("温度".encode("shift_jis")) == "温度"


def test_a_wrong_line_under_a_declaration_leaves_the_others_alone() -> None:
    data = "温度\n".encode("shift_jis") + b"\xff\xff\n" + "圧力".encode("shift_jis")
    assert TextDecoder("shift_jis").lines(data) == ["温度", b"\xff\xff", "圧力"]


def test_a_narrow_payload_under_a_wide_declaration_stays_readable() -> None:
    assert TextDecoder("utf-16-le").decode(b"oven offline") == "oven offline"


WIDE = "Temperatur 温度 12 ok".encode("utf-16-le")
UNTOLD = "温度过高".encode("utf-16-le")  # no NUL: only what came before tells that it is UTF-16


def test_what_several_payloads_show_is_remembered_for_those_that_do_not_tell() -> None:
    decoder = TextDecoder()
    for _ in range(EVIDENCE_PAYLOADS):
        assert decoder.found is None
        decoder.decode(WIDE)
    assert decoder.found == "utf-16-le"
    assert decoder.decode(UNTOLD) == "温度过高"
    assert decoder.found == "utf-16-le", "and what memory alone decodes is no evidence against it"


@pytest.mark.parametrize("other", [b"plain ASCII", "größer".encode(), GBK.encode("gbk"), b"20 \xb0C"])
def test_what_is_remembered_is_dropped_when_it_stops_fitting(other: bytes) -> None:
    decoder = TextDecoder(found="utf-16-le")
    assert decoder.decode(other) == TextDecoder().decode(other)
    assert decoder.found is None


@pytest.mark.parametrize("other", [WIDE, "größer".encode(), "Öl über 20°".encode("cp1252")])
def test_gb18030_is_remembered_and_dropped_likewise(other: bytes) -> None:
    decoder = TextDecoder()
    either = b"\x8be 1"  # a character whose second byte is ASCII, or a Western sign and a letter
    assert decoder.decode(either) == either.decode("cp1252")
    for _ in range(EVIDENCE_PAYLOADS):
        decoder.decode(GBK.encode("gbk"))
    decoder.decode(b"plain ASCII fits as well")
    assert decoder.decode(either) == either.decode("gbk")
    decoder.decode(other)
    assert decoder.found is None
    assert decoder.decode(either) == either.decode("cp1252")


def test_evidence_is_of_payloads_in_a_row() -> None:
    decoder = TextDecoder()
    for _ in range(2 * EVIDENCE_PAYLOADS):
        decoder.decode(WIDE)
        decoder.decode("größer".encode())
    assert decoder.found is None
    decoder.lines((GBK + "\n").encode("gbk") * 2 * EVIDENCE_PAYLOADS)
    assert decoder.found is None, "many lines of one payload are one payload"


# What machines with an old code page write, and what stands between it when a line is damaged or another
# program writes into the same stream.
WESTERN = [
    "Ofen 4: Übertemperatur 20 °C Alarm",
    "Stößel klemmt, Größe 3",
    "pump 3 ok",
    "débit réglé à 4 m³/h",
]
ODD = [
    b"\xff\xfe bad",
    b"\xfe\xff bad",
    b"\xff\xfe\0\0 bad",
    codecs.BOM_UTF16_LE + WIDE * 20,
    WIDE * 20,
    codecs.BOM_UTF16_BE + "Temperatur 12".encode("utf-16-be") * 20,
    b"\xff\xff\xff\x81",
    GBK.encode("gbk"),
    codecs.BOM_UTF8 + GBK.encode(),
    b"\0\0\0\0\0\0",
]


@given(st.lists(st.sampled_from(WESTERN), min_size=1), st.sampled_from(ODD), st.data())
def test_one_odd_line_decides_nothing_for_others(lines: list[str], odd: bytes, data: st.DataObject) -> None:
    """Neither in its own payload nor in later ones."""
    at = data.draw(st.integers(0, len(lines)))
    raw = [line.encode("cp1252") for line in lines]
    together = TextDecoder().lines(b"\n".join([*raw[:at], odd, *raw[at:]]))
    assert [*together[:at], *together[at + 1 :]] == lines
    decoder = TextDecoder()
    found = [decoder.lines(line) for line in [*raw[:at], odd, *raw[at:]]]
    assert [line for one in found[:at] + found[at + 1 :] for line in one] == lines
    assert decoder.found in (None, "cp1252")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@given(lines=st.lists(st.sampled_from([*WESTERN, GBK, "上升", "上料台上", "机械手", ""]), min_size=1))
def test_a_wide_payload_is_wide_as_a_whole(encoding: str, lines: list[str]) -> None:
    """Also where a character holds the byte of a line feed, as 上 does."""
    text = "\n".join([*lines, "2026-01-05 08:00:01 end", ""])
    assert "\n".join(map(str, TextDecoder().lines(text.encode(encoding)))) == text


def test_lines_of_a_utf16_file_cut_at_the_line_feed_byte() -> None:
    decoder = TextDecoder()
    pieces = "Temp 71\nTemp 72\nTemp 73\n".encode("utf-16-le").split(b"\n")
    assert [decoder.decode(piece) for piece in pieces[:3]] == ["Temp 71", "Temp 72", "Temp 73"]
    big = "Temp 71\nTemp 72\n".encode("utf-16-be").split(b"\n")
    assert [TextDecoder().decode(piece) for piece in big[:2]] == ["Temp 71", "Temp 72"]


@pytest.mark.parametrize("data", [b"\x81", b"\xff\xff\xff", b"\xff\xfe\xff", b"ok \x80\xff bytes"])
def test_bytes_that_are_no_text_are_said_to_be(data: bytes) -> None:
    with pytest.raises(Undecodable):
        TextDecoder().decode(data)
