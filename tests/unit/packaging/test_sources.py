"""House rules that a machine can check, over every file of the repository."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import needs
import pytest

LINES_MAX = 400

# Written in pieces, so that this file does not hold what it looks for.
FOREIGN = {
    "a path of one machine": r"/(?:work/(?:main|shared)|root/|home/\w+/\w|opt/(?:pypi|wheels)|tmp/\w/)",
    "a registry's host": r"py" r"pi\.org|python" r"hosted|registry\." r"npmjs|deb\." r"debian\.org",
    "an index for pip": r"--(?:extra-)?index" r"-url|--trusted" r"-host|--find" r"-links /",
}
UNFINISHED = r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX|NotImplemented" r"Error)\b"


def tracked(*suffixes: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=needs.REPOSITORY, capture_output=True, timeout=30)
    names = [name for name in listed.stdout.decode().split("\0") if name]
    return [needs.REPOSITORY / name for name in names if not suffixes or name.endswith(suffixes)]


def texts(*suffixes: str) -> Iterator[tuple[str, str]]:
    """Name and text of every tracked file of these kinds that is text. Files deleted but not committed are
    left out."""
    for path in tracked(*suffixes):
        if path.is_file():
            yield str(path.relative_to(needs.REPOSITORY)), path.read_text(encoding="utf-8", errors="replace")


def hits(pattern: str, *suffixes: str) -> list[str]:
    search = re.compile(pattern).search
    return [
        f"{name}:{number}: {line.strip()[:100]}"
        for name, text in texts(*suffixes)
        for number, line in enumerate(text.splitlines(), 1)
        if search(line)
    ]


@pytest.mark.parametrize("what", FOREIGN)
def test_nothing_names_the_machine_it_was_written_on(what: str) -> None:
    # Sample streams are what machines say, and machines do log paths.
    assert [hit for hit in hits(FOREIGN[what]) if "/streams/" not in hit and ".jsonl:" not in hit] == []


def test_nothing_is_left_for_later() -> None:
    assert hits(UNFINISHED, ".py", ".md", ".yml", ".service", "Makefile") == []


def test_no_file_is_too_long_to_read() -> None:
    counts = {name: len(text.splitlines()) for name, text in texts(".py")}
    assert {name: n for name, n in counts.items() if n > LINES_MAX} == {}


def test_no_error_is_swallowed() -> None:
    """`except Exception` (or wider) with nothing but `pass` under it: a live process with a dead part."""
    swallowed = [
        f"{name}:{node.lineno}"
        for name, text in texts(".py")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ExceptHandler) and _is_wide(node) and isinstance(node.body[0], ast.Pass)
    ]
    assert swallowed == []


def _is_wide(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or (
        isinstance(handler.type, ast.Name) and handler.type.id in {"Exception", "BaseException"}
    )
