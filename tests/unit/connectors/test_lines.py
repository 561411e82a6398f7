"""Bytes cut into payloads of whole lines: nothing lost, nothing added, no line in two payloads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.lines import LINE_MAX, PAYLOAD_BYTES, PAYLOAD_LINES, LineCutter, newline_of

TEXT = st.lists(
    st.sampled_from(["", "a", "ERROR drive F30002", "温度过高 92℃", "\u0a00\u000a0", "x" * 500])
).map("\n".join)


def cut(data: bytes, newline: bytes, sizes: list[int]) -> list[bytes]:
    cutter = LineCutter(newline)
    payloads, start = [], 0
    for size in sizes:
        payloads += cutter.feed(data[start : start + size])
        start += size
    payloads += cutter.feed(data[start:])
    return payloads + cutter.finish()


@pytest.mark.parametrize(
    ("encoding", "newline"), [("utf-8", b"\n"), ("utf-16-le", b"\n\0"), ("utf-16-be", b"\0\n")]
)
@given(text=TEXT, sizes=st.lists(st.integers(0, 50), max_size=20))
def test_no_byte_is_lost_and_no_line_is_cut(
    encoding: str, newline: bytes, text: str, sizes: list[int]
) -> None:
    data = text.encode(encoding)
    payloads = cut(data, newline, sizes)
    assert b"".join(payloads) == data
    for payload in payloads[:-1]:
        assert payload.decode(encoding).endswith("\n")
        assert len(payload.decode(encoding).splitlines()) <= PAYLOAD_LINES


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=600))
def test_payloads_keep_within_their_bounds(lengths: list[int]) -> None:
    data = b"".join(b"x" * length + b"\n" for length in lengths)
    for payload in cut(data, b"\n", [len(data)]):
        assert payload.count(b"\n") <= PAYLOAD_LINES
        assert len(payload) <= PAYLOAD_BYTES or payload.count(b"\n") == 1


def test_lines_come_together() -> None:
    assert len(cut(b"short line\n" * 1000, b"\n", [])) == 4


def test_a_long_line_comes_whole() -> None:
    cutter = LineCutter()
    line = b"x" * (LINE_MAX - 1)
    assert cutter.feed(line) == []
    assert cutter.feed(b"\nnext\n") == [line + b"\n", b"next\n"]
    assert cutter.splits == 0


def test_a_monstrous_line_is_split_and_counted() -> None:
    cutter = LineCutter()
    line = b"x" * (2 * LINE_MAX + 5)
    payloads = cutter.feed(line) + cutter.feed(b"\n")
    assert b"".join(payloads) == line + b"\n"
    assert cutter.splits == 2


def test_searching_a_growing_line_is_not_quadratic() -> None:
    """A megabyte that drips in: each byte is looked at once. (Quadratic, this takes minutes.)"""
    cutter = LineCutter()
    for _ in range(20_000):
        cutter.feed(b"x" * 50)
    assert cutter.feed(b"\n")


@pytest.mark.parametrize(
    ("head", "encoding", "newline"),
    [
        (b"plain text", None, b"\n"),
        (b"", None, b"\n"),
        (b"\xff\xfeT\0", None, b"\n\0"),
        (b"\xfe\xff\0T", None, b"\0\n"),
        (b"\xff\xfe bad\nOfen 4: \xdcbertemperatur 20 \xb0C\n", None, b"\n"),
        ("Temp 71 degrees\n".encode("utf-16") + b"plain line\n" * 9, None, b"\n"),
        ("温度\n上升\n".encode("utf-16"), None, b"\n\0"),
        ("Temp 71 degrees".encode("utf-16-le"), None, b"\n\0"),
        ("Temp 71 degrees".encode("utf-16-be"), None, b"\0\n"),
        (b"\xfe\xff\0T", "utf-16", b"\0\n"),
        (b"T\0", "UTF_16_LE", b"\n\0"),
        (b"T\0", "utf-16", b"\n\0"),
        (b"\xd6\xe1\xb3\xd0\xce\xc2\xb6\xc8\xb9\xfd\xb8\xdf 92", None, b"\n"),
        (b"\0" * 64, None, b"\n"),
    ],
)
def test_what_ends_a_line(head: bytes, encoding: str | None, newline: bytes) -> None:
    assert newline_of(head, encoding) == newline
