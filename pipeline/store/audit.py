"""Who changed what, and from what to what."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, insert

from pipeline.store.tables import audit


def record(
    connection: Connection, at_us: int, who: str, what: str, before: Any = None, after: Any = None
) -> None:
    """One entry. `what` names the deed and its object ("review.approved 17"); the rest is JSON-ready."""
    connection.execute(insert(audit).values(at_us=at_us, who=who, what=what, before=before, after=after))
