"""`andon try` and `andon eval`: what lines would become, and how well they are read."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer
from rich.console import Console
from rich.progress import Progress

from pipeline import config
from pipeline.cli.output import (
    JsonFlag,
    Out,
    ProfileOption,
    SiteArgument,
    SiteOption,
    complain,
    plain,
    profile_of,
    usage,
)
from pipeline.model import evaluate
from pipeline.model.reader import ModelReader
from pipeline.model.reliability import CONFIDENCE, Reliability
from pipeline.model.rules import RulesReader
from pipeline.model.runtime import Reader
from pipeline.rehearsal import Rehearsal
from schemas.errors import AndonError, ModelError


def try_(
    site: SiteArgument,
    source: Annotated[str, typer.Option(help="Name of the source that the lines come from.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="Recorded lines, or - for stdin.")] = "-",
    topic: Annotated[str, typer.Option(help="The topic they arrive on.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """A dry run: what each line would become, and why. Nothing is stored or sent."""
    found = config.load(Path(site))
    if source not in found.sources:
        raise usage(f"no source {source!r}; the site file has: {', '.join(found.sources) or 'none'}")
    payloads = _payloads(file)
    for record in asyncio.run(_play(found, source, payloads, topic)):
        if as_json:
            Out(True).line(record)
        else:
            _print(record)


async def _play(site: config.Site, source: str, payloads: list[bytes], topic: str) -> list[dict[str, Any]]:
    async with Rehearsal(site, source) as rehearsal:
        return await rehearsal.play(payloads, topic)


def _payloads(file: str) -> list[bytes]:
    """One payload a line; the last line needs no newline."""
    try:
        raw = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise AndonError(f"{file}: cannot be read ({error.strerror or error})") from error
    return [line.removesuffix(b"\r") for line in raw.removesuffix(b"\n").split(b"\n")] if raw else []


def _print(record: dict[str, Any]) -> None:
    console = Console(soft_wrap=True, highlight=False)
    console.print(f"[bold]{plain(record['outcome']):8}[/] {plain(record['line'])}")
    decided = ", ".join(
        f"{name} {record[name]}" for name in ("severity", "category", "action") if record[name]
    )
    console.print(
        f"         {plain(decided or 'undecided')}; {plain('; '.join(record['reasons']))}", style="dim"
    )
    for name, value in record["fields"].items():
        if value["value"] is not None:
            shown = f"{name} = {value['value']!r} ({value['tier']}, {value['confidence']:.0%})"
            console.print(f"         {plain(shown)}", style="cyan")


def eval_(
    data: Annotated[Path, typer.Argument(metavar="DATA.jsonl", help="Labelled lines.")],
    site: SiteOption = None,
    profile: ProfileOption = "machine-log",
    predictions: Annotated[
        Path | None, typer.Option(help="Write each line's reading here, as JSONL.")
    ] = None,
    with_reliability: Annotated[
        bool,
        typer.Option(
            "--reliability",
            help="Also whether confidence can be believed, and what leaves without a person, with its bound.",
        ),
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Field-by-field scores against labelled lines."""
    found = config.load(site) if site else config.builtin()
    chosen = profile_of(found, profile)
    rows = evaluate.load(data)
    watch = Reliability(chosen, found.review.confidence_min)
    with (
        reader_of(found) as reader,
        _written(predictions) as out,
        reading(len(rows), quiet=as_json) as progress,
    ):
        report = evaluate.evaluate(
            rows,
            reader,
            chosen,
            found.labels,
            confidence_min=found.review.confidence_min,
            predictions=None if out is None else lambda row: _write(out, row),
            seen=watch.see,
            progress=progress,
        )
    reliability = watch.report() if with_reliability else []
    if as_json:
        more = {**watch.rates(), "reliability": reliability} if with_reliability else {}
        Out(True).line({**report, **more})
    else:
        _table({**report, **watch.rates()})
        _reliability_tables(reliability)


@contextmanager
def reading(lines: int, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr; call what this gives with the number of lines done."""
    with Progress(console=Console(stderr=True), transient=True, disable=quiet) as bar:
        task = bar.add_task("reading", total=lines)
        yield lambda done: bar.update(task, completed=done)


@contextmanager
def reader_of(site: config.Site) -> Iterator[Reader]:
    """The configured model; the rules, said plainly, when it is off or cannot be loaded."""
    opened: ModelReader | None = None
    if site.model.enabled:
        try:
            opened = ModelReader.open(site.model)
        except ModelError as error:
            complain(f"{error}\nreading by rules alone")
    try:
        yield opened or RulesReader()
    finally:
        if opened is not None:
            opened.close()


@contextmanager
def _written(path: Path | None) -> Iterator[TextIO | None]:
    if path is None:
        yield None
        return
    try:
        out = path.open("w", encoding="utf-8")
    except OSError as error:
        raise AndonError(f"{path}: cannot be written ({error.strerror or error})") from error
    with out:
        yield out


def _write(out: TextIO, row: Any) -> None:
    out.write(json.dumps(row, ensure_ascii=False) + "\n")


def _table(report: dict[str, Any]) -> None:
    out = Out(False)
    rows = [{"field": name, **scores} for name, scores in report["fields"].items()]
    out.table(rows, ("field", "n", "exact", "false_fill", "false_null", "wrong_span", "f1"), "no fields")
    out.record({key: value for key, value in report.items() if key != "fields"})


def percent(share: float | None) -> str:
    """A share for a table; a dash when there is none."""
    return "-" if share is None else f"{share:.1%}"


def _reliability_tables(groups: list[dict[str, Any]]) -> None:
    out, bound = Out(False), f"upper_{CONFIDENCE:.0%}_bound"
    for group in groups:
        error = percent(group["calibration_error"])
        out.say(f"\n{group['name']}: {group['n']} answers, expected calibration error {error}")
        out.table(
            (
                {
                    "confidence": f"{one['low']:g} to {one['high']:g}",
                    "n": one["n"],
                    "mean_confidence": percent(one["mean_confidence"]),
                    "right": percent(one["right"]),
                }
                for one in group["bins"]
            ),
            ("confidence", "n", "mean_confidence", "right"),
            "no answers",
        )
        out.table(
            (
                {
                    "at_confidence": f"{one['threshold']:g}",
                    "lines": one["accepted"],
                    "with_an_error": one["errors"],
                    "error_rate": percent(one["error_rate"]),
                    bound: percent(one["upper"]),
                    "coverage": percent(one["coverage"]),
                }
                for one in group["accepted"]
            ),
            ("at_confidence", "lines", "with_an_error", "error_rate", bound, "coverage"),
            "nothing accepted",
        )
