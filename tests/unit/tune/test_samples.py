"""What is taught: the reader's own prompt, the right option of every row, and the same course every time."""

from __future__ import annotations

import itertools
import random

from model_fakes import LABELS, PROFILE

from pipeline.model.prompt import NONE, Layout
from pipeline.model.reader import rows, times
from pipeline.model.rules import look
from pipeline.tune.generator import Line
from pipeline.tune.grammar import Format
from pipeline.tune.samples import ROUND, Course, sample
from pipeline.tune.schemas import draw, own
from schemas.extraction import Severity, Span

FORMATS = [
    Format.model_validate(
        {
            "name": "x",
            "lines": ["{time} {level} {message}"],
            "messages": [
                {
                    "text": "{device} hot {temperature}, limit {~temperature}",
                    "severity": "warning",
                    "category": "process_alarm",
                },
                {"text": "fault {error_code} on {device}", "severity": "error", "category": "hardware_fault"},
            ],
        }
    )
]


def words(text: str) -> list[int]:
    """One number a word, as different as words are."""
    return [sum(ord(c) * 31**n for n, c in enumerate(word)) for word in text.split()]


def line(
    text: str, severity: Severity | None = Severity.ERROR, category: str = "process_alarm", **values: str
) -> Line:
    spans = {kind: Span(text.index(value), text.index(value) + len(value)) for kind, value in values.items()}
    return Line(text, "x", spans, severity, category)


def answers(one: Line) -> dict[str, str]:
    """By the text of a row, or the decision, the option that is taught."""
    schema = own(PROFILE, LABELS)
    layout = Layout(PROFILE, LABELS, words)
    made = sample(one, schema, layout)
    view = look(one.text, PROFILE, LABELS)
    asks = {ask.position: ask for ask in layout.body(one.text, rows(view), times(view)).asks}
    return {
        (asks[at].decision or asks[at].candidate.span.of(one.text)): asks[at].options[answer]  # type: ignore[union-attr]
        for at, answer in zip(made.positions, made.answers, strict=True)
    }


def test_every_row_is_taught_its_field_or_none() -> None:
    taught = answers(
        line(
            "pump 4: fault E17, 81.5 °C (limit 80.0 °C)",
            device="pump 4",
            error_code="E17",
            temperature="81.5",
        )
    )
    assert taught["pump 4"] == "device"
    assert taught["E17"] == "error_code"
    assert taught["81.5"] == "temperature"
    assert {taught.get("80.0", NONE)} == {NONE}
    assert taught["severity"] == "error"
    assert taught["category"] == "process_alarm"


def test_what_nobody_said_is_not_taught() -> None:
    taught = answers(line("pump 4: fault E17", None, "", device="pump 4"))
    assert "severity" not in taught
    assert "category" not in taught


def test_a_course_is_the_same_from_any_batch_on() -> None:
    course = Course(FORMATS, own(PROFILE, LABELS), words, 11, 2)
    whole = list(itertools.islice(course.batches(), ROUND + 3))
    assert list(itertools.islice(course.batches(5), ROUND - 2)) == whole[5:]
    assert len({batch.head for batch in whole}) > 1


def test_corrected_lines_are_taught_under_the_sites_own_words() -> None:
    marked = line("zzz pump 4", device="pump 4")
    course = Course(FORMATS, own(PROFILE, LABELS), words, 11, 4, own_share=1.0, corrected=(marked,))
    lines = [one for batch in itertools.islice(course.batches(), ROUND) for one in batch.samples]
    shown = sum(one.tokens[:1] == tuple(words("zzz")) for one in lines)
    assert 0 < shown < len(lines)


def test_schemas_differ_and_name_what_they_mean() -> None:
    chance = random.Random(2)
    drawn = [draw(chance) for _ in range(40)]
    assert len({tuple(schema.profile.fields) for schema in drawn}) == len(drawn)
    for schema in drawn:
        assert schema.fields.keys() == schema.profile.fields.keys()
        assert set(schema.categories.values()) == schema.labels.categories.keys()
        assert set(schema.actions.values()) == schema.labels.actions.keys()
