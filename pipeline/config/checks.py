"""What a model alone cannot see: references between parts, expressions, units, code lists.

Every check looks at valid parts only and yields findings in any order: positions put them in file order.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping

from pipeline.config.codes import Code, CodesError, read_codes
from pipeline.config.document import Finding, Path
from pipeline.config.draft import Draft
from pipeline.config.endpoints import endpoint_findings
from pipeline.config.expressions import expression_problem
from pipeline.config.topics import filter_problem
from pipeline.config.words import nearest, quoted, unknown
from pipeline.fields import units
from pipeline.fields.definition import FieldConfig, KnownCodes
from pipeline.stages.route import RouteConfig
from pipeline.stages.rules import RuleConfig, When
from schemas.extraction import FieldType

CodeLists = Mapping[tuple[str, str], Mapping[str, Code]]

_FIELD_NAME = re.compile(r"[^\W\d][\w-]{0,63}")
# Codes have digits or capitals, or a script of their own; names of rules need not.
_PLAIN_WORD = re.compile(r"[a-z][a-z_. -]*")
_MEASURED = (FieldType.QUANTITY, FieldType.NUMBER)

# Words and small powers only: pint would evaluate whatever else is written, and 9**9**9**9 takes for ever.
_UNIT_FORM = re.compile(r"(1/)?[^\W\d_]{1,20}(\^?[1-4])?([*/·][^\W\d_]{1,20}(\^?[1-4])?){0,4}")

# What a field of this name can measure. Names that leave room (speed of a belt or a shaft) allow several.
_DIMENSIONS: dict[str, frozenset[str]] = {
    "temperature": frozenset({"temperature"}),
    "pressure": frozenset({"pressure"}),
    "voltage": frozenset({"voltage"}),
    "current": frozenset({"current"}),
    "speed": frozenset({"speed", "vibration", "frequency"}),
    "vibration": frozenset({"vibration", "speed", "acceleration", "length"}),
}


def cross_findings(draft: Draft, lists: CodeLists) -> Iterator[Finding]:
    """Everything wrong between and inside the valid parts."""
    yield from endpoint_findings(draft)
    for place, field in draft.fields.items():
        yield from _field(("profiles", place[0], "fields", place[1]), place[1], field)
    yield from _twice("rules", {number: rule.id for number, rule in draft.rules.items()})
    yield from _twice("routes", {number: route.id for number, route in draft.routes.items()})
    codes = _all_codes(draft, lists)
    for number, rule in draft.rules.items():
        yield from _rule(("rules", number), rule, draft, codes)
    for number, route in draft.routes.items():
        yield from _route(("routes", number), route, draft)


def read_lists(draft: Draft) -> tuple[dict[tuple[str, str], dict[str, Code]], list[Finding]]:
    """The code lists that fields name, and what is wrong with the others."""
    lists: dict[tuple[str, str], dict[str, Code]] = {}
    problems: list[Finding] = []
    for (profile, field), config in draft.fields.items():
        if not isinstance(config.known, KnownCodes) or None in (config.known.csv, config.known.column):
            continue
        try:
            lists[profile, field] = read_codes(config.known, draft.folder)
        except CodesError as error:
            path = ("profiles", profile, "fields", field, "known", "csv")
            problems.append(Finding(path, f"{quoted(config.known.csv)}: {error}"))
    return lists, problems


def _field(path: Path, name: str, field: FieldConfig) -> Iterator[Finding]:
    if not _FIELD_NAME.fullmatch(name):
        message = f"{quoted(name)} is no field name: letters, digits, _ and -, starting with a letter"
        yield Finding(path, message, at_key=True)
    if field.unit is not None:
        yield from _unit((*path, "unit"), name, field.unit)
    for key in ("known", "choices"):
        if getattr(field, key) == []:
            yield Finding((*path, key), "must not be empty; leave it out to allow every value")


def _unit(path: Path, name: str, unit: str) -> Iterator[Finding]:
    measures, named = _dimension(unit), name.casefold()
    if measures is None:
        guess = nearest(unit, units.symbols())
        known = "write it as in °C, bar, mm/s, rpm, or in full as in gigawatt, or leave unit out"
        hint = f"did you mean '{guess}'?" if guess else known
        yield Finding(path, f"unknown unit {quoted(unit)}; {hint}")
    elif named in _DIMENSIONS and measures not in _DIMENSIONS[named]:
        yield Finding(path, f"{quoted(unit)} is a unit of {measures}, the field is called {name}")


def _dimension(unit: str) -> str | None:
    """What a unit measures; None when it is unknown, or an expression rather than a unit."""
    if units.lookup(unit) is None and not _UNIT_FORM.fullmatch(unit):
        return None
    try:
        return units.dimension(unit) if unit else None
    except Exception:  # pint's parser lets assertions and much else escape; to us they all mean: no unit
        return None


def _twice(part: str, ids: Mapping[int, str]) -> Iterator[Finding]:
    first: dict[str, int] = {}
    for number, name in ids.items():
        if name is not None and name in first:
            yield Finding((part, number, "id"), f"id '{name}' is used already by {part}[{first[name]}]")
        first.setdefault(name, number)


def _refers(path: Path, what: str, names: Iterable[str] | None, known: Iterable[str]) -> Iterator[Finding]:
    """Each of `names` must be one of `known`; a list's items have places of their own."""
    known = set(known)
    for number, name in enumerate(names or ()):
        if name is not None and name not in known:
            yield Finding((*path, number), unknown(what, name, known))


