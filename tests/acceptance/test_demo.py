"""`andon demo --seconds N --json`: the whole job, by itself, on the real model; its counts add up."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from andon import well

KEYS = [
    "messages",
    "events",
    "lines",
    "readings",
    "tickets",
    "occurrences",
    "review",
    "discarded",
    "repeats",
    "part_of",
    "pending",
    "patterns",
    "model_reads",
    "lines_per_s",
    "peak_rss_mb",
    "seconds",
]
ENDS = ("tickets", "occurrences", "review", "discarded", "repeats", "part_of", "pending")


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the demo makes its folder."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield tmp_path
    shutil.rmtree(tmp_path, ignore_errors=True)


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_demo_does_the_whole_job(temporary: Path) -> None:
    ran = well("demo", "--seconds", "20", "--json")
    assert list(ran.record) == ["summary"]
    summary = ran.record["summary"]
    assert list(summary) == KEYS
    assert summary["events"] == sum(summary[end] for end in ENDS)
    assert summary["messages"] > 0 and summary["lines"] > 0 and summary["readings"] > 0
    assert summary["model_reads"] > 0 and summary["patterns"] > 0
    (folder,) = temporary.glob("andon-demo-*")
    site = folder / "site.yaml"
    assert well("db", "check", site, "--json").record["ok"] is True
    assert len(well("patterns", "list", site, "--limit", "500", "--json").records) == summary["patterns"]
    assert sum(group["n"] for group in well("review", "list", site, "--json").records) == summary["review"]
    assert well("status", site, "--json").record["counts"]["events"] == summary["events"]
