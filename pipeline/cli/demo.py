"""`andon demo`: the whole job on this machine, shown as it happens."""

from __future__ import annotations

import asyncio
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table

from pipeline.cli.output import JsonFlag, Out, plain
from pipeline.demo.play import Picture, play, where_next

# Without a terminal nobody presses Ctrl-C: such a run ends by itself.
UNATTENDED_S = 60.0

# An asset or a cause is shown up to this: at 80 columns that leaves a third of the width to the line itself.
NAME_CHARS = 14

# What is left of a line behind its code is a sentence from this on.
SAYS_CHARS = 10

SEVERITY_STYLES = {"critical": "bold red", "error": "red", "warning": "yellow"}


def demo(
    seconds: Annotated[
        float | None, typer.Option(min=5, help="End after this long. Default: at Ctrl-C.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """The whole job on this machine: broker, sample plant, the real model, tickets, review."""
    folder = Path(tempfile.mkdtemp(prefix="andon-demo-"))
    if seconds is None and (as_json or not sys.stdout.isatty()):
        seconds = UNATTENDED_S
    summary = asyncio.run(_run(folder, seconds, as_json))
    if as_json:
        Out(True).line({"summary": summary})
        return
    out = Out(False)
    out.record(summary)
    out.say(f"\nThe demo's site file and store stay in {folder}. Where to look next:")
    for line in where_next(folder, _command()):
        out.say(f"  {line}")


def _command() -> str:
    """How this program is called here: by its name where the shell finds it, else by the path it has."""
    return "andon" if shutil.which("andon") else sys.argv[0]


async def _run(folder: Path, seconds: float | None, as_json: bool) -> dict[str, Any]:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    with _display(as_json) as show:
        return await play(folder, seconds, show, stop)


def _display(as_json: bool) -> AbstractContextManager[Callable[[Picture], None]]:
    """A live picture on a terminal, nothing for programs, a line now and then for a log."""
    if as_json:
        return nullcontext(lambda picture: None)
    console = Console()
    if not console.is_terminal:
        return nullcontext(_Lines())
    return _Screen(console)


class _Lines:
    """One line every few seconds."""

    EVERY = 20

    def __init__(self) -> None:
        self._n = 0

    def __call__(self, picture: Picture) -> None:
        if self._n % self.EVERY == 0:
            Out(False).say(_headline(picture))
        self._n += 1


class _Screen:
    """A picture that is drawn anew in place."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, refresh_per_second=4, transient=False)

    def __enter__(self) -> Callable[[Picture], None]:
        self._live.start()
        return lambda picture: self._live.update(_panel(picture))

    def __exit__(self, *_: object) -> None:
        self._live.stop()


def _headline(picture: Picture) -> str:
    summary = picture.summary
    return (
        f"model {picture.model} · {summary['lines']} lines, {summary['lines_per_s']}/s · "
        f"{summary['tickets']} tickets, {summary['occurrences']} occurrences · "
        f"{picture.review_open} in review · {picture.unread} unread · "
        f"{summary['patterns']} patterns known · {picture.readings_per_1000} model readings per 1,000 lines"
    )


def _panel(picture: Picture) -> Panel:
    summary = picture.summary
    figures = Table.grid(padding=(0, 3))
    rows = (
        ("model", picture.model, "patterns known", summary["patterns"]),
        ("lines", summary["lines"], "lines/s", summary["lines_per_s"]),
        ("sensor readings", summary["readings"], "model readings per 1,000 lines", picture.readings_per_1000),
        ("tickets", summary["tickets"], "occurrences", summary["occurrences"]),
        ("in review", picture.review_open, "waiting to be read", picture.unread),
        ("routine", summary["discarded"], "repeats", summary["repeats"]),
    )
    for name, value, other, worth in rows:
        figures.add_row(name, f"[bold]{plain(value)}[/]", other, f"[bold]{plain(worth)}[/]")
    return Panel(Group(figures, "", _tickets(picture)), title="andon demo", subtitle="Ctrl-C ends it")


def _tickets(picture: Picture) -> Table:
    """One line a ticket at any width: the columns that say which one keep theirs, the text takes the rest."""
    table = Table(box=None, title="newest tickets", title_justify="left", expand=True, padding=(0, 2, 0, 0))
    table.add_column("no.", justify="right", no_wrap=True)
    table.add_column("severity", no_wrap=True)
    table.add_column("asset", no_wrap=True, overflow="ellipsis", max_width=NAME_CHARS)
    table.add_column("cause", no_wrap=True, overflow="ellipsis", max_width=NAME_CHARS)
    table.add_column("what it says", no_wrap=True, overflow="ellipsis", ratio=1)
    for ticket in picture.tickets:
        severity, style = _cell(ticket["severity"]), SEVERITY_STYLES.get(ticket["severity"], "none")
        names = (_cell(ticket["asset"]), _cell(ticket["cause"]))
        table.add_row(_cell(ticket["number"]), f"[{style}]{severity}[/]", *names, _cell(_says(ticket)))
    return table


def _cell(value: object) -> str:
    """One line, whatever the value: records may have several."""
    return plain(" ".join(str(value).split()))


def _says(ticket: Mapping[str, Any]) -> str:
    """The ticket's line behind its code or its time: the columns before it say the rest."""
    evidence = ticket["evidence"]
    line, fields = str(evidence.get("line") or ticket["line"]), evidence.get("fields") or {}
    for name in ("error_code", "timestamp"):
        _, end = fields.get(name, {}).get("span") or (0, 0)
        rest = line[end:].lstrip(" :;,-])")
        if end and len(rest) >= SAYS_CHARS:
            return rest
    return line
