"""What people are asked: unsure, invalid or disputed events, grouped so that one question is asked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row, case, func, or_, select, text, update
from sqlalchemy.dialects.sqlite import insert

from pipeline.store import audit
from pipeline.store.tables import reviews
from schemas.events import EventId
from schemas.extraction import Severity


class ReviewState(StrEnum):
    OPEN = "open"
    APPROVED = "approved"
    CORRECTED = "corrected"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class NewReview:
    """A question about one event. `group_key` says what is asked (pattern and reason).

    `event` is the event as decoded (codec.dump_event), or {"bytes": base64 of the first 4 KB, "size": of how
    many bytes} when it was not; `reading` holds fields and decision as read, with their origins.
    """

    id: EventId
    source: str
    topic: str
    group_key: str
    reason: str
    created_at_us: int
    event: Mapping[str, Any] = field(default_factory=dict)
    reading: Mapping[str, Any] = field(default_factory=dict)
    pattern_id: int | None = None
    severity: str | None = None


@dataclass(frozen=True, slots=True)
class Review:
    """A question as stored, with its answer once it has one."""

    review_id: int
    asked: NewReview
    state: ReviewState
    resolved_at_us: int | None = None
    resolved_by: str | None = None
    resolution: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ReviewGroup:
    """The open questions of one group; `severity` is the highest, `sample_id` the oldest one's id."""

    group_key: str
    reason: str
    n: int
    severity: str | None
    pattern_id: int | None
    oldest_us: int
    sample_id: int


_RANK = case({severity.value: severity.rank for severity in Severity}, value=reviews.c.severity, else_=-1)


def put(connection: Connection, rows: Sequence[NewReview]) -> int:
    """Ask; how many questions are new. While one is open, its event is not asked again in that group."""
    if not rows:
        return 0
    statement = insert(reviews).on_conflict_do_nothing(
        index_elements=["seq", "idx", "group_key"], index_where=text("state = 'open'")
    )
    before = _changes(connection)
    connection.execute(statement, [_values(row) for row in rows])
    return _changes(connection) - before


def groups(connection: Connection, limit: int) -> list[ReviewGroup]:
    """What is open, by group: most severe first, then largest, then oldest."""
    rank, n = func.max(_RANK), func.count()
    query = (
        select(
            reviews.c.group_key,
            func.min(reviews.c.reason),
            n,
            rank,
            func.max(reviews.c.pattern_id),
            func.min(reviews.c.created_at_us),
            func.min(reviews.c.id),
        )
        .where(reviews.c.state == ReviewState.OPEN)
        .group_by(reviews.c.group_key)
        .order_by(rank.desc(), n.desc(), func.min(reviews.c.id))
        .limit(limit)
    )
    return [
        ReviewGroup(key, reason, size, _SEVERITIES.get(worst), pattern_id, oldest_us, sample_id)
        for key, reason, size, worst, pattern_id, oldest_us, sample_id in connection.execute(query)
    ]


def of_group(
    connection: Connection, group_key: str, limit: int, state: ReviewState = ReviewState.OPEN
) -> list[Review]:
    """The questions of one group in a state, oldest first."""
    query = (
        select(reviews)
        .where(reviews.c.state == state, reviews.c.group_key == group_key)
        .order_by(reviews.c.id)
        .limit(limit)
    )
    return [_review(row) for row in connection.execute(query)]


def of_pattern(
    connection: Connection, pattern_id: int | None, group_key: str, limit: int, after: int = 0
) -> list[Review]:
    """Open questions of one group, those of one pattern whatever their reason, and those that were asked
    before their pattern was known; oldest first, behind question `after`."""
    query = (
        select(reviews)
        .where(
            reviews.c.state == ReviewState.OPEN,
            reviews.c.id > after,
            or_(
                reviews.c.group_key == group_key,
                reviews.c.pattern_id == pattern_id,
                reviews.c.pattern_id.is_(None),
            ),
        )
        .order_by(reviews.c.id)
        .limit(limit)
    )
    return [_review(row) for row in connection.execute(query)]


def get(connection: Connection, review_id: int) -> Review | None:
    row = connection.execute(select(reviews).where(reviews.c.id == review_id)).one_or_none()
    return None if row is None else _review(row)


def open_count(connection: Connection) -> int:
    """How many questions are open."""
    query = select(func.count()).select_from(reviews).where(reviews.c.state == ReviewState.OPEN)
    return connection.execute(query).scalar_one()


def resolve(
    connection: Connection,
    review_id: int,
    state: ReviewState,
    who: str,
    at_us: int,
    resolution: Mapping[str, Any] | None = None,
    from_state: ReviewState = ReviewState.OPEN,
) -> bool:
    """Answer a question (or, with `from_state`, take an answer back); False when it is not in `from_state`
    any more.

    Compare and set, with an audit entry. The event itself is moved by the caller, in the same transaction.
    """
    known = get(connection, review_id)
    if known is None or known.state != from_state:
        return False
    answered = state != ReviewState.OPEN
    if not answered and _asked_again(connection, known.asked):
        return False
    connection.execute(
        update(reviews)
        .where(reviews.c.id == review_id)
        .values(
            state=state,
            resolved_at_us=at_us if answered else None,
            resolved_by=who if answered else None,
            resolution=None if resolution is None else dict(resolution),
        )
    )
    before = {"state": known.state, "resolution": known.resolution}
    after = {"state": state, "resolution": resolution}
    audit.record(connection, at_us, who, f"review.{state} {review_id}", before, after)
    return True


def _asked_again(connection: Connection, asked: NewReview) -> bool:
    """Whether the same is open already: then an answer that is taken back has nothing to reopen."""
    query = select(reviews.c.id).where(
        reviews.c.state == ReviewState.OPEN,
        reviews.c.group_key == asked.group_key,
        reviews.c.seq == asked.id.seq,
        reviews.c.idx == asked.id.index,
    )
    return connection.execute(query).first() is not None


_SEVERITIES = {severity.rank: severity.value for severity in Severity}


def _changes(connection: Connection) -> int:
    return int(connection.exec_driver_sql("SELECT total_changes()").scalar_one())


def _values(row: NewReview) -> dict[str, Any]:
    return {
        "seq": row.id.seq,
        "idx": row.id.index,
        "source": row.source,
        "topic": row.topic,
        "group_key": row.group_key,
        "pattern_id": row.pattern_id,
        "reason": row.reason,
        "severity": row.severity,
        "event": dict(row.event),
        "reading": dict(row.reading),
        "state": ReviewState.OPEN,
        "created_at_us": row.created_at_us,
    }


def _review(row: Row[Any]) -> Review:
    asked = NewReview(
        EventId(row.seq, row.idx),
        row.source,
        row.topic,
        row.group_key,
        row.reason,
        row.created_at_us,
        row.event,
        row.reading,
        row.pattern_id,
        row.severity,
    )
    return Review(row.id, asked, ReviewState(row.state), row.resolved_at_us, row.resolved_by, row.resolution)
