"""Reads lines with the model or with the rules alone, in a process of its own, whose memory is measured too.

`python -m pipeline.bench.reading model|rules LINES` prints one JSON object. It holds what the service holds:
everything that `pipeline.wiring` imports is loaded.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from typing import Literal

from pipeline.config import builtin
from pipeline.demo.generator import SEED, generate
from pipeline.model.memory import peak_rss_mb
from pipeline.model.reader import ModelReader
from pipeline.model.rules import RulesReader
from pipeline.telemetry import configure_logging
from schemas.errors import AndonError

Who = Literal["model", "rules"]

# Loading takes a few seconds, and a slow reader about one a line.
PATIENCE_S = 300.0

# Messages of the plant in which nearly all of its kinds of line occur.
STREAM = 4_000


@dataclass(frozen=True, slots=True)
class Readings:
    """What it took to read `lines` lines. `peak_rss_mb` (of 10^6 bytes) is the process's whole life's."""

    lines: int
    seconds: float
    peak_rss_mb: float

    @property
    def per_s(self) -> float:
        return self.lines / self.seconds


def read(who: Who, lines: int) -> Readings:
    """Read `lines` lines in a new process. Raises AndonError with its last words when it fails."""
    command = [sys.executable, "-m", "pipeline.bench.reading", who, str(lines)]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise AndonError(f"bench: {lines} lines were not read within {PATIENCE_S:g} s") from error
    if ended.returncode != 0:
        raise AndonError(ended.stderr.strip().rpartition("\n")[2] or "bench: the reading process died")
    return Readings(**json.loads(ended.stdout))


def texts(count: int) -> list[str]:
    """Lines of the demo's plant, each of another kind as long as there are others."""
    kinds = {
        item.template: item.payload.decode("utf-8", "replace")
        for item in generate(SEED, STREAM)
        if item.kind == "line"
    }
    return list(islice(cycle(kinds.values()), count))


def main() -> None:
    import pipeline.wiring  # noqa: F401  # what the service holds; nobody here needs it by name

    configure_logging("error")
    who, lines = sys.argv[1], texts(int(sys.argv[2]))
    site = builtin()
    profile = site.profiles["machine-log"]
    try:
        reader = ModelReader.open(site.model) if who == "model" else RulesReader()
    except AndonError as error:
        sys.exit(str(error))
    reader.read(lines[:1], profile, site.labels)  # warm: the head of the prompt is evaluated
    began = time.perf_counter()
    for line in lines:
        reader.read([line], profile, site.labels)
    print(json.dumps(asdict(Readings(len(lines), time.perf_counter() - began, peak_rss_mb()))))


if __name__ == "__main__":
    main()
