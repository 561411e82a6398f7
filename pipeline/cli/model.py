"""`andon model`: how far the reader can be trusted, and the adapter it reads with."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from pipeline import config
from pipeline.cli.evaluation import percent, reader_of, reading
from pipeline.cli.output import JsonFlag, Out, ProfileOption, SiteOption, profile_of, usage
from pipeline.cli.tuning import tune
from pipeline.config.loading import load_document
from pipeline.model import calibrate as calibration
from pipeline.model import evaluate
from pipeline.model.calibrate import Finding, Goal, Kind, Status
from pipeline.patterns import sign
from schemas.errors import AndonError

app = typer.Typer(help="The reader: how far it can be trusted, and its tuning.", no_args_is_help=True)

# Names that YAML takes for names; the words are those that a YAML 1.1 or 1.2 parser takes for something else.
_PLAIN = re.compile(r"(?!(?:null|true|false|yes|no|on|off|y|n)$)[A-Za-z][\w-]*", re.ASCII | re.IGNORECASE)


@app.callback()
def model() -> None:
    """The reader: how far it can be trusted, and its tuning."""


app.command()(tune)


@app.command()
def calibrate(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA.jsonl",
            help="Labelled lines, as `andon eval` reads them, drawn at random from what the sources send.",
        ),
    ],
    target_precision: Annotated[
        float, typer.Option(help="The share of accepted lines that shall be right, such as 0.99.")
    ] = 0.99,
    confidence: Annotated[
        float, typer.Option(help="How sure that shall be, for each threshold by itself.")
    ] = 0.95,
    site: SiteOption = None,
    profile: ProfileOption = "machine-log",
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the profile with its certified thresholds here, as YAML."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Find the least confidence at which what is accepted is right as often as you ask, with a proof.

    A field that cannot be certified keeps the threshold it has, and you are told what that one lets through.
    """
    goal = _goal(target_precision, confidence)
    loaded = load_document(site) if site else None
    found = loaded.site if loaded else config.builtin()
    definition = profile_of(found, profile)
    rows, began = evaluate.load(data), time.monotonic()
    with reader_of(found) as reader, reading(len(rows), quiet=as_json) as progress:
        groups = calibration.collect(
            rows,
            reader,
            definition,
            found.labels,
            pattern_of=lambda line: sign(line).text,
            progress=progress,
        )
        name = reader.name
    findings = calibration.find(groups, goal, lambda kind, field: _in_force(found, profile, kind, field))
    if output is not None:
        own = (loaded.document.data.get("profiles") or {}).get(profile) if loaded else None
        raw = own or definition.model_dump(mode="json", exclude_defaults=True)
        _write(output, snippet(profile, raw, findings, goal, name))
    if as_json:
        Out(True).line(
            {
                "target_precision": goal.precision,
                "confidence": goal.confidence,
                "needed": goal.lines,
                "lines": len(rows),
                "profile": profile,
                "reader": name,
                "seconds": round(time.monotonic() - began, 3),
                "groups": [finding.report() for finding in findings],
            }
        )
    else:
        _tell(findings, goal, len(rows), name)


def _goal(precision: float, confidence: float) -> Goal:
    for option, value in (("--target-precision", precision), ("--confidence", confidence)):
        if not 0 < value < 1:
            raise usage(f"{option} is a share between 0 and 1, both excluded; got {value:g}")
    goal = Goal(precision, confidence)
    try:
        _ = goal.lines
    except ValueError as error:
        raise usage(f"{error}; ask for less, such as --target-precision 0.99") from error
    return goal


def _in_force(site: config.Site, profile: str, kind: Kind, name: str) -> float:
    default = site.review.confidence_min
    return site.profiles[profile].confidence_min(name, default) if kind is Kind.FIELD else default


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise AndonError(f"{path}: cannot be written ({error.strerror or error})") from error


# --- the piece of a site file ----------------------------------------------------------------------------


def snippet(
    profile: str, definition: Mapping[str, Any], findings: Sequence[Finding], goal: Goal, reader: str
) -> str:
    """The profile as the site file has it, with the certified thresholds: it takes the place of the old one.

    `review.confidence_min` is in it only when every field together and both decisions are certified, as the
    strictest of the three: it rules over all of them.
    """
    fields = {finding.name: finding for finding in findings if finding.kind is Kind.FIELD}
    lines = [
        f"# andon model calibrate: at least {goal.precision:g} right with confidence {goal.confidence:g},"
        f" read by {reader}.",
        "# Another reader or other sources need another calibration.",
        *(
            f"# {finding.name}: not certified, {_why(finding)}"
            for finding in fields.values()
            if finding.threshold is None
        ),
    ]
    shared = _shared(findings)
    if shared is not None:
        lines += ["review:", f"  confidence_min: {shared:g}"]
    if any(finding.threshold is not None for finding in fields.values()):
        lines += ["profiles:", f"  {_key(profile)}:", "    fields:"]
        for name, field in definition["fields"].items():
            lines += [f"      {_key(name)}:"]
            own = fields[name].threshold if name in fields else None
            stated = field if own is None else {**field, "confidence_min": own}
            # JSON is YAML, whatever stands in a description.
            lines += [f"        {key}: {json.dumps(stated[key], ensure_ascii=False)}" for key in stated]
    return "\n".join(lines) + "\n"


def _shared(findings: Sequence[Finding]) -> float | None:
    ruled = [finding.threshold for finding in findings if finding.kind in (Kind.ALL, Kind.DECISION)]
    certified = [threshold for threshold in ruled if threshold is not None]
    return max(certified) if len(certified) == 3 else None


def _key(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else json.dumps(name, ensure_ascii=False)


# --- for people ------------------------------------------------------------------------------------------


def _tell(findings: Sequence[Finding], goal: Goal, lines: int, reader: str) -> None:
    out, sure = Out(False), f"{goal.confidence * 100:g}"
    bound = f"upper_{sure}%_bound"
    columns = (
        *("of", "name", "threshold", "lines", "accepted", "errors", "error_rate"),
        *(bound, "coverage", "missed", "result"),
    )
    few = [f for f in findings if f.kind is Kind.PATTERN and f.status is Status.TOO_FEW]
    out.table((_row(f, bound) for f in findings if f not in few), columns, "no answers")
    out.say(
        f"{lines} lines read by {reader}. Certified: of the lines accepted at this confidence at most "
        f"{percent(goal.risk)} are wrong; each row holds by itself with {sure} % confidence, for lines drawn "
        "like these and this reader."
    )
    if few:
        out.say(
            f"{len(few)} patterns have too few lines for a threshold of their own: each needs {goal.lines}, "
            f"the largest has {max(finding.lines for finding in few)}."
        )


def _row(finding: Finding, bound: str) -> dict[str, Any]:
    shown = finding.report()
    certified = finding.threshold is not None
    return {
        **shown,
        "of": shown["kind"],
        "threshold": f"{finding.threshold:g}" if certified else "-",
        "lines": finding.lines,
        "error_rate": percent(shown["error_rate"]),
        bound: percent(finding.upper),
        "coverage": percent(shown["coverage"]),
        "result": "certified" if certified else f"figures at {finding.counts.threshold:g}; {_why(finding)}",
    }


def _why(finding: Finding) -> str:
    settled = finding.settled
    if finding.status is Status.TOO_FEW:
        return f"too few sure lines ({settled.accepted}; {finding.needed} right ones would do)"
    wrong = f"{settled.errors} of the {settled.accepted} surest lines are wrong"
    if finding.needed is None:
        return f"{wrong}, more than asked for"
    return f"{wrong} (in {finding.needed} that would do)"
