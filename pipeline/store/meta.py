"""Single values by name: the cursor, the site file in force, the boot id."""

from __future__ import annotations

from sqlalchemy import Connection, select
from sqlalchemy.dialects.sqlite import insert

from pipeline.store.tables import meta


def get(connection: Connection, key: str) -> str | None:
    return connection.execute(select(meta.c.value).where(meta.c.key == key)).scalar_one_or_none()


def put(connection: Connection, key: str, value: str) -> None:
    statement = insert(meta).values(key=key, value=value)
    connection.execute(
        statement.on_conflict_do_update(index_elements=["key"], set_={"value": statement.excluded.value})
    )
