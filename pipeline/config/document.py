"""A site file's data together with the places of its values, and the findings about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from schemas.errors import Issue, Level

Path = tuple[str | int, ...]

TOP = "(file)"  # stands for the path where something concerns the file as a whole


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Line and column, both from 1."""

    line: int = 1
    column: int = 1


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to say about `path`; `at_key` points at the key instead of its value."""

    path: Path
    message: str
    at_key: bool = False
    level: Level = "error"
    position: Position | None = None  # where it stands, when the path cannot tell


@dataclass(slots=True)
class Document:
    """A composed site file: its data, where everything stands, and what was wrong already at this level."""

    file: str
    data: dict[str, Any] = field(default_factory=dict)
    values: dict[Path, Position] = field(default_factory=dict)
    keys: dict[Path, Position] = field(default_factory=dict)
    written: dict[Path, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    broken: set[Path] = field(default_factory=set)  # places without a usable value

    def position(self, path: Path, at_key: bool = False) -> Position:
        """Where `path` stands; of what is not in the file, the nearest ancestor that is."""
        if at_key and path in self.keys:
            return self.keys[path]
        for end in range(len(path), -1, -1):
            if path[:end] in self.values:
                return self.values[path[:end]]
        return Position()

    def issues(self, findings: list[Finding]) -> list[Issue]:
        """The findings with their places, in file order, each once."""
        placed = [(self._place(finding), number, finding) for number, finding in enumerate(findings)]
        placed.sort(key=lambda item: item[:2])
        return list(dict.fromkeys(self._issue(position, finding) for position, _, finding in placed))

    def _place(self, finding: Finding) -> Position:
        return finding.position or self.position(finding.path, finding.at_key)

    def _issue(self, position: Position, finding: Finding) -> Issue:
        return Issue(
            path=dotted(finding.path),
            message=printable(finding.message),
            line=position.line,
            column=position.column,
            file=self.file,
            level=finding.level,
        )


def dotted(path: Path) -> str:
    """`sources.line7.topics[0]`, the way errors name a place."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return printable(text.removeprefix(".")) or TOP


def printable(text: str) -> str:
    """Control and invisible characters escaped: an error must never change the terminal it is shown on."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
