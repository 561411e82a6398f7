"""`andon patterns`: what the pattern book knows. Read from the store, whether the service runs or not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from pipeline import config
from pipeline.cli.output import FOUND_WRONG, JsonFlag, Out, SiteArgument, complain
from pipeline.commands import flat
from pipeline.patterns import sign
from pipeline.store import patterns
from pipeline.store.admin import reading
from pipeline.store.patterns import PatternRow, PlanRow

app = typer.Typer(help="The pattern book.", no_args_is_help=True)

COLUMNS = ("id", "n", "trust", "severity", "taught_by", "signature")


@app.command("list")
def list_(
    site: SiteArgument,
    limit: Annotated[int, typer.Option(help="Patterns shown, the most frequent first.")] = 50,
    as_json: JsonFlag = False,
) -> None:
    """Patterns with what they were taught, the most frequent first."""
    with reading(config.load(Path(site)).store_path) as connection:
        known = sorted(patterns.load_all(connection), key=lambda row: (-row.n, row.id))[:limit]
    Out(as_json).table(map(_listed, known), COLUMNS, "no pattern has been learnt yet")


@app.command()
def show(
    site: SiteArgument,
    number: Annotated[int, typer.Argument(metavar="ID", help="Number of the pattern.")],
    as_json: JsonFlag = False,
) -> None:
    """One pattern: a sample, its plans, and where each field stands."""
    with reading(config.load(Path(site)).store_path) as connection:
        row = patterns.get(connection, number)
    if row is None:
        complain(f"there is no pattern {number}; `andon patterns list` shows what is known")
        raise typer.Exit(FOUND_WRONG)
    record = _shown(row)
    Out(as_json).record(record if as_json else flat(record))


def _listed(row: PatternRow) -> dict[str, Any]:
    plans = row.plans
    return {
        "id": row.id,
        "profile": row.profile,
        "n": row.n,
        "plans": len(plans),
        "trust": ",".join(sorted({plan.trust for plan in plans})) or "forgotten",
        "severity": ",".join(sorted({_severity(plan) for plan in plans})),
        "taught_by": ",".join(sorted({plan.taught_by for plan in plans})),
        "signature": row.signature,
        "sample": row.sample,
    }


def _shown(row: PatternRow) -> dict[str, Any]:
    return {
        **_listed(row),
        "first_seen_us": row.first_seen_us,
        "last_seen_us": row.last_seen_us,
        "slots": [slot.span.of(row.sample) for slot in sign(row.sample).slots],
        "plans": {plan.variant or "-": dict(_plan(plan)) for plan in row.plans},
    }


def _plan(plan: PlanRow) -> Iterator[tuple[str, Any]]:
    yield "version", plan.version
    yield "trust", plan.trust
    yield "agreed", plan.agreed
    yield "taught_by", plan.taught_by
    yield "n", plan.n
    yield "fields", plan.plan.get("fields", {})
    yield "verdict", dict(plan.verdict)


def _severity(plan: PlanRow) -> str:
    return str((plan.verdict.get("severity") or {}).get("label") or "unsure")
