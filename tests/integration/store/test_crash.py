"""Killed at any moment, the store holds everything that it said it holds."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from pipeline.store import admin
from pipeline.store.engine import Store
from pipeline.store.sqlite import connect

APPENDER = Path(__file__).with_name("appender.py")
KILLS = 6


def run_until_killed(path: Path, seed: int, after_s: float) -> list[tuple[int, int]]:
    """Ranges that the appender had printed when SIGKILL hit it, `after_s` after it was ready."""
    with subprocess.Popen(
        [sys.executable, str(APPENDER), str(path), str(seed)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(after_s)
        process.kill()
        lines = process.stdout.read().splitlines(keepends=True)
    whole = [line.split() for line in lines if line.endswith("\n")]
    return [(int(start), int(stop)) for start, stop in whole]


@pytest.mark.timeout(120)
def test_everything_reported_is_there_after_sigkill(tmp_path: Path) -> None:
    path, rng = tmp_path / "andon.db", random.Random(20260301)
    last = 0
    for seed in range(KILLS):
        for start, stop in run_until_killed(path, seed, rng.uniform(0.05, 0.6)):
            assert start > last, "a number was given twice"
            last = stop - 1
        assert admin.check(path) == []  # read-only: the next appender begins beside the WAL of the dead one
        with closing(connect(path)) as raw:
            found = [seq for (seq,) in raw.execute("SELECT seq FROM journal ORDER BY seq")]
        assert found == list(range(1, len(found) + 1))
        assert last <= len(found)
        last = len(found)
    assert last > 0
    Store.open(path).close()
    assert admin.check(path) == []
