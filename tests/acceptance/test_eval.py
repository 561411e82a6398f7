"""How well lines are read: floors on our own labelled lines and on the shared set, through `andon eval`'s
logic.

The floors lie a little under what was measured, so that a loss of quality is seen and noise is not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import needs
import pytest

from pipeline import config
from pipeline.model import evaluate
from pipeline.model.reader import ModelReader
from pipeline.model.rules import RulesReader
from pipeline.model.runtime import Reader
from schemas.errors import ModelMissing

OWN = Path(__file__).with_name("lines.jsonl")
SITE = config.builtin()
FIELDS = (
    "timestamp",
    "device",
    "error_code",
    "temperature",
    "pressure",
    "vibration",
    "current",
    "voltage",
    "speed",
)


def run(rows: list[evaluate.Labelled], reader: Reader) -> dict[str, Any]:
    return evaluate.evaluate(
        rows, reader, SITE.profiles["machine-log"], SITE.labels, confidence_min=SITE.review.confidence_min
    )


def false_fill(report: dict[str, Any], rows: list[evaluate.Labelled]) -> float:
    empty = sum(value is None for row in rows for value in row.fields.values())
    filled: int = sum(score["false_fill"] for score in report["fields"].values())
    return filled / empty


def test_rules_alone_on_our_own_lines() -> None:
    rows = evaluate.load(OWN)
    report = run(rows, RulesReader())
    assert tuple(report["fields"]) == FIELDS
    assert report["ungrounded"] == report["model_reads"] == 0
    assert report["nonnull_exact"] >= 0.80
    assert false_fill(report, rows) <= 0.03
    assert report["severity_accuracy"] >= 0.82
    assert report["category_accuracy"] >= 0.72


def test_rules_alone_on_the_shared_lines(shared: Path) -> None:
    rows = evaluate.load(shared / "data" / "dev.jsonl")
    report = run(rows, RulesReader())
    assert report["lines"] == 316
    assert report["ungrounded"] == 0
    assert report["nonnull_exact"] >= 0.80
    assert false_fill(report, rows) <= 0.03
    assert report["severity_accuracy"] >= 0.80
    assert report["category_accuracy"] >= 0.72


@pytest.mark.model
@pytest.mark.timeout(300)
def test_the_real_model_on_our_own_lines() -> None:
    """Every fourth line, for the time it takes; `andon eval` reads them all."""
    rows = evaluate.load(OWN)[::4]
    try:
        reader = ModelReader.open(SITE.model)
    except ModelMissing as error:
        needs.missing(str(error))
    try:
        report = run(rows, reader)
    finally:
        reader.close()
    assert report["model_reads"] == len(rows)
    assert report["ungrounded"] == 0
    assert report["nonnull_exact"] >= 0.75
    assert false_fill(report, rows) <= 0.04
    assert report["severity_accuracy"] >= 0.78
