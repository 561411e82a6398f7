"""A fresh store a test, and short ways to fill it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from connectors.base import Delivery
from pipeline.store import journal
from pipeline.store.engine import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "andon.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    store = Store.open(path)
    yield store
    store.close()


@pytest.fixture
def delivery() -> Callable[..., Delivery]:
    """A delivery with defaults: `delivery(payload=..., received_at_us=...)`."""

    def make(**given: Any) -> Delivery:
        values: dict[str, Any] = {
            "topic": "plant/p7/log",
            "payload": b"ERROR bearing hot",
            "received_at_us": 1_700_000_000_000_000,
            "qos": 1,
            "connection": "c1",
        }
        return Delivery(**(values | given))

    return make


@pytest.fixture
def accept(store: Store, delivery: Callable[..., Delivery]) -> Callable[..., range]:
    """Journal `n` messages of a source; the seqs they got."""

    def append(n: int, source: str = "line7", **given: Any) -> range:
        def work(connection: Connection) -> range:
            return journal.append(connection, source, [delivery(position=i, **given) for i in range(n)])

        return store.write_sync(work)

    return append
