"""How commands speak: tables for people, one JSON object a line for programs, errors on stderr, and one table
of exit codes for all."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pipeline import config
from pipeline.fields.definition import Profile

WELL = 0
FOUND_WRONG = 1
USAGE = 2
COULD_NOT_RUN = 3

# Of every command; `andon --help` and the README say the same.
EXIT_CODES = {
    WELL: "well",
    FOUND_WRONG: "what was looked at is not well: a wrong site file (check), a damaged store (db check)",
    USAGE: "the call does not fit: an unknown option, name or number, or a value that is not allowed",
    COULD_NOT_RUN: "could not run: a file missing or in the way, a store in use, a site file with errors",
}

JsonFlag = Annotated[
    bool, typer.Option("--json", help="One JSON object a line on stdout, and nothing else there.")
]
SiteArgument = Annotated[str, typer.Argument(metavar="SITE.yaml", help="The site file.")]
SiteOption = Annotated[
    Path | None, typer.Option("--config", metavar="SITE.yaml", help="Default: the built-in profile.")
]
ProfileOption = Annotated[str, typer.Option(help="Profile that the lines are read with.")]


def plain(value: object) -> str:
    """Log text for a terminal: control characters shown, not obeyed; markup shown, not rendered."""
    text = "" if value is None else str(value)
    return escape("".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text))


@dataclass(frozen=True, slots=True)
class Out:
    """Where one command's results go."""

    as_json: bool

    def record(self, record: Mapping[str, Any]) -> None:
        """One object, as a JSON line or as `key: value` lines."""
        if self.as_json:
            self.line(record)
            return
        for key, value in record.items():
            Console().print(f"[bold]{plain(key)}[/]: {plain(value)}", highlight=False)

    def line(self, record: Mapping[str, Any]) -> None:
        sys.stdout.write(json.dumps(record, ensure_ascii=False, default=str) + "\n")
        sys.stdout.flush()

    def table(self, rows: Iterable[Mapping[str, Any]], columns: Sequence[str], empty: str) -> None:
        """Many objects, as JSON lines or as a table of `columns`; `empty` is said when there are none."""
        if self.as_json:
            for row in rows:
                self.line(row)
            return
        table = Table(box=None, header_style="bold")
        for column in columns:
            table.add_column(column.replace("_", " "), overflow="fold")
        for row in rows:
            table.add_row(*(plain(row.get(column)) for column in columns))
        Console().print(table if table.row_count else empty)

    def say(self, text: str) -> None:
        """A sentence for people; programs do not get it."""
        if not self.as_json:
            Console().print(plain(text), highlight=False)


def profile_of(site: config.Site, name: str) -> Profile:
    """The profile of that name; a usage error that lists the names there are."""
    if name not in site.profiles:
        raise usage(f"no profile {name!r}; there are: {', '.join(site.profiles)}")
    return site.profiles[name]


def usage(message: str) -> typer.BadParameter:
    """An error in how a command was called: raise what this returns (exit code 2)."""
    return typer.BadParameter(message)


def complain(message: str) -> None:
    """An error for people, on stderr in either form."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(plain(message), style="red")
