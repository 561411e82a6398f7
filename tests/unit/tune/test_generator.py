"""Synthetic lines: the same for the same seed, and labelled with what really stands in them."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from pipeline.tune.generator import Generator, Line, write
from pipeline.tune.grammar import QUANTITIES, Format
from pipeline.tune.values import pools

LINES = 400


def one_message(text: str, layout: str = "{message}", **more: Any) -> Line:
    message = {"text": text, "severity": "error", "category": "process_alarm"}
    made = Format.model_validate({"name": "x", "lines": [layout], "messages": [message], **more})
    return write(made, made.messages[0], random.Random(3))


def told(line: Line) -> dict[str, str]:
    return {kind: span.of(line.text) for kind, span in line.values.items()}


def test_the_same_seed_gives_the_same_lines() -> None:
    first, again, other = (list(itertools.islice(Generator(seed), LINES)) for seed in (5, 5, 6))
    assert first == again
    assert first != other


def test_values_are_slices_without_blanks_around() -> None:
    for line in itertools.islice(Generator(1), LINES):
        for kind, span in line.values.items():
            value = span.of(line.text)
            assert value and value == value.strip(), (line.text, kind)
            assert 0 <= span.start < span.end <= len(line.text)


def test_numbers_are_labelled_without_their_unit() -> None:
    for line in itertools.islice(Generator(2), LINES):
        for kind in QUANTITIES & line.values.keys():
            assert not any(letter.isalpha() for letter in told(line)[kind].replace("e", "")), line.text


@pytest.mark.parametrize(
    ("text", "layout", "kinds"),
    [
        ("hot {temperature}, limit {~temperature}", "{message}", {"temperature"}),
        ("only a limit {~temperature}", "{message}", set()),
        ("{temperature lost}", "{message}", set()),
        ("{device} failed with {error_code}", "{message}", {"device", "error_code"}),
        ("record {~error_code}", "{time} {message}", set()),
        ("{a|b} {~device}", "{message}", set()),
    ],
)
def test_what_counts_is_labelled_and_nothing_else(text: str, layout: str, kinds: set[str]) -> None:
    assert told(one_message(text, layout)).keys() == kinds


def test_the_device_is_the_most_specific_name() -> None:
    pool = {"devices": ["part"], "units": ["machine"], "hosts": ["computer"]}
    layout = "{host} {unit} {message}"
    assert told(one_message("{device} broke", layout, **pool)) == {"device": "part"}
    assert told(one_message("it broke", layout, **pool)) == {"device": "machine"}
    assert told(one_message("it broke", "{host} {message}", **pool)) == {"device": "computer"}


def test_a_slot_is_repeated() -> None:
    line = one_message("{device} stopped, check {@device}")
    assert line.text == f"{told(line)['device']} stopped, check {told(line)['device']}"


def test_a_sentinel_is_written_as_the_value() -> None:
    assert told(one_message("t={temperature raw}"))["temperature"] in pools()["sentinels"]


def test_the_level_word_never_says_more_than_the_severity() -> None:
    words = {"info": ["i"], "warning": ["w"], "error": ["e"], "critical": ["c"]}
    seen = {
        write(made, made.messages[0], chance).text
        for chance in [random.Random(1)]
        for made in [
            Format.model_validate(
                {
                    "name": "x", "lines": ["{level}{message}"], "level": words,
                    "messages": [{"text": "", "severity": "error", "category": "other"}],
                }
            )
        ]
        for _ in range(200)
    }  # fmt: skip
    assert seen == {"i", "w", "e"}
