"""The pattern book on disk: ids that last, plans with their history, counts that only grow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy import Connection

from pipeline.store import patterns
from pipeline.store.engine import Store
from pipeline.store.patterns import PatternRow, PlanRow, Seen


@pytest.fixture
def conn(store: Store) -> Iterator[Connection]:
    with store._writer._engine.connect() as connection:
        yield connection


def plan(pattern_id: int, variant: str = "", taught_by: str = "rules:1") -> PlanRow:
    return PlanRow(pattern_id, variant, {"device": [0]}, {"severity": "error"}, taught_by, 50)


def test_a_pattern_has_one_id_for_ever(conn: Connection) -> None:
    first = patterns.upsert(conn, "machine-log", "pump <*> \ud800", "pump 7", 10)
    assert patterns.upsert(conn, "machine-log", "pump <*> \ud800", "pump 8", 20) == first
    assert patterns.upsert(conn, "other", "pump <*> \ud800", "pump 8", 20) != first
    assert patterns.get(conn, first) == PatternRow(
        first, "machine-log", "pump <*> \ud800", "pump 7", 0, 10, 10
    )
    assert patterns.get(conn, 99) is None
    assert patterns.count(conn) == 2


def test_a_replaced_plan_goes_to_the_history(conn: Connection) -> None:
    id = patterns.upsert(conn, "p", "s", "x", 1)
    assert patterns.put_plan(conn, plan(id, "OK")) == 1
    assert patterns.put_plan(conn, plan(id, "FAULT")) == 1
    assert patterns.put_plan(conn, plan(id, "OK", "person:ann")) == 2
    found = patterns.get(conn, id)
    assert found is not None
    assert [(p.variant, p.version, p.taught_by) for p in found.plans] == [
        ("FAULT", 1, "rules:1"),
        ("OK", 2, "person:ann"),
    ]
    assert patterns.history(conn, id) == [replace(plan(id, "OK"), version=1)]


def test_a_forgotten_pattern_keeps_its_id_and_its_versions_go_on(conn: Connection) -> None:
    id = patterns.upsert(conn, "p", "s", "x", 1)
    for variant in ("a", "b", "c"):
        patterns.put_plan(conn, plan(id, variant))
    assert patterns.forget(conn, id, "b") == 1
    assert patterns.forget(conn, id) == 2
    assert patterns.forget(conn, id) == 0
    assert patterns.upsert(conn, "p", "s", "x", 9) == id
    assert patterns.put_plan(conn, plan(id, "b")) == 2
    assert patterns.forget(conn, id) == 1  # the history takes each version once
    assert [(p.variant, p.version) for p in patterns.history(conn, id)] == [
        ("a", 1),
        ("b", 1),
        ("b", 2),
        ("c", 1),
    ]


def test_counts_and_trust(conn: Connection) -> None:
    id, other = (patterns.upsert(conn, "p", signature, "x", 10) for signature in "st")
    patterns.put_plan(conn, plan(id, "OK"))
    patterns.bump(conn, [Seen(id, "OK", 5, 100), Seen(id, None, 2, 60), Seen(other, "", 1, 70)])
    patterns.set_trust(conn, id, "OK", "trusted", 3)
    found = patterns.get(conn, id)
    assert found is not None
    assert (found.n, found.first_seen_us, found.last_seen_us) == (7, 10, 100)
    assert [(p.n, p.trust, p.agreed) for p in found.plans] == [(5, "trusted", 3)]


def test_the_whole_book_is_loaded_page_by_page(conn: Connection) -> None:
    n = 1201
    for i in range(n):
        id = patterns.upsert(conn, "p", f"s{i}", "x", i)
        for variant in range(i % 3):
            patterns.put_plan(conn, plan(id, str(variant)))
    loaded = list(patterns.load_all(conn))
    assert [p.signature for p in loaded] == [f"s{i}" for i in range(n)]
    assert [len(p.plans) for p in loaded] == [i % 3 for i in range(n)]
    assert all(p.id == q.pattern_id for p in loaded for q in p.plans)
