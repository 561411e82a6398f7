"""Alembic's entry: runs the steps on the connection it is given, inside that connection's own transaction.

There is no alembic.ini and no offline mode: the store alone decides when its file is migrated, under its
lock.
"""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection

connection = context.config.attributes["connection"]
assert isinstance(connection, Connection), "run migrations through pipeline.store.schema.upgrade"
context.configure(connection=connection, transactional_ddl=False)
context.run_migrations()
