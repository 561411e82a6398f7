"""The schema's version: where it stands, and how it is brought up to date. The steps are in migrations/."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from schemas.errors import StoreError

VERSION_TABLE = "alembic_version"


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(files("migrations")).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


@cache
def revisions() -> tuple[str, ...]:
    """Every schema version this andon knows, oldest first."""
    script = ScriptDirectory.from_config(_config())
    return tuple(reversed([revision.revision for revision in script.walk_revisions()]))


def current(connection: Connection) -> str | None:
    """The version of this database; None when it is empty."""
    return MigrationContext.configure(connection).get_current_revision()


def require_known(connection: Connection, path: Path) -> None:
    """Raises StoreError for a database of another program, or of a newer andon."""
    version = current(connection)
    if version is None and inspect(connection).get_table_names():
        raise StoreError(f"{path}: this is the database of another program; name another file as store.path")
    if version is not None and version not in revisions():
        raise StoreError(
            f"{path}: written by a newer andon (schema {version}; this one knows up to {revisions()[-1]}). "
            f"Install that version again, or restore a backup made before the upgrade"
        )


def upgrade(connection: Connection) -> None:
    """Bring the schema up to date within the caller's transaction: all steps or none."""
    if current(connection) != revisions()[-1]:
        command.upgrade(_config(connection), "head")
