"""Journal first, acknowledge after the commit, in order; a full store holds everything back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripted_deliveries import ScriptedDeliveries, delivery

from pipeline.stages import intake
from pipeline.stages.intake import Intake
from pipeline.store import journal
from pipeline.store.engine import Store
from pipeline.telemetry import Metrics
from schemas.errors import SourceRefused, StoreFailed, StoreUnavailable


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store.open(tmp_path / "andon.db")
    yield store
    store.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "STORE_RETRY_S", 0.0)
    monkeypatch.setattr(intake, "REFUSED_RETRY_S", 0.0)


def taking(source: ScriptedDeliveries, store: Store) -> Intake:
    return Intake(source, store, asyncio.Event(), Metrics())


def payloads(store: Store) -> list[bytes]:
    with store.read() as connection:
        return [message.payload for message in journal.after(connection, 0, 1000)]


async def test_each_batch_is_on_disk_before_it_is_acknowledged(store: Store) -> None:
    source = ScriptedDeliveries([["a", "b"], ["c"]])
    source.on_ack = lambda acked: source.seen.append(payloads(store))
    lane = taking(source, store)
    await lane.run()
    assert source.seen == [[b"a", b"b"], [b"a", b"b", b"c"]]
    assert [each.payload for each in source.acked] == [b"a", b"b", b"c"]
    assert lane.done and lane._journaled.is_set()


async def test_a_full_store_holds_the_acknowledgement_until_it_takes_them(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = ScriptedDeliveries([["a"], ["b"]])
    lane = taking(source, store)
    write, held = store.write, []

    async def full(fn: object) -> object:
        if len(held) < 3:
            held.append((lane.holding, len(source.acked)))
            raise StoreUnavailable("no space left")
        return await write(fn)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "write", full)
    await lane.run()
    assert held == [(False, 0), (True, 0), (True, 0)]
    assert not lane.holding
    assert payloads(store) == [b"a", b"b"] == [each.payload for each in source.acked]


async def test_a_failing_disk_ends_the_service_and_acknowledges_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(fn: object) -> object:
        raise StoreFailed("I/O error")

    monkeypatch.setattr(store, "write", broken)
    source = ScriptedDeliveries([["a"]])
    with pytest.raises(StoreFailed):
        await taking(source, store).run()
    assert source.acked == []


async def test_the_position_is_kept_with_its_batch(store: Store) -> None:
    source = ScriptedDeliveries([["a"], ["b"], ["c"]], positions=[{"at": 1}, {"at": 1}, {"at": 3}])
    seen: list[dict[str, object]] = []

    def look(_: object) -> None:
        with store.read() as connection:
            seen.append(journal.position(connection, source.name))

    source.on_ack = look
    await taking(source, store).run()
    assert seen == [{"at": 1}, {"at": 1}, {"at": 3}]


async def test_a_refused_source_rests_and_is_tried_again(store: Store) -> None:
    source = ScriptedDeliveries([SourceRefused("bad user name or password"), ["a"]])
    lane = taking(source, store)
    said: list[str | None] = []
    source.on_batches = lambda: said.append(lane.refused)
    await lane.run()
    assert said == [None, "bad user name or password"]
    assert lane.refused is None
    assert payloads(store) == [b"a"]


async def test_what_arrived_is_kept_as_it_arrived(store: Store) -> None:
    given = delivery("\udcff", qos=1, retain=True, duplicate=True, position=9, connection="c")
    await taking(ScriptedDeliveries([[given]]), store).run()
    with store.read() as connection:
        (message,) = journal.after(connection, 0, 10)
    assert (message.source, message.topic, message.payload) == ("line7", "plant/p7/log", b"\xff")
    assert (message.qos, message.retain, message.duplicate, message.mid, message.connection) == (
        1,
        True,
        True,
        9,
        "c",
    )
