"""What the README shows works as shown: its site file, its commands, and its promise."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest
import typer.main
import yaml
from andon import andon, well

from pipeline import config
from pipeline.cli import app

pytestmark = pytest.mark.timeout(120)

COMMAND_LINE = "| `andon "


@pytest.fixture(scope="module")
def readme(repository: Path) -> str:
    return (repository / "README.md").read_text(encoding="utf-8")


def blocks(readme: str, language: str) -> list[str]:
    """Fenced blocks, without the indent of the list they stand in."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```", readme, re.DOTALL | re.MULTILINE)
    return [re.sub(rf"^{indent}", "", body, flags=re.MULTILINE) for indent, body in found]


def site_of(readme: str) -> dict[str, Any]:
    """The README's site file: the first block, and what its last step adds to it."""
    first, *more = (yaml.safe_load(block) for block in blocks(readme, "yaml"))
    for each in more:
        first |= each
    return dict(first)


def commands() -> dict[str, click.Command]:
    """Every registered command by its whole name ("review list")."""
    root = typer.main.get_command(app)
    return dict(_leaves(root, ()))


def _leaves(command: Any, path: tuple[str, ...]) -> list[tuple[str, Any]]:
    children = getattr(command, "commands", None)
    if children is None:
        return [(" ".join(path), command)]
    return [leaf for name, child in children.items() for leaf in _leaves(child, (*path, name))]


def table(readme: str) -> list[str]:
    """The first column of the command table."""
    return [line.split("`")[1] for line in readme.splitlines() if line.startswith(COMMAND_LINE)]


def shown(readme: str) -> list[list[str]]:
    """Every `andon ...` of a shell block."""
    lines = [line for block in blocks(readme, "sh") for line in block.splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("andon ")]


def test_every_site_file_loads(readme: str) -> None:
    first, *_ = blocks(readme, "yaml")
    assert config.loads(first).sources["presses"].mode == "observe"
    site = config.loads(yaml.safe_dump(site_of(readme), allow_unicode=True))
    assert (set(site.sinks), [route.id for route in site.routes]) == ({"cmms", "board"}, ["maintenance"])


def test_the_table_names_every_command_and_no_other(readme: str) -> None:
    named: set[str] = set()
    for row in table(readme):
        first, *rest = row.removeprefix("andon ").split()
        group = rest and ("/" in rest[0] or f"{first} {rest[0]}" in commands())
        named |= {f"{first} {name}" for name in rest[0].split("/")} if group else {first}
    assert named == set(commands())


def test_every_option_that_is_shown_exists(readme: str) -> None:
    known = commands()
    rows = [row.removeprefix("andon ") for row in table(readme)]
    words = [re.sub(r"[\[\]]", " ", row).split() for row in rows if "/" not in row.split("SITE")[0]]
    inline = [line.split()[1:] for line in re.findall(r"`(andon [^`]+)`", readme) if "/" not in line]
    for given in [*words, *shown(readme), *inline]:
        name = next((n for n in (" ".join(given[:2]), given[0]) if n in known), None)
        assert name is not None, f"andon {' '.join(given)}"
        options = {option for parameter in known[name].params for option in parameter.opts}
        assert {word for word in given if word.startswith("--")} <= options, f"andon {' '.join(given)}"


def test_what_is_shown_runs(readme: str, tmp_path: Path) -> None:
    """On the README's own site file. What needs a broker or does not end by itself is left out."""
    (tmp_path / "cmms.token").write_text("secret")
    document = site_of(readme) | {"model": {"enabled": False}}
    document["store"] = {"path": "andon.db", "free_floor_mb": 0}
    text = yaml.safe_dump(document, allow_unicode=True).replace("/etc/andon/", "")
    (tmp_path / "site.yaml").write_text(text)
    (tmp_path / "recorded.log").write_text("ERROR press7 bearing hot\nINFO cycle done\n")
    well("db", "upgrade", "site.yaml", cwd=tmp_path)
    ran = []
    for given in shown(readme):
        if given[0] in {"run", "demo"} or "--connect" in given:
            continue
        well(*given, cwd=tmp_path)
        ran.append(" ".join(given[:2]))
    assert {"check site.yaml", "try site.yaml", "status site.yaml", "review list", "patterns list"} <= set(
        ran
    )
    assert json.loads(well("schema").out)
    assert andon("check", "site.yaml", "--connect", cwd=tmp_path).code == 1, "no broker is there"


def test_the_files_that_are_named_exist(readme: str, repository: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", readme):
        assert (repository / target).exists(), target
    for target in re.findall(r"`((?:schemas|connectors|pipeline)/[\w/.]*)`", readme):
        assert (repository / target).exists(), target


def test_the_promise_is_given_word_for_word(readme: str, shared: Path) -> None:
    given = shared / "FAILURES.md"
    if not given.is_file():
        pytest.skip("no FAILURES.md beside the repository")
    assert _promise(readme) == _promise(given.read_text(encoding="utf-8"))


def _promise(text: str) -> str:
    """The quoted paragraph under the heading that names it."""
    section = re.split(r"^## The delivery promise.*$", text, maxsplit=1, flags=re.MULTILINE)[1]
    lines = section.strip().splitlines()
    end = next(number for number, line in enumerate(lines) if not line.startswith(">"))
    return " ".join(" ".join(line.removeprefix(">") for line in lines[:end]).split())
