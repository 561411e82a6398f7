"""The table of questions: one row a question, whatever the line is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.cli.review import LINE_CHARS, brief


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("press7 hot", "press7 hot"),
        ("ERROR poll failed\n\tat a.b.C(D.java:10)", "ERROR poll failed at a.b.C(D.java:10)"),
        ("\x1b[31mred\x1b[0m \u202egnp.exe", "\\x1b[31mred\\x1b[0m \\u202egnp.exe"),
        ("x" * LINE_CHARS, "x" * LINE_CHARS),
        ("x" * 1_000_000, "x" * LINE_CHARS + "… [cut, 1000000 characters: see show]"),
        ("\0" * LINE_CHARS, "\\x00" * (LINE_CHARS // 4) + f"… [cut, {LINE_CHARS} characters: see show]"),
    ],
)
def test_a_line_is_one_row(line: str, shown: str) -> None:
    assert brief(line) == shown


def test_the_beginning_of_something_longer_is_said_to_be_one() -> None:
    assert brief("x" * 4096, 1_000_000) == "x" * LINE_CHARS + "… [cut, 1000000 bytes: see show]"
    assert brief(" x ", 1_000_000) == "x… [cut, 1000000 bytes: see show]"


@given(st.text(max_size=3 * LINE_CHARS))
def test_nothing_is_cut_without_saying_so(line: str) -> None:
    shown = brief(line)
    assert shown.isprintable() or not shown
    assert len(shown) <= LINE_CHARS + 60
    if "… [cut, " not in shown:
        assert "".join(shown.split()) == "".join(
            c if c.isprintable() else repr(c)[1:-1] for c in "".join(line.split())
        )
