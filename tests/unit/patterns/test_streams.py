"""Six real logs: how many patterns they make, beside the templates that people found in them."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import pytest

from pipeline.patterns.signature import sign, variant

# Loghub's templates are of the message alone; ours are of the whole line, with host, component and level.
TIMES_MAX = 2.0
STREAMS = ["bgl", "healthapp", "hpc", "linux", "thunderbird", "windows"]


@pytest.fixture(scope="module")
def read(shared: Path):  # type: ignore[no-untyped-def]
    def make(name: str) -> tuple[list[str], list[str]]:
        folder = shared / "data" / "streams"
        lines = (folder / f"{name}_2k.log").read_bytes().decode().split("\r\n")
        with (folder / f"{name}_2k.log_structured.csv").open(newline="") as labels:
            events = [row["EventId"] for row in csv.DictReader(labels)]
        return lines[: len(events)], events

    return make


@pytest.mark.parametrize("name", STREAMS)
def test_patterns_of_a_stream(name: str, read, record_property) -> None:  # type: ignore[no-untyped-def]
    lines, events = read(name)
    signatures = [sign(line) for line in lines]
    patterns = {signature.text for signature in signatures}
    keys = {(one.text, variant(line, one)) for line, one in zip(lines, signatures, strict=True)}
    templates = len(set(events))
    print(f"{name}: {len(patterns)} patterns, {len(keys)} with variants, {templates} templates")
    record_property("patterns", len(patterns))
    assert len(keys) <= TIMES_MAX * templates


@pytest.mark.parametrize("name", STREAMS)
def test_no_pattern_holds_two_templates(name: str, read) -> None:  # type: ignore[no-untyped-def]
    lines, events = read(name)
    held: dict[str, set[str]] = defaultdict(set)
    for line, event in zip(lines, events, strict=True):
        held[sign(line).text].add(event)
    mixed = {text: found for text, found in held.items() if len(found) > 1}
    assert mixed == {}
