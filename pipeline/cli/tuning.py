"""`andon model tune`: the adapter of the reader, made on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from pipeline import config
from pipeline.cli.output import JsonFlag, Out, ProfileOption, SiteOption, profile_of
from pipeline.model import evaluate, registry
from pipeline.model.evaluate import Labelled
from schemas.errors import ModelError
from schemas.extraction import Severity, Span

if TYPE_CHECKING:
    from pipeline.tune.generator import Line
    from pipeline.tune.train import Progress as Done

NO_TORCH = "tuning needs torch; pip install 'andon[tune]'"


def tune(
    out: Annotated[Path, typer.Option(help="The adapter; its model card is written beside it.")] = Path(
        "reader.gguf"
    ),
    lines: Annotated[
        Path | None,
        typer.Option(metavar="DATA.jsonl", help="Lines that people corrected, taught too."),
    ] = None,
    site: SiteOption = None,
    profile: ProfileOption = "machine-log",
    steps: Annotated[int, typer.Option(min=1, help="Steps of 24 lines; 7 to 9 s each on two cores.")] = 500,
    seed: Annotated[int, typer.Option(help="The same seed makes the same adapter.")] = 7,
    work: Annotated[
        Path, typer.Option(help="Where the run keeps its checkpoint, to go on after a stop.")
    ] = Path(".tune"),
    as_json: JsonFlag = False,
) -> None:
    """Tune the reader's adapter on synthetic lines and on corrected ones. Takes about an hour."""
    try:
        from pipeline.tune import run
        from pipeline.tune.train import Settings
    except ImportError as error:
        raise ModelError(f"{NO_TORCH} ({error})") from error
    found = config.load(site) if site else config.builtin()
    chosen = profile_of(found, profile)
    corrected = [_line(row) for row in evaluate.load(lines)] if lines is not None else []
    base, settings = registry.check(found.model).path, Settings(steps=steps, seed=seed)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=as_json) as bar:
        task = bar.add_task("loading", total=steps)
        outcome = run.tune(
            base, chosen, found.labels, settings, out, work, corrected,
            lambda done: bar.update(task, completed=done.step, description=_said(done)),
        )  # fmt: skip
    told: dict[str, Any] = {
        "adapter": str(outcome.adapter), "card": str(outcome.card), "values_right": outcome.scores.values,
        "decisions_right": outcome.scores.decisions,
    }  # fmt: skip
    if as_json:
        Out(True).line(told)
    else:
        typer.echo(
            f"{outcome.adapter}, {outcome.card}: on formats that were not taught, right are "
            f"{outcome.scores.values:.0%} of the values and {outcome.scores.decisions:.0%} of the decisions"
        )


def _said(done: Done) -> str:
    recent = done.recent
    return f"step {done.step}/{done.steps}: loss {recent.loss:.3f}, {recent.values:.0%} of values right"


def _line(row: Labelled) -> Line:
    from pipeline.tune.generator import Line

    values = {
        name: Span(start, start + len(value))
        for name, value in row.fields.items()
        if value is not None and (start := row.line.find(value)) >= 0
    }
    severity = Severity(row.severity) if row.severity in {one.value for one in Severity} else None
    return Line(row.line, row.source, values, severity, row.category or "")
