"""Versions of the site file, and which of them decoded which messages."""

from __future__ import annotations

from sqlalchemy import Connection, select
from sqlalchemy.dialects.sqlite import insert

from pipeline.store import meta
from pipeline.store.tables import site_spans, site_versions

_IN_FORCE = "site"


def put(connection: Connection, digest: str, text: str, loaded_at_us: int) -> None:
    """A site file comes into force. A version that is known keeps its first time."""
    statement = insert(site_versions).values(hash=digest, text=text, loaded_at_us=loaded_at_us)
    connection.execute(statement.on_conflict_do_nothing(index_elements=["hash"]))
    meta.put(connection, _IN_FORCE, digest)


def in_force(connection: Connection) -> str | None:
    """Hash of the site file that came into force last."""
    return meta.get(connection, _IN_FORCE)


def text(connection: Connection, digest: str) -> str | None:
    """A version's text."""
    query = select(site_versions.c.text).where(site_versions.c.hash == digest)
    return connection.execute(query).scalar_one_or_none()


def decoded_with(connection: Connection, first_seq: int, digest: str) -> None:
    """From `first_seq` on messages are decoded with this version. Writes only when it changed."""
    latest = select(site_spans).order_by(site_spans.c.first_seq.desc()).limit(1)
    row = connection.execute(latest).one_or_none()
    if row is not None and row.hash == digest:
        return
    statement = insert(site_spans).values(first_seq=first_seq, hash=digest)
    connection.execute(
        statement.on_conflict_do_update(index_elements=["first_seq"], set_={"hash": statement.excluded.hash})
    )


def version_of(connection: Connection, seq: int) -> str | None:
    """Hash of the site file that decoded message `seq`."""
    query = (
        select(site_spans.c.hash)
        .where(site_spans.c.first_seq <= seq)
        .order_by(site_spans.c.first_seq.desc())
        .limit(1)
    )
    return connection.execute(query).scalar_one_or_none()
