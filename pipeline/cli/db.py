"""`andon db`: the store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipeline import config
from pipeline.cli.output import FOUND_WRONG, JsonFlag, Out, SiteArgument
from pipeline.store import admin

app = typer.Typer(help="The store: upgrade it, back it up, check it.", no_args_is_help=True)


@app.command()
def upgrade(site: SiteArgument, as_json: JsonFlag = False) -> None:
    """Bring the store to this version's schema (the service does so at its start, too)."""
    path = config.load(Path(site)).store_path
    revision = admin.upgrade(path)
    Out(as_json).record({"store": str(path), "revision": revision})


@app.command()
def backup(
    site: SiteArgument,
    target: Annotated[Path, typer.Argument(metavar="TARGET", help="A file that does not exist yet.")],
    as_json: JsonFlag = False,
) -> None:
    """Copy the store, also while the service runs. The copy is whole and of one moment."""
    path = config.load(Path(site)).store_path
    admin.backup(path, target)
    Out(as_json).record({"store": str(path), "backup": str(target), "bytes": target.stat().st_size})


@app.command()
def check(site: SiteArgument, as_json: JsonFlag = False) -> None:
    """Read the whole store and look for damage and for sums that do not add up."""
    path = config.load(Path(site)).store_path
    problems = admin.check(path)
    Out(as_json).record({"store": str(path), "ok": not problems, "problems": problems})
    if problems:
        raise typer.Exit(FOUND_WRONG)
