"""Single values by name: the cursor, the site file in force, the boot id."""

from __future__ import annotations

from sqlalchemy import Connection

_GET = "SELECT value FROM meta WHERE key = ?"
_PUT = "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"


def get(connection: Connection, key: str) -> str | None:
    found = connection.exec_driver_sql(_GET, (key,)).scalar_one_or_none()
    return None if found is None else str(found)


def put(connection: Connection, key: str, value: str) -> None:
    connection.exec_driver_sql(_PUT, (key, value))
