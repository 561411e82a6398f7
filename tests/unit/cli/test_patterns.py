"""What the book is said to know: no label that is not one."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.cli.patterns import _listed, _shown
from pipeline.fields import Profile
from pipeline.store.patterns import PatternRow, PlanRow

LINE = "widget frobbed 3 times"


def row(*plans: tuple[str, str | None, float]) -> PatternRow:
    """A pattern with a plan each of (variant, severity, confidence)."""
    fields = {
        "sure": {"digest": "x", "confidence": 0.9, "place": [["s", 0], ["s", 0]]},
        "guessed": {"digest": "x", "confidence": 0.5, "place": [["s", 0], ["s", 0]]},
        "open": {"digest": "x", "confidence": 0.0, "null": "unsure"},
        "absent": {"digest": "x", "confidence": 0.5, "null": "absent"},
    }

    def verdict(label: str | None, confidence: float) -> dict[str, Any]:
        choice = {"label": label, "confidence": confidence, "tier": "model"}
        return {"severity": choice, "category": choice, "action": choice, "transition": "raise"}

    made = (
        PlanRow(1, variant, {"fields": fields}, verdict(label, confidence), "m", 1, "trusted", 3, 7, 1)
        for variant, label, confidence in plans
    )
    return PatternRow(1, "p", "widget frobbed <num> times", LINE, 7, 1, 2, tuple(made))


@pytest.mark.parametrize(
    ("confidence", "severity"), [(0.8, "info"), (0.79, "unsure"), (0.668, "unsure"), (1.0, "info")]
)
def test_a_label_below_the_confidence_is_unsure(confidence: float, severity: str) -> None:
    known = row(("", "info", confidence))
    assert _listed(known, 0.8)["severity"] == severity
    plan = _shown(known, 0.8, None)["plans"]["-"]
    for what in ("severity", "category", "action"):
        said = plan["verdict"][what]
        assert (said["label"] is None) == (severity == "unsure") == (what in plan["unsure"])
        assert said.get("candidate") == ("info" if severity == "unsure" else None)
        assert said["confidence"] == confidence
    assert plan["unsure"][:2] == ["guessed", "open"], "absent is an answer"
    assert plan["verdict"]["transition"] == "raise"


def test_each_code_has_its_own() -> None:
    known = row(("17", "error", 0.9), ("18", "info", 0.5), ("19", None, 0.0))
    assert _listed(known, 0.8)["severity"] == "error,unsure"
    assert _listed(known, 0.4)["severity"] == "error,info,unsure"


def test_a_field_may_ask_for_more_or_less() -> None:
    fields = {
        name: {"type": "asset", "description": "x", "confidence_min": least}
        for name, least in (("sure", 0.95), ("guessed", 0.4))
    }
    plan = _shown(row(("", "info", 1.0)), 0.8, Profile.model_validate({"fields": fields}))["plans"]["-"]
    assert plan["unsure"] == ["sure", "open"]
