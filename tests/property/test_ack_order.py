"""Whatever arrives and whenever the store refuses: what is acknowledged is a prefix of what is committed."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scripted_deliveries import ScriptedDeliveries, delivery
from sqlalchemy import Connection

from connectors.base import Delivery
from pipeline.stages import intake
from pipeline.stages.intake import Intake
from pipeline.store import journal
from pipeline.store.engine import Store
from pipeline.telemetry import Metrics
from schemas.errors import SourceRefused, StoreFailed, StoreUnavailable

T = TypeVar("T")

FULL, FULL_AT_COMMIT, BROKEN, WELL = "full", "full at commit", "broken", "well"

batches = st.lists(
    st.lists(st.binary(max_size=3), min_size=1, max_size=4) | st.just("refused"), min_size=1, max_size=6
)
answers = st.lists(st.sampled_from([FULL, FULL_AT_COMMIT, WELL, WELL, BROKEN]), max_size=10)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "STORE_RETRY_S", 0.0)
    monkeypatch.setattr(intake, "REFUSED_RETRY_S", 0.0)


@given(batches, answers)
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_acknowledged_is_a_prefix_of_committed(script: list[list[bytes] | str], answers: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store.open(Path(folder) / "andon.db")
        try:
            asyncio.run(_take(store, script, answers))
        finally:
            store.close()


async def _take(store: Store, script: list[list[bytes] | str], answers: list[str]) -> None:
    number = iter(range(1000))
    steps = [
        SourceRefused("no")
        if isinstance(step, str)
        else [delivery(payload.decode("latin-1"), position=next(number)) for payload in step]
        for step in script
    ]
    source = ScriptedDeliveries(steps)
    store.write = _answering(store, list(answers))  # type: ignore[method-assign]
    source.on_ack = lambda _: _check(store, source)
    try:
        await Intake(source, store, asyncio.Event(), Metrics()).run()
    except StoreFailed:
        _check(store, source)
    else:
        assert source.acked == source.yielded
        assert _committed(store) == [_mark(each) for each in source.yielded]


def _check(store: Store, source: ScriptedDeliveries) -> None:
    acked, committed = [_mark(each) for each in source.acked], _committed(store)
    assert acked == committed[: len(acked)]
    assert committed == [_mark(each) for each in source.yielded][: len(committed)]


def _mark(given: Delivery) -> tuple[int, bytes]:
    return given.position, given.payload


def _committed(store: Store) -> list[tuple[int, bytes]]:
    with store.read() as connection:
        return [(message.mid, message.payload) for message in journal.after(connection, 0, 1000)]


def _answering(store: Store, answers: list[str]) -> Callable[..., object]:
    write = store.write

    async def answer(fn: Callable[[Connection], T]) -> T:
        said = answers.pop(0) if answers else WELL
        if said == FULL:
            raise StoreUnavailable("no space left")
        if said == BROKEN:
            raise StoreFailed("I/O error")

        def full(connection: Connection) -> T:
            fn(connection)
            raise StoreUnavailable("no space left")

        return await write(full if said == FULL_AT_COMMIT else fn)

    return answer
