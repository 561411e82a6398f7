"""Of every command: stdout is for its results, one JSON object a line with --json, and logs are not on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer.main
from andon import andon, well

from pipeline.cli import app
from pipeline.cli.output import EXIT_CODES

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow]

SITE = """\
metrics: {port: null}
store: {path: andon.db, free_floor_mb: 0}
sources:
  line7: {type: file, path: in.log, follow: false, mode: live}
"""
LINES = "ERROR press7 E207 bearing hot 92 C\nthe widget frobbed 3 times\ngadget frobbed\nINFO cycle done\n"
LABELLED = {"id": "1", "source": "own", "line": "INFO cycle done", "fields": {}, "severity": "info"}

# How each is called so that it does what it is for; `quiet.yaml` has no model.
CALLS: dict[str, list[str]] = {
    "demo": ["--seconds", "5"],
    "check": ["site.yaml", "--connect"],
    "schema": [],
    "try": ["site.yaml", "--source", "line7", "in.log"],
    "eval": ["labelled.jsonl", "--config", "site.yaml"],
    "review list": ["quiet.yaml"],
    "review show": ["quiet.yaml", "1"],
    "review approve": ["quiet.yaml", "1"],
    "review correct": ["quiet.yaml", "2", "--severity", "error"],
    "review reject": ["quiet.yaml", "3", "--why", "a joke"],
    "patterns list": ["quiet.yaml"],
    "patterns show": ["quiet.yaml", "1"],
    "model calibrate": ["labelled.jsonl", "--config", "quiet.yaml"],
    "status": ["quiet.yaml"],
    "bench": ["model"],
    "db upgrade": ["quiet.yaml"],
    "db backup": ["quiet.yaml", "copy.db"],
    "db check": ["quiet.yaml"],
}
# It reports nothing: what it has to say is its log. Tuning takes an hour, and has tests of its own.
NOT_HERE = {"run", "model tune"}


def commands(command: Any, path: tuple[str, ...] = ()) -> list[str]:
    children = getattr(command, "commands", None)
    if children is None:
        return [" ".join(path)]
    return [leaf for name, child in children.items() for leaf in commands(child, (*path, name))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site that has run, and knows patterns and questions."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "site.yaml").write_text(SITE)
    (folder / "quiet.yaml").write_text(SITE + "model: {enabled: false}\n")
    (folder / "in.log").write_text(LINES)
    (folder / "labelled.jsonl").write_text(json.dumps(LABELLED) + "\n")
    ran = well("run", "quiet.yaml", cwd=folder)
    assert ran.out == ""
    assert {json.loads(line)["level"] for line in ran.err.splitlines()} >= {"info"}, "run tells what it does"
    return folder


def test_every_command_is_called_here() -> None:
    assert set(commands(typer.main.get_command(app))) == {*CALLS, *NOT_HERE}


@pytest.mark.model
@pytest.mark.parametrize("command", CALLS)
def test_stdout_is_json_objects_and_nothing_else(folder: Path, command: str) -> None:
    ran = well(*command.split(), *CALLS[command], "--json", cwd=folder)
    assert ran.records and all(isinstance(record, dict) for record in ran.records)
    assert ran.err == "", "quiet by default"


@pytest.mark.model
def test_people_do_not_read_logs_either(folder: Path) -> None:
    ran = well("check", "site.yaml", "--connect", cwd=folder)
    assert [line for line in ran.out.splitlines() if not line.startswith("site.yaml:")] == []
    assert (ran.out.splitlines()[-1], ran.err) == ("site.yaml: well", "")


def test_help_and_readme_tell_every_exit_code(repository: Path) -> None:
    told, readme = andon("--help").out, (repository / "README.md").read_text(encoding="utf-8")
    for code, meaning in EXIT_CODES.items():
        assert f"{code}  {meaning}" in told
        assert f"| {code} | {meaning} |" in readme


def test_the_version_is_told() -> None:
    name, version = andon("--version").out.split()
    assert (name, version[0].isdigit()) == ("andon", True)
