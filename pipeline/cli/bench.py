"""`andon bench`: the benchmarks that the README's figures come from."""

from __future__ import annotations

from typing import Annotated

import typer

from pipeline.bench import BENCHES, Figure, Suite
from pipeline.cli.output import COULD_NOT_RUN, JsonFlag, Out, complain
from schemas.errors import AndonError


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help=f"Of {', '.join(BENCHES)}. Default: all."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Measure this machine: each figure beside a baseline from the same run. All take a few minutes."""
    chosen = list(dict.fromkeys(names or BENCHES))
    for name in chosen:
        if name not in BENCHES:
            raise typer.BadParameter(f"no bench {name!r}; there are {', '.join(BENCHES)}", param_hint="NAME")
    out, suite, failed = Out(as_json), Suite(), False
    for name in chosen:
        try:
            figures = suite.run(name)
        except AndonError as error:
            complain(f"{name}: {error}")
            failed = True
            continue
        for figure in figures:
            _show(figure, out)
    if failed:
        raise typer.Exit(COULD_NOT_RUN)


def _show(figure: Figure, out: Out) -> None:
    record = figure.record()
    if out.as_json:
        out.line(record)
    else:
        against = f"   (baseline {record['baseline']:,}, ratio {record['ratio']})" if figure.baseline else ""
        out.say(f"{figure.name:<16}{record['value']:>12,} {figure.unit:<16}{against}")
    if figure.note:
        complain(f"{figure.name}: {figure.note}")
