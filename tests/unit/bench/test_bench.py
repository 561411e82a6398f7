"""Every bench in a tiny size: its figures come in the form that programs rely on. No times are judged."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC

import pytest
import typer
from typer.testing import CliRunner

from pipeline.bench import BENCHES, Figure, Size, Suite, mqtt
from pipeline.bench.lines import LINE_BYTES, lines
from pipeline.bench.mqtt import Passages
from pipeline.bench.reading import texts
from pipeline.cli.bench import bench
from pipeline.demo.generator import START

TINY = Size(mqtt_lines=60, mqtt_rounds=1, model_lines=2, match_lines=200, match_rounds=1)


def assert_formed(figures: list[Figure], names: list[str]) -> None:
    assert [figure.name for figure in figures] == names
    for figure in figures:
        record = figure.record()
        assert list(record) == ["name", "value", "unit", "baseline", "ratio"]
        for name in ("value", "baseline", "ratio"):
            value = record[name]
            assert isinstance(value, float)
            assert math.isfinite(value) and value > 0
        assert record["unit"]
        json.dumps(record, allow_nan=False)


def of_mqtt(passages: Passages) -> list[Figure]:
    return [*mqtt.mqtt(passages), *mqtt.journal(passages), *mqtt.store(passages)]


@pytest.mark.broker
def test_the_gateway_and_a_bare_subscriber_take_turns_at_mosquitto(require: Callable[[str], str]) -> None:
    passages = Passages(TINY, require("mosquitto"))
    assert_formed(of_mqtt(passages), ["mqtt", "journal.commits", "journal.batch", "store"])
    ((ours, bare),) = passages.turns
    assert ours.lines == bare.lines == TINY.mqtt_lines
    assert passages.note == ""


def test_without_mosquitto_the_embedded_broker_serves_and_is_named() -> None:
    figures = of_mqtt(Passages(TINY, None))
    assert_formed(figures, ["mqtt", "journal.commits", "journal.batch", "store"])
    assert all("embedded broker" in figure.note for figure in figures)


@pytest.mark.model
def test_reading_is_measured_with_the_model_and_without() -> None:
    assert_formed(Suite(TINY).run("model"), ["model", "model.memory"])


def test_matching_is_measured_against_signing_alone() -> None:
    assert_formed(Suite(TINY).run("match"), ["match"])


def test_lines_have_one_length_and_no_two_are_equal() -> None:
    made = [*lines(500, START), *lines(500, START, 500)]
    assert {len(line) for line in made} == {LINE_BYTES}
    assert len(set(made)) == len(made)
    assert made[0].startswith(f"{START.astimezone(UTC):%Y-%m-%dT%H:%M:%S}".encode())


def test_lines_to_read_are_of_different_kinds_and_as_many_as_asked_for() -> None:
    assert len(set(texts(50))) == 50
    assert len(texts(300)) == 300


def test_a_figure_without_baseline_has_no_ratio() -> None:
    assert Figure("x", 1234.5, "y").record() == {
        "name": "x", "value": 1234.0, "unit": "y", "baseline": None, "ratio": None,
    }  # fmt: skip


def test_the_command_refuses_a_name_that_is_no_bench() -> None:
    app = typer.Typer()
    app.command()(bench)
    result = CliRunner().invoke(app, ["mqtt", "speed"])
    assert result.exit_code == 2
    assert all(name in result.output for name in ("speed", *BENCHES))


def test_the_command_prints_one_object_a_figure() -> None:
    program = "import typer; from pipeline.cli.bench import bench; typer.run(bench)"
    ended = subprocess.run(
        [sys.executable, "-c", program, "match", "--json"], capture_output=True, text=True, check=True
    )
    (record,) = [json.loads(line) for line in ended.stdout.splitlines()]
    assert record["name"] == "match"
