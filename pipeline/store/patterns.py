"""The pattern book on disk: patterns (stable lineage ids), their plans by variant, and earlier plans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, delete, func, select, update
from sqlalchemy.dialects.sqlite import insert

from pipeline.store.tables import patterns, plan_history, plans

# Patterns fetched at a time: some hundred KB of rows, while no statement stays open between two pages.
_PAGE = 500


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One plan: how lines of a pattern are read when its enumerable slots have the values named by `variant`.

    `plan` and `verdict` are JSON-ready. `trust` is provisional, trusted or disputed; `agreed` counts the
    readings that agreed with it, `n` the lines it has read. `version` is given by `put_plan`.
    """

    pattern_id: int
    variant: str
    plan: Mapping[str, Any]
    verdict: Mapping[str, Any]
    taught_by: str
    taught_at_us: int
    trust: str = "provisional"
    agreed: int = 0
    n: int = 0
    version: int = 0


@dataclass(frozen=True, slots=True)
class PatternRow:
    id: int
    profile: str
    signature: str
    sample: str
    n: int
    first_seen_us: int
    last_seen_us: int
    plans: tuple[PlanRow, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class Seen:
    """`n` more lines of a pattern, the last at `last_seen_us`; `variant` names the plan that read them."""

    pattern_id: int
    variant: str | None
    n: int
    last_seen_us: int


def load_all(connection: Connection) -> Iterator[PatternRow]:
    """Every pattern with its plans, by id. Fetched in pages, so a slow consumer holds nothing up."""
    last = 0
    while page := connection.execute(
        select(patterns).where(patterns.c.id > last).order_by(patterns.c.id).limit(_PAGE)
    ).all():
        first, last = page[0].id, page[-1].id
        taught: dict[int, list[PlanRow]] = {}
        for plan in _plans(connection, first, last):
            taught.setdefault(plan.pattern_id, []).append(plan)
        for row in page:
            yield PatternRow(**row._asdict(), plans=tuple(taught.get(row.id, ())))


def get(connection: Connection, pattern_id: int) -> PatternRow | None:
    """One pattern with its plans."""
    row = connection.execute(select(patterns).where(patterns.c.id == pattern_id)).one_or_none()
    if row is None:
        return None
    return PatternRow(**row._asdict(), plans=tuple(_plans(connection, row.id, row.id)))


def count(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(patterns)).scalar_one()


def put_all(connection: Connection, rows: Iterable[PatternRow]) -> None:
    """Write patterns with their plans and ids into a store that has none."""
    for row in rows:
        values = {"id": row.id, "profile": row.profile, "signature": row.signature, "sample": row.sample}
        seen = {"n": row.n, "first_seen_us": row.first_seen_us, "last_seen_us": row.last_seen_us}
        connection.execute(insert(patterns).values(**values, **seen))
        for plan in row.plans:
            connection.execute(insert(plans).values(**_values(plan, plan.version)))


def upsert(connection: Connection, profile: str, signature: str, sample: str, seen_at_us: int) -> int:
    """The id of a pattern, new or known. The first sample stays."""
    known = select(patterns.c.id).where(patterns.c.profile == profile, patterns.c.signature == signature)
    found = connection.execute(known).scalar_one_or_none()
    if found is not None:
        return int(found)
    values = {"profile": profile, "signature": signature, "sample": sample, "n": 0}
    statement = insert(patterns).values(**values, first_seen_us=seen_at_us, last_seen_us=seen_at_us)
    key = connection.execute(statement).inserted_primary_key
    assert key is not None, "SQLite tells the row id of an insert"
    return int(key[0])


def put_plan(connection: Connection, row: PlanRow) -> int:
    """Teach a plan; the one it replaces goes to the history. The new version."""
    old = connection.execute(select(plans).where(*_named(row.pattern_id, row.variant))).one_or_none()
    earlier = func.coalesce(func.max(plan_history.c.version), 0)
    if old is None:
        kept = select(earlier).where(
            plan_history.c.pattern_id == row.pattern_id, plan_history.c.variant == row.variant
        )
        version = connection.execute(kept).scalar_one() + 1
    else:
        _retire(connection, PlanRow(**old._asdict()))
        version = old.version + 1
    connection.execute(insert(plans).values(**_values(row, version)))
    return int(version)


def set_trust(connection: Connection, pattern_id: int, variant: str, trust: str, agreed: int) -> None:
    """How far a plan is trusted, after `agreed` agreeing readings."""
    connection.execute(update(plans).where(*_named(pattern_id, variant)).values(trust=trust, agreed=agreed))


def bump(connection: Connection, rows: Sequence[Seen]) -> None:
    """Add to the counts of patterns and plans, in bulk."""
    if not rows:
        return
    connection.execute(
        update(patterns)
        .where(patterns.c.id == bindparam("b_id"))
        .values(
            n=patterns.c.n + bindparam("b_n"),
            last_seen_us=func.max(patterns.c.last_seen_us, bindparam("b_last")),
        ),
        [{"b_id": row.pattern_id, "b_n": row.n, "b_last": row.last_seen_us} for row in rows],
    )
    read = [row for row in rows if row.variant is not None]
    if read:
        connection.execute(
            update(plans)
            .where(plans.c.pattern_id == bindparam("b_id"), plans.c.variant == bindparam("b_variant"))
            .values(n=plans.c.n + bindparam("b_n")),
            [{"b_id": row.pattern_id, "b_variant": row.variant, "b_n": row.n} for row in read],
        )


def forget(connection: Connection, pattern_id: int, variant: str | None = None) -> int:
    """Drop the plans of a pattern (or one of them) into the history: its next line is read anew. How many
    there were.

    The pattern keeps its id, which is the cause of its alarms: forgetting must not open a second ticket for
    one fault.
    """
    conditions = _named(pattern_id, variant) if variant is not None else (plans.c.pattern_id == pattern_id,)
    dropped = connection.execute(select(plans).where(*conditions)).all()
    for row in dropped:
        _retire(connection, PlanRow(**row._asdict()))
    return len(dropped)


def history(connection: Connection, pattern_id: int) -> list[PlanRow]:
    """The plans that were replaced or forgotten, oldest first within each variant."""
    query = (
        select(plan_history)
        .where(plan_history.c.pattern_id == pattern_id)
        .order_by(plan_history.c.variant, plan_history.c.version)
    )
    return [PlanRow(**row._asdict()) for row in connection.execute(query)]


def _retire(connection: Connection, row: PlanRow) -> None:
    values = _values(row, row.version)
    kept = {column.name: values[column.name] for column in plan_history.columns}
    connection.execute(insert(plan_history).values(**kept))
    connection.execute(delete(plans).where(*_named(row.pattern_id, row.variant)))


def _plans(connection: Connection, first: int, last: int) -> list[PlanRow]:
    query = (
        select(plans)
        .where(plans.c.pattern_id.between(first, last))
        .order_by(plans.c.pattern_id, plans.c.variant)
    )
    return [PlanRow(**row._asdict()) for row in connection.execute(query)]


def _named(pattern_id: int, variant: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return plans.c.pattern_id == pattern_id, plans.c.variant == variant


def _values(row: PlanRow, version: int) -> dict[str, Any]:
    return {
        "pattern_id": row.pattern_id,
        "variant": row.variant,
        "version": version,
        "trust": row.trust,
        "plan": dict(row.plan),
        "verdict": dict(row.verdict),
        "taught_by": row.taught_by,
        "agreed": row.agreed,
        "n": row.n,
        "taught_at_us": row.taught_at_us,
    }
