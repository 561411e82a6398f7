"""How fast the default model reads, and the memory of a process that has it."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.bench.figure import Figure, Size
from pipeline.bench.reading import read


def model(size: Size) -> Iterator[Figure]:
    """Readings per second and peak memory with the model; baseline: the rules alone."""
    rules, with_model = read("rules", size.model_lines), read("model", size.model_lines)
    yield Figure("model", with_model.per_s, "readings/s", rules.per_s)
    yield Figure("model.memory", with_model.peak_rss_mb, "MB", rules.peak_rss_mb)