def _refers_one(path: Path, what: str, name: str | None, known: Iterable[str]) -> Iterator[Finding]:
    for finding in _refers(path, what, [] if name is None else [name], known):
        yield Finding(path, finding.message)


def _route(path: Path, route: RouteConfig, draft: Draft) -> Iterator[Finding]:
    yield from _refers_one((*path, "sink"), "sink", route.sink, draft.names["sinks"])
    yield from _refers((*path, "sources"), "source", route.sources, draft.names["sources"])
    yield from _refers((*path, "categories"), "category", route.categories, draft.names["categories"])


def _rule(path: Path, rule: RuleConfig, draft: Draft, codes: frozenset[str] | None) -> Iterator[Finding]:
    yield from _refers_one((*path, "category"), "category", rule.category, draft.names["categories"])
    yield from _refers_one((*path, "action"), "action", rule.action, draft.names["actions"])
    if rule.when is not None:
        yield from _when((*path, "when"), rule.when, draft)
        yield from _refers((*path, "when", "code"), "code", rule.when.code if codes else [], codes or ())
    if rule.clears is not None:
        yield from _clears((*path, "clears"), rule.clears, rule.id, draft, codes)


def _clears(
    path: Path, cleared: str, own_id: str | None, draft: Draft, codes: frozenset[str] | None
) -> Iterator[Finding]:
    """What is cleared is a rule's alarm or a code's. Where any code may come (`codes` is None), a plain word
    is none unless some rule says that it is."""
    rules = draft.names["rules"]
    if cleared == own_id:
        yield Finding(path, "a rule cannot clear its own alarm; name the rule or code that raises it")
    elif codes is not None:
        yield from _refers_one(path, "rule or code", cleared, codes | rules)
    elif _PLAIN_WORD.fullmatch(cleared) and cleared not in rules | _codes_of_rules(draft):
        message = unknown("rule", cleared, rules - {own_id})
        yield Finding(
            path, f"{message}; if it is a code, name it in `when: {{code: [{cleared}]}}` of a rule, too"
        )


def _codes_of_rules(draft: Draft) -> set[str]:
    whens = [rule.when for rule in draft.rules.values() if rule.when is not None]
    return {code for when in whens for code in when.code or ()}


def _when(path: Path, when: When, draft: Draft) -> Iterator[Finding]:
    yield from _refers_one((*path, "source"), "source", when.source, draft.names["sources"])
    for key, problem in (("topic", filter_problem), ("text", expression_problem)):
        value = getattr(when, key)
        message = problem(value) if value is not None else None
        if message:
            yield Finding((*path, key), message)
    yield from _threshold(path, when)
    yield from _measured((*path, "field"), when.field, draft)


def _threshold(path: Path, when: When) -> Iterator[Finding]:
    if when.deadband and when.above is when.below is None:
        yield Finding((*path, "deadband"), "deadband belongs to above or below")
    if when.above is not None and when.below is not None and when.above >= when.below:
        message = "no value is above and below these; for both sides of a band write two rules"
        yield Finding((*path, "below"), message)
    line_only = [key for key in ("text", "code", "field") if getattr(when, key) is not None]
    if when.metric is not None and line_only:
        yield Finding(
            (*path, line_only[0]), f"{line_only[0]} looks at lines and metric at readings: never both"
        )
    for key in ("above", "below", "deadband"):
        if not math.isfinite(getattr(when, key) or 0.0):
            yield Finding((*path, key), "is too large for a number")


def _measured(path: Path, name: str | None, draft: Draft) -> Iterator[Finding]:
    if name is None:
        return
    yield from _refers_one(path, "field", name, draft.names["fields"])
    types = {field.type for (_, field_name), field in draft.fields.items() if field_name == name}
    if types and None not in types and not types & set(_MEASURED):
        yield Finding(path, f"'{name}' is of type {min(types)}; above and below need a quantity or number")


def _all_codes(draft: Draft, lists: CodeLists) -> frozenset[str] | None:
    """Every code there can be; None when some code field takes any."""
    used = {source.profile for source in draft.sources.values()} or {profile for profile, _ in draft.fields}
    codes: set[str] = set()
    for place, field in draft.fields.items():
        if place[0] in used and field.type is FieldType.CODE:
            if place not in lists and not isinstance(field.known, list):
                return None
            codes.update(lists.get(place, ()), field.known if isinstance(field.known, list) else ())
    return frozenset(codes)
