"""`andon check` and `andon schema`: the site file."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from pipeline import config
from pipeline.cli.output import FOUND_WRONG, WELL, JsonFlag, Out, SiteArgument, plain
from pipeline.probe import try_connections
from schemas.errors import Issue


def check(
    site: SiteArgument,
    connect: Annotated[
        bool, typer.Option("--connect", help="Also try every source, every sink and the model.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Validate a site file. Every error at its line, all of them at once."""
    issues = config.check(Path(site))
    wrong = [issue for issue in issues if issue.level == "error"]
    if connect and not wrong:
        found = asyncio.run(try_connections(Path(site)))
        issues = [*issues, *found]
        wrong = [issue for issue in issues if issue.level == "error"]
    _report(issues, as_json)
    if not as_json and not wrong:
        Out(as_json).say(f"{site}: well")
    raise typer.Exit(FOUND_WRONG if wrong else WELL)


def _report(issues: list[Issue], as_json: bool) -> None:
    out = Out(as_json)
    for issue in issues:
        if as_json:
            out.line(asdict(issue))
        else:
            Console(soft_wrap=True, highlight=False).print(plain(issue))


def schema(as_json: JsonFlag = False) -> None:
    """Print the site file's JSON Schema, for editors."""
    document = config.json_schema()
    if as_json:
        Out(True).line(document)
    else:
        sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
