"""`andon model calibrate` and `andon eval --reliability`, with the rules as reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from andon import andon, well

from pipeline import config
from pipeline.cli.model import snippet
from pipeline.model.calibrate import Curve, Evidence, Finding, Goal, Kind, Status
from schemas.extraction import FieldType

RULES = "model: {enabled: false}\n"
OWN = """\
model: {enabled: false}
profiles:
  hall:
    fields:
      heat: {type: quantity, description: "temperature: that was 'measured', no #setpoint", unit: °C}
      no: {type: code, description: the alarm code, known: {csv: codes.csv}}
      "on": {type: choice, description: state, choices: ["on", "1.0", "null"], confidence_min: 0.7}
"""
GROUP_KEYS = [
    *("kind", "name", "status", "threshold", "at", "n", "accepted", "errors", "error_rate", "upper"),
    *("coverage", "missed", "needed"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Forty lines of one pattern, whose temperatures are read right; the devices are not the point."""
    rows = [
        {
            "line": f"oven {n} temperature {50 + n} °C",
            "fields": {
                "temperature": str(50 + n),
                "heat": str(50 + n),
                "device": "oven" if n == 39 else None,
            },
            "severity": "info",
        }
        for n in range(40)
    ]
    (tmp_path / "lines.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "site.yaml").write_text(RULES)
    (tmp_path / "own.yaml").write_text(OWN)
    (tmp_path / "codes.csv").write_text("code,description\nE1,hot\n")
    return tmp_path


def calibrated(folder: Path, *options: str, site: str = "site.yaml") -> dict[str, Any]:
    return well("model", "calibrate", "lines.jsonl", "--config", site, "--json", *options, cwd=folder).record


def test_enough_right_lines_are_certified_and_too_few_are_told_how_many_they_lack(folder: Path) -> None:
    record = calibrated(folder, "--target-precision", "0.9")
    groups = record.pop("groups")
    assert record.pop("seconds") >= 0
    assert record == {
        "target_precision": 0.9,
        "confidence": 0.95,
        "needed": 29,
        "lines": 40,
        "profile": "machine-log",
        "reader": "rules:1",
    }
    assert all(list(group) == GROUP_KEYS for group in groups)
    assert [group["kind"] for group in groups if group["kind"] != "pattern"] == [
        *("all", "type", "type", "field", "field", "decision")
    ]
    found = {group["name"]: group for group in groups}
    heat = found["temperature"]
    assert (heat["status"], heat["n"], heat["errors"]) == ("certified", 40, 0)
    assert heat["threshold"] == heat["at"] > 0.5
    assert heat["upper"] == pytest.approx(1 - 0.05 ** (1 / 40), abs=1e-5)
    strict = {group["name"]: group for group in calibrated(folder)["groups"]}["temperature"]
    assert (strict["status"], strict["threshold"], strict["needed"]) == ("too_few", None, 299)
    assert strict["at"] == 0.8


def test_a_pattern_is_a_group(folder: Path) -> None:
    groups = calibrated(folder, "--target-precision", "0.9")["groups"]
    (pattern,) = [group for group in groups if group["kind"] == "pattern"]
    assert "temperature" in pattern["name"] and "°C" in pattern["name"]
    assert pattern["n"] == 40


def test_people_get_a_table_and_are_told_what_is_missing(folder: Path) -> None:
    ran = well("model", "calibrate", "lines.jsonl", "--config", "site.yaml", cwd=folder)
    assert "299 right ones would do" in ran.out
    assert "1 patterns have too few lines" in ran.out
    assert (
        "certified"
        in well(
            *("model", "calibrate", "lines.jsonl", "--config", "site.yaml", "--target-precision", "0.9"),
            cwd=folder,
        ).out
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--target-precision", "1"), "--target-precision is a share between 0 and 1, both excluded; got 1"),
        (("--confidence", "0"), "--confidence is a share between 0 and 1"),
        (("--target-precision", "0.9999999999999"), "ask for less"),
        (("--profile", "none"), "no profile 'none'; there are: machine-log"),
    ],
)
def test_what_cannot_be_asked_for(folder: Path, options: tuple[str, str], words: str) -> None:
    ran = andon("model", "calibrate", "lines.jsonl", "--config", "site.yaml", *options, cwd=folder)
    assert ran.code == 2
    assert words in " ".join(ran.err.replace("│", " ").split())


# --- the piece of a site file -------------------------------------------------------------------------------


def test_the_written_profile_is_a_site_file_that_holds_the_threshold(folder: Path) -> None:
    record = calibrated(folder, "--target-precision", "0.9", "--output", "piece.yaml")
    piece = config.load(folder / "piece.yaml")
    heat = {group["name"]: group for group in record["groups"]}["temperature"]["threshold"]
    before = config.builtin().profiles["machine-log"]
    after = piece.profiles["machine-log"]
    assert after.confidence_min("temperature", 0.0) == heat
    assert after.confidence_min("voltage", 0.0) == 0.0
    assert {name: field.digest() for name, field in after.fields.items()} == {
        name: field.digest() for name, field in before.fields.items()
    }, "no plan is taught anew"


