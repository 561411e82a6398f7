"""A teaching, written down: what the caller's transaction does between `Book.propose` and `Book.commit`."""

from __future__ import annotations

from sqlalchemy import Connection

from pipeline.patterns.book import Book, Kept, Teaching
from pipeline.store import patterns
from pipeline.store.patterns import PlanRow


def keep(connection: Connection, book: Book, teaching: Teaching) -> Kept | None:
    """Write the teaching, and drop the patterns that make room for it. None: something came before it,
    nothing is written.

    The earlier plan goes to the history. Runs in the writer's thread.
    """
    if not book.still_valid(teaching):
        return None
    lesson = teaching.own
    pattern_id = patterns.upsert(
        connection, teaching.profile, teaching.signature, teaching.sample, teaching.at_us
    )
    if teaching.only_trust:
        patterns.set_trust(connection, pattern_id, teaching.variant, str(lesson.trust), lesson.agreed)
        return Kept(pattern_id, teaching.version)
    version = patterns.put_plan(
        connection,
        PlanRow(
            pattern_id,
            teaching.variant,
            lesson.plan.to_json(),
            lesson.decisions(),
            lesson.taught_by,
            teaching.at_us,
            str(lesson.trust),
            lesson.agreed,
        ),
    )
    for evicted in teaching.evict:
        patterns.forget(connection, evicted)
    return Kept(pattern_id, version)
