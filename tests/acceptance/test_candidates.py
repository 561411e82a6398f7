"""The right span of every labelled field is among the candidates, and the candidates are few."""

from __future__ import annotations

from pathlib import Path

import pytest
import recall

FLOOR = 0.98
CANDIDATES_A_LINE = 12.0


@pytest.fixture(scope="module")
def measured(shared: Path) -> recall.Recall:
    path = shared / "data" / "dev.jsonl"
    if not path.is_file():
        pytest.skip("no labelled lines (shared/data/dev.jsonl) beside the repository")
    return recall.measure(recall.labelled(path), recall.machine_log())


@pytest.mark.parametrize("name", sorted(recall.machine_log().fields))
def test_the_right_span_of_each_field_is_a_candidate(measured: recall.Recall, name: str) -> None:
    missed = [(line, span) for line, field, span in measured.missed if field == name]
    assert measured.of(name) >= FLOOR, missed


def test_a_line_has_few_candidates(measured: recall.Recall) -> None:
    assert measured.candidates_a_line <= CANDIDATES_A_LINE