def test_ones_own_profile_is_written_as_it_stands_in_the_site_file(folder: Path) -> None:
    calibrated(
        *(folder, "--target-precision", "0.9", "--profile", "hall", "--output", "piece.yaml"), site="own.yaml"
    )
    before, after = (config.load(folder / name).profiles["hall"] for name in ("own.yaml", "piece.yaml"))
    assert after.confidence_min("heat", 0.0) > 0.0
    assert after.confidence_min("on", 0.0) == 0.7
    assert [(name, field.digest()) for name, field in after.fields.items()] == [
        (name, field.digest()) for name, field in before.fields.items()
    ]
    assert 'known: {"csv": "codes.csv"}' in (folder / "piece.yaml").read_text()


def test_with_nothing_certified_the_piece_changes_nothing(folder: Path) -> None:
    calibrated(folder, "--output", "piece.yaml")
    piece = (folder / "piece.yaml").read_text()
    assert config.loads(RULES + piece).model_dump() == config.loads(RULES).model_dump()
    assert "# temperature: not certified, too few sure lines (40; 299" in piece


def test_a_place_that_cannot_be_written_is_said(folder: Path) -> None:
    ran = andon(
        *("model", "calibrate", "lines.jsonl", "--config", "site.yaml", "--output", "no/piece.yaml"),
        cwd=folder,
    )
    assert (ran.code, "no/piece.yaml: cannot be written" in ran.err) == (3, True)


def finding(kind: Kind, name: str, threshold: float | None) -> Finding:
    counts = Curve(Evidence()).at(threshold or 0.8)
    status = Status.TOO_FEW if threshold is None else Status.CERTIFIED
    return Finding(kind, name, status, counts, counts, 0, 0, 0, 0.0, 0)


@pytest.mark.parametrize(
    ("every", "severity", "category", "expected"),
    [(0.9, 0.7, 0.8, 0.9), (0.6, 0.94, 0.8, 0.94), (0.9, None, 0.8, None), (None, 0.9, 0.9, None)],
)
def test_the_shared_threshold_is_the_strictest_of_those_it_rules_over(
    every: float | None, severity: float | None, category: float | None, expected: float | None
) -> None:
    findings = [
        finding(Kind.ALL, "every field", every),
        finding(Kind.DECISION, "severity", severity),
        finding(Kind.DECISION, "category", category),
        finding(Kind.TYPE, "text", 0.999),
    ]
    text = snippet("p", {"fields": {}}, findings, Goal(0.9), "rules:1")
    default = config.builtin().review.confidence_min
    assert config.loads(RULES + text).review.confidence_min == (default if expected is None else expected)


@pytest.mark.parametrize("name", ["no", "ON", "null", "y", "heat", "öl", "e-1"])
def test_names_stay_names_in_yaml(name: str) -> None:
    raw = {"type": FieldType.TEXT.value, "description": "# no: 'comment' \"x\""}
    text = snippet(name, {"fields": {"x": raw}}, [finding(Kind.FIELD, "x", 0.9)], Goal(0.9), "rules:1")
    profile = config.loads(text).profiles[name]
    assert (profile.fields["x"].description, profile.confidence_min("x", 0.0)) == (raw["description"], 0.9)


# --- eval ---------------------------------------------------------------------------------------------------


def test_eval_tells_more_only_when_asked(folder: Path) -> None:
    plain = well("eval", "lines.jsonl", "--config", "site.yaml", "--json", cwd=folder).record
    full = well("eval", "lines.jsonl", "--config", "site.yaml", "--json", "--reliability", cwd=folder).record
    assert list(full) == [*plain, "false_fill_rate", "line_exact", "reliability"]
    rows = {(row["kind"], row["name"]): row for row in full["reliability"]}
    assert list(rows) == [
        ("all", "every field"),
        ("type", "asset"),
        ("type", "quantity"),
        ("decision", "severity"),
    ]
    heat = rows["type", "quantity"]
    assert list(heat) == ["kind", "name", "n", "calibration_error", "bins", "accepted"]
    assert sum(one["n"] for one in heat["bins"]) == heat["n"] == 40
    assert list(heat["bins"][0]) == ["low", "high", "n", "mean_confidence", "right"]
    assert heat["accepted"][0] == {
        "threshold": 0.5,
        "accepted": 40,
        "errors": 0,
        "error_rate": 0.0,
        "upper": 0.0722,
        "coverage": 1.0,
    }


def test_people_are_told_of_false_fills_whole_lines_and_bounds(folder: Path) -> None:
    out = well("eval", "lines.jsonl", "--config", "site.yaml", cwd=folder).out
    assert "false_fill_rate: " in out and "line_exact: " in out and "calibration" not in out
    out = well("eval", "lines.jsonl", "--config", "site.yaml", "--reliability", cwd=folder).out
    assert "quantity: 40 answers, expected calibration error" in out and "upper 95% bound" in out
