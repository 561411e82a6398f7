"""The demo's picture reads at any width of a terminal: a line a ticket, and what tells it apart is whole."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from pipeline.cli.demo import NAME_CHARS, _command, _panel, _says
from pipeline.demo.play import Picture, where_next

SUMMARY = dict.fromkeys(
    (
        *("lines", "lines_per_s", "readings", "tickets", "occurrences", "patterns"),
        *("model_reads", "discarded", "repeats"),
    ),
    1234,
)
NAMES = st.text("abcdefgh-0123", min_size=1, max_size=NAME_CHARS)
TICKETS = st.fixed_dictionaries(
    {
        "number": st.integers(1, 9999),
        "severity": st.sampled_from(["info", "warning", "error", "critical"]),
        "asset": NAMES | st.text(max_size=60),
        "cause": NAMES | st.text(max_size=60),
        "line": st.text(max_size=300),
        "evidence": st.just({}),
    }
)


def drawn(tickets: list[dict[str, Any]], width: int) -> list[str]:
    """The picture's lines on a terminal of that width."""
    console = Console(width=width, record=True, file=io.StringIO(), force_terminal=True)
    console.print(_panel(Picture(SUMMARY, "reading", 3, tickets, 4)))
    return console.export_text().splitlines()


@settings(max_examples=40)
@given(st.lists(TICKETS, min_size=1, max_size=8), st.sampled_from([80, 100, 140, 200]))
def test_every_ticket_is_one_line_with_its_number_severity_and_asset(
    tickets: list[dict[str, Any]], width: int
) -> None:
    lines = drawn(tickets, width)
    rows = lines[-1 - len(tickets) : -1]
    assert "what it says" in lines[-2 - len(tickets)]
    for ticket, row in zip(tickets, rows, strict=True):
        words = row.strip("│ ").split()
        assert words[:2] == [str(ticket["number"]), ticket["severity"]]
        if ticket["asset"].isascii() and ticket["asset"].replace("-", "").isalnum():
            assert words[2] in (ticket["asset"], ticket["asset"][: NAME_CHARS - 1] + "…")
    assert {cell_len(line) for line in lines} == {width}


def test_the_text_takes_what_is_left() -> None:
    ticket = {
        "number": 7,
        "severity": "critical",
        "asset": "robot-cell-1",
        "cause": "R-4410",
        "line": "x" * 300,
        "evidence": {},
    }
    assert [line.count("x") for width in (80, 140) for line in drawn([ticket], width)[-2:-1]] == [36, 96]


@pytest.mark.parametrize(
    ("line", "fields", "says"),
    [
        ("06:14 R1 code=R-21 vacuum too low", {"timestamp": "06:14", "error_code": "R-21"}, "vacuum too low"),
        (
            "06:14 R1 vacuum too low, R-21",
            {"timestamp": "06:14", "error_code": "R-21"},
            "R1 vacuum too low, R-21",
        ),
        ("[06:14] hydraulic low", {"timestamp": "06:14"}, "hydraulic low"),
        ("pressure = 18.4", {}, "pressure = 18.4"),
        ("stopped 06:14", {"timestamp": "06:14"}, "stopped 06:14"),
    ],
)
def test_what_stands_in_other_columns_is_not_repeated(line: str, fields: dict[str, str], says: str) -> None:
    spans = {
        name: {"span": [line.index(text), line.index(text) + len(text)]} for name, text in fields.items()
    }
    assert _says({"line": line, "evidence": {"line": line, "fields": spans}}) == says
    assert _says({"line": line, "evidence": {"line": line}}) == line


def test_what_comes_next_can_be_typed_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "andon").write_text("#!/bin/sh\n")
    (tmp_path / "andon").chmod(0o755)
    monkeypatch.setattr(sys, "argv", [".venv/bin/andon"])
    for path, command in ((str(tmp_path), "andon"), ("/nowhere", ".venv/bin/andon")):
        monkeypatch.setenv("PATH", path)
        assert where_next(Path("/d"), _command())[-1] == f"{command} status /d/site.yaml"
