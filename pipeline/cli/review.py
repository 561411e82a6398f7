"""`andon review`: the queue in a terminal. Sent to the running service; where none runs, looked at here, and
answered here under the store's lock."""

from __future__ import annotations

import asyncio
import getpass
from pathlib import Path
from typing import Annotated, Any

import typer

from pipeline import config, control
from pipeline.cli.output import JsonFlag, Out, SiteArgument, usage
from pipeline.commands import READING, flat, handlers
from pipeline.stages.encodings import visible
from pipeline.wiring import Core, locked_store, viewed_store

app = typer.Typer(help="What people are asked, and their answers.", no_args_is_help=True)

Id = Annotated[int, typer.Argument(metavar="ID", help="Number of the question, from `review list`.")]
Who = Annotated[str, typer.Option("--as", help="Who answers.", show_default="your login")]

# Of a line, in the table: two rows of a wide terminal.
LINE_CHARS = 160

COLUMNS = ("id", "n", "severity", "reason", "pattern_id", "line")


@app.command("list")
def list_(
    site: SiteArgument,
    limit: Annotated[int, typer.Option(help="Groups shown.")] = 50,
    as_json: JsonFlag = False,
) -> None:
    """Open questions by group: worst first, then largest."""
    groups = ask(Path(site), "review.list", limit=limit)
    if not as_json:
        groups = [{**group, "line": brief(group["line"], group.get("size"))} for group in groups]
    Out(as_json).table(groups, COLUMNS, "nothing to review")


@app.command()
def show(site: SiteArgument, number: Id, as_json: JsonFlag = False) -> None:
    """One question with everything known about it."""
    record = ask(Path(site), "review.show", id=number)
    Out(as_json).record(record if as_json else flat(record))


@app.command()
def approve(
    site: SiteArgument,
    number: Id,
    only: Annotated[bool, typer.Option("--only", help="This one, not all that are like it.")] = False,
    who: Who = "",
    as_json: JsonFlag = False,
) -> None:
    """What `review show` shows is right: teach it to the pattern and let the held events go. What is empty
    there stays unsure."""
    _report(ask(Path(site), "review.approve", id=number, who=_who(who), group=not only), as_json)


@app.command()
def correct(
    site: SiteArgument,
    number: Id,
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=TEXT", help="The field's value, as it stands in the line."),
    ] = None,
    spans: Annotated[
        list[str] | None,
        typer.Option("--span", metavar="FIELD=START:END", help="The same by position, counted from 0."),
    ] = None,
    nulls: Annotated[
        list[str] | None,
        typer.Option("--null", metavar="FIELD=absent|bad", help="The field has no value in such lines."),
    ] = None,
    severity: Annotated[str | None, typer.Option(help="info, warning, error or critical.")] = None,
    category: Annotated[str | None, typer.Option(help="One of the site file's categories.")] = None,
    action: Annotated[str | None, typer.Option(help="One of the site file's actions.")] = None,
    who: Who = "",
    as_json: JsonFlag = False,
) -> None:
    """Say what is right: it is taught to the whole pattern, and the held events follow it. What you do not
    mention stays as it was read."""
    said: dict[str, Any] = {
        "values": dict(map(_pair, values or [])),
        "spans": {name: _span(span) for name, span in map(_pair, spans or [])},
        "nulls": dict(map(_pair, nulls or [])),
        "severity": severity,
        "category": category,
        "action": action,
    }
    if not any(said.values()):
        raise usage("say what is right: --set, --span, --null, --severity, --category or --action")
    _report(ask(Path(site), "review.correct", id=number, who=_who(who), **said), as_json)


@app.command()
def reject(
    site: SiteArgument,
    number: Id,
    why: Annotated[str, typer.Option(help="The reason, for whoever reads the history.")],
    group: Annotated[bool, typer.Option("--group", help="All that are like it, too.")] = False,
    who: Who = "",
    as_json: JsonFlag = False,
) -> None:
    """Nothing is to be done about it, and nothing is taught."""
    _report(ask(Path(site), "review.reject", id=number, who=_who(who), why=why, group=group), as_json)


def ask(path: Path, command: str, **args: Any) -> Any:
    """Have a command done by the running service, or here when none runs."""
    site = config.load(path)
    try:
        return control.call(site.socket_path, command, **args)
    except control.ServiceNotRunning:
        return asyncio.run(_here(site, command, args))


async def _here(site: config.Site, command: str, args: dict[str, Any]) -> Any:
    store = viewed_store(site) if command in READING else locked_store(site)
    try:
        return await handlers(Core(site, store).desk)[command](**args)
    finally:
        store.close()


def brief(line: str, size: int | None = None) -> str:
    """A line in one row of a table: cut, and saying so, when it is long. `size`: it is only the beginning of
    so many bytes."""
    flat = " ".join(line.split())
    shown = visible(flat[:LINE_CHARS])
    if size is None and len(shown) <= LINE_CHARS and len(flat) <= LINE_CHARS:
        return shown
    whole = f"{len(line)} characters" if size is None else f"{size} bytes"
    return f"{shown[:LINE_CHARS]}… [cut, {whole}: see show]"


def _report(answer: dict[str, Any], as_json: bool) -> None:
    Out(as_json).record(answer)


def _who(name: str) -> str:
    return name or getpass.getuser()


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise usage(f"{text!r}: FIELD=VALUE was expected")
    return name, value


def _span(text: str) -> tuple[int, int]:
    start, colon, end = text.partition(":")
    if not colon or not start.isdecimal() or not end.isdecimal():
        raise usage(f"{text!r}: START:END was expected, counted from 0")
    return int(start), int(end)
