"""`andon eval`: the object of DESIGN §7, the counts behind it, and bad files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from model_fakes import LABELS, PROFILE

from pipeline.fields.definition import Labels, Profile
from pipeline.model import evaluate
from pipeline.model.evaluate import Labelled
from schemas.errors import EvalError
from schemas.extraction import Choice, Extraction, FieldValue, Null, Span, Tier, Verdict


class Scripted:
    """Reads every line as told."""

    name = "scripted"

    def __init__(self, verdicts: Sequence[Verdict]) -> None:
        self._verdicts = iter(verdicts)

    def read(self, texts: Sequence[str], profile: Profile, labels: Labels) -> list[Verdict]:
        return [next(self._verdicts) for _ in texts]


def value(text: str, part: str, confidence: float = 0.9, null: Null | None = None) -> FieldValue:
    start = text.index(part)
    return FieldValue(Span(start, start + len(part)), null, confidence=confidence)


def verdict(
    fields: Mapping[str, FieldValue], severity: str | None = "info", category: str | None = "other"
) -> Verdict:
    return Verdict(Extraction(fields, "scripted", Tier.MODEL), Choice(severity), Choice(category))


TEXT = "a1 b2 c3"


def row(**fields: str | None) -> Labelled:
    return Labelled(id="1", line=TEXT, fields=fields, severity="error", category="other")


def test_every_kind_of_right_and_wrong_is_counted() -> None:
    rows = [row(f="a1"), row(f="a1"), row(f="a1"), row(f=None), row(f=None)]
    verdicts = [
        verdict({"f": value(TEXT, "a1")}, "error"),
        verdict({"f": value(TEXT, "b2", confidence=0.95)}),
        verdict({"f": FieldValue(confidence=0.4)}),
        verdict({"f": value(TEXT, "c3", confidence=0.5)}),
        verdict({}),
    ]
    report = evaluate.evaluate(rows, Scripted(verdicts), PROFILE, LABELS, confidence_min=0.8)
    assert report.pop("seconds") >= 0
    assert report == {
        "lines": 5,
        "fields": {
            "f": {"n": 5, "exact": 2, "false_fill": 1, "false_null": 1, "wrong_span": 1, "f1": 0.3333}
        },
        "micro_exact": 0.4,
        "nonnull_exact": 0.3333,
        "ungrounded": 0,
        "model_reads": 5,
        "auto": {"coverage": 0.5, "precision": 0.5},
        "severity_accuracy": 0.2,
        "category_accuracy": 1.0,
    }


def test_a_bad_value_is_scored_by_its_written_span() -> None:
    rows, verdicts = [row(f="b2")], [verdict({"f": value(TEXT, "b2", null=Null.BAD)})]
    assert (
        evaluate.evaluate(rows, Scripted(verdicts), PROFILE, LABELS, confidence_min=0.8)["nonnull_exact"]
        == 1.0
    )


def test_nothing_to_score_is_null_not_zero() -> None:
    rows = [Labelled(line="x", fields={"f": None})]
    report = evaluate.evaluate(rows, Scripted([verdict({})]), PROFILE, LABELS, confidence_min=0.8)
    assert report["nonnull_exact"] is report["severity_accuracy"] is report["auto"]["coverage"] is None
    assert report["fields"]["f"]["f1"] is None
    json.dumps(report)


def test_predictions_and_progress_follow_each_line() -> None:
    written: list[Mapping[str, object]] = []
    done: list[int] = []
    evaluate.evaluate(
        [row(f="b2"), row(f=None)],
        Scripted([verdict({"f": value(TEXT, "b2")}, "warning"), verdict({"f": FieldValue()})]),
        PROFILE,
        LABELS,
        confidence_min=0.8,
        predictions=written.append,
        progress=done.append,
    )
    assert done == [1, 2]
    first = json.loads(json.dumps(written[0]))
    assert first["fields"]["f"] == {
        "value": "b2",
        "span": [3, 5],
        "null": None,
        "confidence": 0.9,
        "tier": "rule",
    }
    assert (first["severity"], first["category"], first["reader"]) == ("warning", "other", "scripted")
    assert written[1]["fields"] == {
        "f": {"value": None, "span": None, "null": "absent", "confidence": 1.0, "tier": "rule"}
    }


def put(folder: Path, *lines: str) -> Path:
    path = folder / "data.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


GOOD = '{"id":"1","source":"s","ref":"more","line":"a1","fields":{"f":null},"severity":"info"}'


def test_lines_are_split_at_newlines_alone(tmp_path: Path) -> None:
    odd = json.dumps({"line": "a\u2028b\x85c", "fields": {}}, ensure_ascii=False)
    rows = evaluate.load(put(tmp_path, GOOD, "", odd, ""))
    assert [found.line for found in rows] == ["a1", "a\u2028b\x85c"]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ("{", "not a JSON object"),
        ("[1]", "valid dictionary"),
        ("7", "valid dictionary"),
        ('{"fields":{}}', "line: Field required"),
        ('{"line":"x"}', "fields: Field required"),
        ('{"line":"x","fields":{"f":3}}', "fields.f: Input should be a valid string"),
        ('{"line":null,"fields":{}}', "line: Input should be a valid string"),
        ("[" * 100_000, "not a JSON object"),
    ],
)
def test_a_bad_line_is_named_by_file_and_number(tmp_path: Path, bad: str, words: str) -> None:
    path = put(tmp_path, GOOD, "", bad)
    with pytest.raises(EvalError) as caught:
        evaluate.load(path)
    assert str(caught.value).startswith(f"{path}:3: ")
    assert words in str(caught.value)


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(EvalError, match="cannot be read"):
        evaluate.load(tmp_path / "none.jsonl")
    with pytest.raises(EvalError, match="no labelled line"):
        evaluate.load(put(tmp_path, "", ""))
    (tmp_path / "latin.jsonl").write_bytes(b'{"line":"\xe9"}')
    with pytest.raises(EvalError, match="cannot be read"):
        evaluate.load(tmp_path / "latin.jsonl")


def test_a_fields_own_threshold_decides_what_passes_without_a_person() -> None:
    strict = PROFILE.fields["device"].model_copy(update={"confidence_min": 0.95})
    profile = Profile(fields={"f": strict, "g": PROFILE.fields["device"]})
    verdicts = [verdict({"f": value(TEXT, "a1", 0.9), "g": value(TEXT, "b2", 0.9)})]
    report = evaluate.evaluate([row(f="c3", g="b2")], Scripted(verdicts), profile, LABELS, confidence_min=0.8)
    assert report["auto"] == {"coverage": 0.5, "precision": 1.0}
