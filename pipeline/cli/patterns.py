"""`andon patterns`: what the pattern book knows. Read from the store, whether the service runs or not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from pipeline import config
from pipeline.cli.output import JsonFlag, Out, SiteArgument
from pipeline.commands import flat
from pipeline.fields import Profile
from pipeline.patterns import sign
from pipeline.store import patterns
from pipeline.store.admin import reading
from pipeline.store.patterns import PatternRow, PlanRow
from schemas.errors import RequestError

app = typer.Typer(help="The pattern book.", no_args_is_help=True)

UNSURE = "unsure"
LABELS = ("severity", "category", "action")
COLUMNS = ("id", "n", "trust", "severity", "taught_by", "signature")


@app.command("list")
def list_(
    site: SiteArgument,
    limit: Annotated[int, typer.Option(help="Patterns shown, the most frequent first.")] = 50,
    as_json: JsonFlag = False,
) -> None:
    """Patterns with what they were taught, the most frequent first."""
    loaded = config.load(Path(site))
    with reading(loaded.store_path) as connection:
        known = sorted(patterns.load_all(connection), key=lambda row: (-row.n, row.id))[:limit]
    rows = (_listed(row, loaded.review.confidence_min) for row in known)
    Out(as_json).table(rows, COLUMNS, "no pattern has been learnt yet")


@app.command()
def show(
    site: SiteArgument,
    number: Annotated[int, typer.Argument(metavar="ID", help="Number of the pattern.")],
    as_json: JsonFlag = False,
) -> None:
    """One pattern: a sample, its plans, and where each field stands."""
    loaded = config.load(Path(site))
    with reading(loaded.store_path) as connection:
        row = patterns.get(connection, number)
    if row is None:
        raise RequestError(f"there is no pattern {number}; `andon patterns list` shows what is known")
    record = _shown(row, loaded.review.confidence_min, loaded.profiles.get(row.profile))
    Out(as_json).record(record if as_json else flat(record))


def _listed(row: PatternRow, confidence_min: float) -> dict[str, Any]:
    plans = row.plans
    severities = {_label(plan.verdict.get("severity") or {}, confidence_min) or UNSURE for plan in plans}
    return {
        "id": row.id,
        "profile": row.profile,
        "n": row.n,
        "plans": len(plans),
        "trust": ",".join(sorted({plan.trust for plan in plans})) or "forgotten",
        "severity": ",".join(sorted(severities)),
        "taught_by": ",".join(sorted({plan.taught_by for plan in plans})),
        "signature": row.signature,
        "sample": row.sample,
    }


def _shown(row: PatternRow, confidence_min: float, profile: Profile | None) -> dict[str, Any]:
    return {
        **_listed(row, confidence_min),
        "first_seen_us": row.first_seen_us,
        "last_seen_us": row.last_seen_us,
        "slots": [slot.span.of(row.sample) for slot in sign(row.sample).slots],
        "plans": {plan.variant or "-": _plan(plan, confidence_min, profile) for plan in row.plans},
    }


def _plan(plan: PlanRow, confidence_min: float, profile: Profile | None) -> dict[str, Any]:
    """`unsure` names what a person decides: what is read with less confidence than the site asks for is a
    candidate, and no label or value. `profile` may have left the site file."""

    def least(name: str) -> float:
        return profile.confidence_min(name, confidence_min) if profile is not None else confidence_min

    fields = plan.plan.get("fields", {})
    verdict = {what: _verdict(said, confidence_min) for what, said in plan.verdict.items() if what != UNSURE}
    unsure = [name for name, how in fields.items() if _is_unsure(how, least(name))]
    unsure += [what for what in LABELS if verdict.get(what, {}).get("label") is None]
    return {
        "version": plan.version,
        "trust": plan.trust,
        "agreed": plan.agreed,
        "taught_by": plan.taught_by,
        "n": plan.n,
        "fields": fields,
        "verdict": verdict,
        "unsure": unsure,
    }


def _verdict(said: Any, confidence_min: float) -> Any:
    """A decision as it is taken; other parts of the verdict as they are."""
    if not isinstance(said, Mapping) or _label(said, confidence_min) == said.get("label"):
        return said
    return {**said, "label": None, "candidate": said["label"]}


def _label(said: Mapping[str, Any], confidence_min: float) -> str | None:
    return said.get("label") if said.get("confidence", 0.0) >= confidence_min else None


def _is_unsure(how: Mapping[str, Any], confidence_min: float) -> bool:
    has_span = "place" in how
    return how.get("null") == UNSURE or (has_span and how.get("confidence", 0.0) < confidence_min)
