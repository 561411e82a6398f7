"""Bytes to text: the encodings machines use, found or declared."""

from __future__ import annotations

import pytest

from pipeline.stages.encodings import TextDecoder, Undecodable

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


def test_what_was_found_is_remembered_for_lines_that_do_not_tell() -> None:
    decoder = TextDecoder()
    decoder.decode("Temperatur 温度 12 ok".encode("utf-16-le"))
    assert decoder.found == "utf-16-le"
    assert decoder.decode("温度过高".encode("utf-16-le")) == "温度过高"
    assert decoder.decode(b"plain ASCII still is") == "plain ASCII still is"


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
