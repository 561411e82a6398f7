"""Bins of confidence, the calibration error, and what leaves without a person."""

from __future__ import annotations

import random

import pytest

from pipeline.fields.definition import FieldConfig, Profile
from pipeline.model import bounds
from pipeline.model.calibrate import Evidence
from pipeline.model.evaluate import Labelled
from pipeline.model.reliability import Bin, Reliability, bins, calibration_error
from schemas.extraction import Choice, Extraction, FieldType, FieldValue, Span, Tier, Verdict

PROFILE = Profile(
    fields={
        "hot": FieldConfig(type=FieldType.QUANTITY, description="temperature"),
        "bar": FieldConfig(type=FieldType.QUANTITY, description="pressure"),
        "note": FieldConfig(type=FieldType.TEXT, description="note"),
    }
)


def of(*answers: tuple[float, bool]) -> Evidence:
    return Evidence([(line, confidence, right) for line, (confidence, right) in enumerate(answers)])


def read(**spans: tuple[int, float]) -> Verdict:
    """Fields by name: where their one character stands, and how sure that is."""
    fields = {
        name: FieldValue(Span(at, at + 1), None, confidence=confidence)
        for name, (at, confidence) in spans.items()
    }
    return Verdict(Extraction(fields, "scripted", Tier.MODEL), Choice("error", 0.7), Choice())


def test_bins_hold_their_upper_edge_and_empty_ones_are_left_out() -> None:
    found = bins(of((0.0, False), (0.5, True), (0.9, True), (0.901, False), (1.0, True)))
    assert [(one.low, one.high, one.n, one.right) for one in found] == [
        (0.0, 0.5, 2, 0.5),
        (0.8, 0.9, 1, 1.0),
        (0.9, 0.95, 1, 0.0),
        (0.98, 1.0, 1, 1.0),
    ]
    assert found[0].mean_confidence == 0.25


def test_the_calibration_error_is_the_gap_weighed_by_answers() -> None:
    assert calibration_error([Bin(0, 0.5, 3, 0.4, 0.4), Bin(0.5, 0.6, 1, 0.6, 1.0)]) == pytest.approx(0.1)
    assert calibration_error(bins(of((1.0, False), (1.0, False)))) == 1.0
    assert calibration_error([]) is None


def test_an_honest_reader_has_a_small_error_and_a_boaster_a_large_one() -> None:
    rng = random.Random(5)
    honest = [(c, rng.random() < c) for c in (rng.uniform(0.3, 1) for _ in range(20_000))]
    boasting = [(c + (1 - c) / 2, right) for c, right in honest]
    small, large = (calibration_error(bins(of(*answers))) for answers in (honest, boasting))
    assert small is not None and small < 0.02
    assert large is not None and large > 0.1


def watched() -> Reliability:
    watch = Reliability(PROFILE, 0.85)
    line = "1 2 3"
    watch.see(
        Labelled(line=line, fields={"hot": "1", "bar": "2", "note": None}, severity="error"),
        read(hot=(0, 0.99), bar=(4, 0.9)),
    )
    watch.see(Labelled(line=line, fields={"hot": None, "note": None}), read(hot=(0, 0.6)))
    watch.see(Labelled(line=line, fields={"hot": "3", "note": None}, severity="info"), read(hot=(4, 0.97)))
    return watch


def test_rates_over_fields_and_whole_lines() -> None:
    assert watched().rates() == {"false_fill_rate": 0.25, "line_exact": 0.3333}
    assert Reliability(PROFILE, 0.85).rates() == {"false_fill_rate": None, "line_exact": None}


def test_what_is_accepted_counts_lines_and_bounds_their_errors() -> None:
    rows = {(row["kind"], row["name"]): row for row in watched().report()}
    assert list(rows) == [
        ("all", "every field"),
        ("type", "quantity"),
        ("type", "text"),
        ("decision", "severity"),
    ]
    assert rows["type", "quantity"]["n"] == 4
    at = {each["threshold"]: each for each in rows["type", "quantity"]["accepted"]}
    assert list(at) == [0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99]
    assert at[0.85] == {
        "threshold": 0.85,
        "accepted": 2,
        "errors": 1,
        "error_rate": 0.5,
        "upper": round(bounds.upper(1, 2, 0.95), 4),
        "coverage": 0.75,
    }
    assert (at[0.5]["accepted"], at[0.5]["errors"], at[0.99]["errors"]) == (3, 2, 0)


def test_nothing_accepted_has_no_rate_and_no_bound() -> None:
    (row,) = Reliability(PROFILE, 0.85).report()
    assert (row["n"], row["calibration_error"], row["bins"]) == (0, None, [])
    assert {(a["error_rate"], a["upper"], a["coverage"]) for a in row["accepted"]} == {(None, 1.0, None)}
