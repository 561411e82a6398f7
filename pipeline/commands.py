"""What can be asked of andon while it runs: review and status, by name, over the command socket.

Where no service runs, the command line opens the store itself (taking its lock) and calls the same handlers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pipeline.control import Handler
from pipeline.review import Correction, Desk
from pipeline.store import alarms, outbox, reviews
from pipeline.store.engine import Store
from pipeline.store.totals import counts

# Commands that change nothing.
READING = frozenset({"review.list", "review.show"})


def handlers(desk: Desk) -> dict[str, Handler]:
    """The handlers of the review desk, by command."""

    async def correct(id: int, who: str, **said: Any) -> dict[str, Any]:
        spans = {name: (start, end) for name, (start, end) in said.pop("spans", {}).items()}
        return await desk.correct(id, who, Correction(spans=spans, **said))

    async def show(id: int) -> dict[str, Any]:
        return await desk.show(id)

    async def approve(id: int, who: str, group: bool = True) -> dict[str, Any]:
        return await desk.approve(id, who, group)

    async def reject(id: int, who: str, why: str, group: bool = False) -> dict[str, Any]:
        return await desk.reject(id, who, why, group)

    return {
        "review.list": desk.list,
        "review.show": show,
        "review.approve": approve,
        "review.correct": correct,
        "review.reject": reject,
    }


def standing(store: Store) -> dict[str, Any]:
    """How the store stands: counts, alarms, outbox, questions. Works with and without a running service."""
    with store.read() as connection:
        return {
            "counts": asdict(counts(connection)),
            "alarms_open": alarms.open_count(connection),
            "review_open": reviews.open_count(connection),
            "outbox": outbox.counts(connection),
            "wal_bytes": store.wal_bytes(),
            "free_bytes": store.free_bytes(),
        }


def flat(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested objects as dotted names, for tables."""
    out: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, Mapping):
            out |= flat(value, f"{prefix}{key}.")
        else:
            out[f"{prefix}{key}"] = value
    return out
